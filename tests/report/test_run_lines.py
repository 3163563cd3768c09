"""The answer that `record` and the cell magic begin with, held against what tests/scenarios.py says of each run."""

import pytest
from scenarios import VERSIONS

import cachescope
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.report.why_missed import answer_lines
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
        assert any(
            line.text.startswith(f"{len(outcomes)} lookups in 1 run: {words} (")
            for line in answer_lines(scope, {run})[:2]
        )


@pytest.mark.slow
def test_what_no_run_before_it_says_is_what_that_run_alone_says(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip") / "trace")
    alone = [headline(Chosen(cachescope.read(source))) for source in scope.runs["source"]]
    said = [answer_lines(scope, {run})[0].text for run in scope.runs["run"]]
    assert said[0] == alone[0] and said[2] == alone[2]  # the first, and one that hits
    assert "epilogue_fusion" in said[1] and "epilogue_fusion" not in alone[1]
