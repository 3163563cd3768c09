"""A log that ends before the outcome of its last lookup: counted apart, in no rate, and of no help to a bar."""

from pathlib import Path

import pytest

import cachescope
from cachescope import figures
from cachescope.answers.summary import counts_text
from cachescope.columns import records
from tests.conftest import Recording


@pytest.fixture
def scope(recording: Recording, tmp_path: Path) -> cachescope.Scope:
    """A warm run, and a cold one whose log ends behind the details of its FX graph."""
    folder = recording("2.13.0", "cold_warm") / "text"
    cold = (folder / "00_cold.log").read_bytes()
    (tmp_path / "cold.log").write_bytes(cold[: cold.rindex(b"\n", 0, cold.index(b"fx graph cache miss")) + 1])
    (tmp_path / "warm.log").write_bytes((folder / "01_warm.log").read_bytes())
    return cachescope.read(tmp_path)


def test_it_is_counted_apart(scope: cachescope.Scope) -> None:
    assert scope.lookups["outcome"].tolist() == ["full_miss", "unknown", "hit", "hit"]
    (rate,) = records(scope.hit_rates())
    assert (rate["lookups"], rate["hits"], rate["misses"], rate["unknown"]) == (4, 2, 1, 1)
    assert rate["hit_rate"] == 2 / 3
    assert "2 hit, 1 missed, 1 of unknown outcome (67 % of the 3 known by count" in counts_text(scope)
    assert records(scope.hit_rates(by=["cache"]))[1]["hit_rate"] == 1


def test_it_never_helps_to_meet_a_bar(scope: cachescope.Scope) -> None:
    assert scope.check(min_hit_rate=0.5).passed
    checked = scope.check(min_hit_rate=0.6, max_time_lost_ns=10**15, against=scope)
    assert checked.frame["passed"].tolist() == [False] * 5
    assert all("the outcome of 1 lookup was not seen" in reason for reason in checked.frame["reason"])


def test_it_is_explained_and_drawn_as_what_it_is(scope: cachescope.Scope) -> None:
    explained = scope.explain(1)
    assert (explained.verdict, explained.word) == (None, "unknown")
    drawn = figures.outcomes(scope.lookups, scope.runs)
    assert {trace.name for trace in drawn.data} == {"hit", "full_miss", "unknown"}


def test_it_stays_unknown_in_a_replay(scope: cachescope.Scope) -> None:
    found = scope.what_if(without=["gm"])
    assert found.frame["outcome_after"].tolist()[1] == "unknown"
    assert found.rates["unknown"].tolist() == [1, 1]
