"""The times of a pre-flight are its own: nothing was compiled, so they are no compile's, and no hit would save them."""

from __future__ import annotations

import json

import pytest

import cachescope
from cachescope.answers.chosen import Chosen
from cachescope.answers.time_spent import TimeSpent
from cachescope.cli import main
from cachescope.report.page.compiling import spent_section
from cachescope.report.page.parts import Text
from cachescope.views.overview import _rates


@pytest.fixture(scope="module")
def scope() -> cachescope.Scope:
    return cachescope.read(cachescope.sample("preflight"))


@pytest.mark.slow
def test_no_reading_says_what_hits_would_save(scope: cachescope.Scope) -> None:
    (one,) = TimeSpent.of(scope).runs
    assert one.is_preflight
    assert (one.could_save_ns, one.stays_ns) == (None, None)
    real = TimeSpent.of(cachescope.read(cachescope.sample("start"))).runs
    assert all(run.could_save_ns is not None and run.stays_ns is not None for run in real)


@pytest.mark.slow
def test_every_form_says_whose_times_they_are(
    scope: cachescope.Scope, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "its own times; it compiled nothing"
    sample = str(cachescope.sample("preflight"))
    assert main(["time", sample]) == 0
    printed = capsys.readouterr().out
    assert said in " ".join(printed.split())
    assert "could still save" not in printed
    assert main(["time", sample, "--json"]) == 0
    (reported,) = json.loads(capsys.readouterr().out)["time"]
    assert (reported["could_save_ns"], reported["stays_ns"]) == (None, None)
    assert any(said in part.text for part in spent_section(scope).parts if isinstance(part, Text))


def test_no_bar_is_drawn_for_a_compile_that_was_none(scope: cachescope.Scope) -> None:
    assert scope.runs["is_preflight"].all()
    assert scope.lookups["end_time"].isna().all()
    assert scope.lookups["time"].notna().all()


def test_the_explorer_says_that_a_rate_is_predicted(scope: cachescope.Scope) -> None:
    assert "0 of 6 lookups, predicted" in _rates(Chosen(scope), [])
    assert "predicted" not in _rates(Chosen(cachescope.read(cachescope.sample("start"))), [])
