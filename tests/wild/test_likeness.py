"""What is the past of what: other programs, edited ones, training and inference, ranks, recompiles, upgrades."""

import json
from pathlib import Path

import pytest
from test_scenarios import WAYS, lookups_of, read_way, with_sorted_fields

from tests.conftest import Recording
from tests.recordings import RECORDED
from tests.wild.likeness import COMPARED_WITH, EXPECTED, MAY_BE_NOT_KNOWN, RANKS

pytestmark = pytest.mark.slow

CASES = [
    name for version, name in RECORDED if version == "2.13.0" and name in EXPECTED.keys() - MAY_BE_NOT_KNOWN
]
RACES = [case for case in RECORDED if case[1] in RANKS]


@pytest.mark.parametrize("way", ["trace", "all"])
@pytest.mark.parametrize("name", CASES)
def test_every_lookup_is_explained(name: str, way: str, recording: Recording) -> None:
    """What a text log, or an older trace, says less of is counted in test_accuracy.py."""
    assert lookups_of(read_way(recording("2.13.0", name), way)) == with_sorted_fields(EXPECTED[name])


def test_no_trace_is_asked_for_where_one_was_read(recording: Recording) -> None:
    folder = recording("2.13.0", "edited_model_fx")
    for way, asks in (("trace", False), ("all", False), ("text", True)):
        misses = read_way(folder, way).misses
        is_it = (misses["evidence"] == "not_known") & (misses["lookup"] == 1)
        (reported,) = misses.loc[is_it, "evidence_text"]
        assert ("a trace does" in reported) == asks, way


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", sorted(version for version, name in RECORDED if name == "upgrade"))
def test_another_torch_is_one_cause_and_stands_first(version: str, way: str, recording: Recording) -> None:
    scope = read_way(recording(version, "upgrade"), way)
    misses = scope.misses.merge(scope.lookups[["lookup", "run"]], on="lookup")
    # The code that dynamo hands on is printed otherwise, and a text log names no function.
    is_known = (misses["evidence"] != "not_known") if way == "text" else True
    after = misses[(misses["run"] == 1) & misses["root"] & is_known]
    assert set(after["verdict"]) == {"key_changed"}
    assert len(set(after["cause"])) == 1
    assert {changed[0] for changed in after["changed"]} == {"torch_version"}


@pytest.mark.parametrize("name", sorted(COMPARED_WITH.keys() & {name for _, name in RECORDED}))
def test_each_miss_is_compared_with_the_run_that_explains_least(name: str, recording: Recording) -> None:
    scope = read_way(recording("2.13.0", name), "all")
    run_of = dict(zip(scope.lookups["lookup"], scope.lookups["run"], strict=True))
    roots = scope.misses[scope.misses["root"] & scope.misses["verdict"].eq("key_changed")]
    compared = {run_of[miss.lookup]: run_of[miss.baseline_lookup] for miss in roots.itertuples()}
    assert compared == COMPARED_WITH[name]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("version", "name"), RACES)
def test_no_cold_rank_is_blamed_on_another(version: str, name: str, way: str, recording: Recording) -> None:
    folder = recording(version, name)
    scope = read_way(folder, way)
    steps = [json.loads(path.read_text()) for path in (folder / "steps").glob("*.json")]
    together = {step["pid"] for step in steps if "cold" in Path(step["argv"][-1]).stem}
    cold = set(scope.runs["run"][scope.runs["pid"].isin(together)])
    misses = scope.misses.merge(scope.lookups[["lookup", "run"]], on="lookup")
    assert set(misses["run"]) <= cold
    # They wait for nobody: who comes first is chance, and so is what a later one still finds.
    assert {(miss.verdict, miss.changed) for miss in misses.itertuples()} <= RANKS[name]
