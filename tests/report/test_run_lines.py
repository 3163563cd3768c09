"""The line that `record` and the cell magic begin with, held against what tests/scenarios.py says of each run."""

import pytest
from scenarios import VERSIONS

import cachescope
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.answers.why import RunsWent
from cachescope.report.why_missed import run_lines
from tests.conftest import Recording


@pytest.mark.parametrize("name", ["cold_warm", "dynamic_guards", "bypass_custom_pass", "bypass_freezing"])
def test_hits_misses_and_bypasses_are_told_apart(name: str, recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", name) / "trace")
    expected = VERSIONS["2.13.0"][name]
    assert scope.lookups["run"].nunique() == len(expected)
    for run, lookups in enumerate(expected):
        outcomes = [lookup.split()[1] for lookup in lookups]
        hits, bypasses = outcomes.count("hit"), outcomes.count("bypass")
        words = f"{hits} hit, {len(outcomes) - hits - bypasses} missed"
        words += f", {bypasses} bypassed or disabled" if bypasses else ""
        (line,) = run_lines(RunsWent.of(scope, {run}))
        assert line.text.partition(";")[0] == f"this run: {len(outcomes)} lookups: {words}"


@pytest.mark.slow
def test_it_loses_what_the_headline_of_that_run_alone_says(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip") / "trace")
    for run, source in scope.runs[["run", "source"]].itertuples(index=False):
        (line,) = run_lines(RunsWent.of(scope, {run}))
        _, lost, time = line.text.partition("; ")
        assert bool(lost) == (run < 2)  # the last one hits
        assert time.removesuffix(" lost") in headline(Chosen(cachescope.read(source)))
