"""Guard misses in full, in every form of an explanation: the size, what the stored entry needs, the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cachescope
from tests.cli.conftest import Run
from tests.conftest import Recording


@pytest.mark.slow
def test_every_form_names_the_size(recording: Recording, run: Run, tmp_path: Path) -> None:
    trace = recording("2.13.0", "dynamic_guards") / "trace"
    scope = cachescope.read(trace)
    size = "x.size(0) is 5; the stored entry needs 11 or more"
    assert size in repr(scope.explain(2))
    assert size in scope.explain(2)._repr_html_()
    assert size in scope._repr_html_()
    assert "Pad x.size(0) to 11 or more" in scope._repr_html_()
    assert json.loads(run("explain", "--json", "--key", "2", trace).out)["explanation"]["sizes"].startswith(
        size
    )
    assert size in " ".join(run("explain", trace).out.split())
    run("report", trace, "--output", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert size in page and "What to do: Pad x.size(0)" in page


@pytest.mark.slow
def test_what_the_program_says_is_hidden_with_redact(recording: Recording, run: Run) -> None:
    trace = recording("2.13.0", "dynamic_guards") / "trace"
    for options in ([], ["--key", "2"], ["--json", "--key", "2"]):
        out = run("explain", "--redact", *options, trace).out
        assert " is 5; the stored entry needs 11 or more" in " ".join(out.split())
        assert "branch_on_size" not in out and "record_programs" not in out and "x.shape" not in out
