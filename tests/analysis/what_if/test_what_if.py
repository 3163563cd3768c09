"""Replays of every recording against what was changed in it, written down by hand in scenarios.py."""

import pandas as pd
import pytest
from scenarios import VERSIONS, Run
from test_scenarios import CASES, WAYS, lookups_of, read_way

import cachescope
from cachescope.columns import pandas_type
from tests.conftest import Recording
from tests.recordings import Recorded

RACES = [("2.13.0", "four_processes"), ("2.13.0", "four_ranks")]
FUSION = "inductor_config[epilogue_fusion]"
OUTPUT_PATH = "inductor_config[aot_inductor.output_path]"

# Where something was done to the stored files from outside, and the lookups (by run, then by order) that then missed. Only
# the first lookup of a key finds the entry gone.
DAMAGED: dict[str, list[tuple[int, int]]] = {
    "entry_deleted": [(2, 0), (2, 1)], "entry_truncated": [(2, 0), (2, 1)], "entry_garbage": [(2, 0), (2, 1)],
    "entry_deleted_fx": [(2, 0)], "aot_entry_deleted": [(2, 0)], "aot_entry_truncated": [(2, 0)],
}  # fmt: skip
# The text logs of 2.15 have neither guards nor the inputs of FX keys: a guard miss looks like an entry that is gone.
UNTOLD_GUARDS = {("2.15.0", "dynamic_guards_fx", "text"): [(1, 0)]}
# Without gm, other graphs of the same program on the same inputs have one key as well.
ONLY_GM_TELLS_APART = {"four_graphs", "four_graphs_fx", "new_graph", "new_graph_fx", "tour"}
QUICK = {"combined", "inputs"}


def check_the_unchanged_schema_gives_the_recorded_outcomes(recorded: Recorded) -> None:
    if (recorded.version, recorded.name) not in CASES + RACES:
        return
    for way in WAYS:
        if (recorded.name, way) != ("trace_only", "text"):  # it has none
            is_as_recorded(read_way(recorded.folder, way), recorded.version, recorded.name, way)


def is_as_recorded(scope: cachescope.Scope, version: str, name: str, way: str) -> None:
    found = scope.what_if()
    assert found.frame["outcome_after"].tolist() == scope.lookups["outcome"].tolist()
    assert not found.frame["changed_side"].any()
    places = scope.lookups.set_index("lookup").loc[found.differences["lookup"], ["run", "order"]]
    expected = UNTOLD_GUARDS.get((version, name, way), DAMAGED.get(name, []))
    assert [tuple(place) for place in places.to_numpy().tolist()] == expected
    assert found.differences["expected"].tolist() == ["hit"] * len(expected)
    assert found.differences["reason"].str.len().gt(0).all()


def expected_lines(scope: cachescope.Scope, name: str) -> list[Run]:
    """What scenarios.py says (test_scenarios.py holds the scope to it), compared with the nearest key there was."""
    runs = lookups_of(scope)
    if name in ("inputs", "inputs_fx"):
        # x transposed: both inputs differ from the float64 run before, only x differs from the base.
        runs[3] = [line.replace(" example_inputs[1]", "") for line in runs[3]]
    return runs


def turned_without(runs: list[Run], dropped: set[str]) -> list[list[bool]]:
    """Which of the expected lines turn into hits: those all of whose fields are dropped, and graphs below such."""
    turned = []
    for run in runs:
        above = False
        flags = []
        for line in run:
            letter, _, verdict, *fields = [*line.split(), "", ""][: max(3, len(line.split()))]
            alone = verdict == "key_changed" and dropped.issuperset(f for f in fields if f != "<")
            above = alone if letter == "A" else above
            flags.append(alone or (above and line.split()[1] != "hit"))
        turned.append(flags)
    return turned


def turned_in(scope: cachescope.Scope, dropped: set[str]) -> list[list[bool]]:
    frame = scope.what_if(without=sorted(dropped)).frame
    assert frame["changed_side"].notna().all()
    runs = [frame.loc[frame["run"] == run, "changed_side"].tolist() for run in range(len(scope.runs))]
    return [[bool(flag) for flag in run] for run in runs]


def fields_of(line: str) -> set[str]:
    words = line.split()
    return set(words[3:]) - {"<"} if words[2:3] == ["key_changed"] else set()


CHANGED = [
    pytest.param(version, name, marks=() if version == "2.13.0" and name in QUICK else pytest.mark.slow)
    for version, name in CASES
    if any(fields_of(line) for run in VERSIONS[version][name] for line in run)
    # 2.13 has no AOTAutograd details there: see the test of unknown outcomes.
    and not (name == "trace_only" and version in ("2.13.0", "2.15.0"))
]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name"), CHANGED)
def test_a_field_turns_exactly_the_misses_it_made(version: str, name: str, recording: Recording) -> None:
    """Every single field that there is, those that never vary sampled."""
    scope = read_way(recording(version, name), "all")
    expected = expected_lines(scope, name)
    table = scope.replay.table
    others = sorted(set(table.fields) - set(table.varying))
    for field in [*table.varying, *others[::40]]:
        if field == "gm" and name in ONLY_GM_TELLS_APART:
            continue
        assert turned_in(scope, {field}) == turned_without(expected, {field}), field


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name"), CHANGED)
def test_of_several_changed_fields_only_all_help(version: str, name: str, recording: Recording) -> None:
    scope = read_way(recording(version, name), "all")
    expected = expected_lines(scope, name)
    sets = {frozenset(fields_of(line)) for run in expected for line in run if len(fields_of(line)) > 1}
    # The graph of inference is no entry for training, whatever is left out of its key.
    for fields in [each for each in sets if "fx_kwargs[is_inference]" not in each]:
        whole = turned_without(expected, set(fields))
        assert any(flag for run in whole for flag in run)
        assert turned_in(scope, set(fields)) == whole
        for field in fields:
            assert turned_in(scope, set(fields) - {field}) == turned_without(expected, set(fields) - {field})


def test_one_toggle_joins_four_ranks_whose_rank_leaks_into_a_config(recording: Recording) -> None:
    scope = read_way(recording("2.13.0", "rank_in_config"), "all")
    before = scope.what_if().frame
    found = scope.what_if(without="inductor_config[aot_inductor.*]")
    for cache in ("aotautograd", "fxgraph"):
        assert before.loc[before["cache"] == cache, "what_if_key"].nunique() == 4
        mine = found.frame[found.frame["cache"] == cache]
        assert mine["what_if_key"].nunique() == 1
        assert mine["outcome_after"].tolist() == ["full_miss", "hit", "hit", "hit"]
    assert found.by_run["hits_after"].tolist() == [0, 2, 2, 2]
    # torch generated the same code for each rank.
    assert found.warnings.empty
    ranking = scope.sensitivity()
    assert ranking["fields"].tolist() == [(OUTPUT_PATH,)]
    assert ranking["misses_alone"].tolist() == [6]
    assert ranking["time_alone_ns"][0] == found.frame["time_won_ns"].sum() > 0


def test_without_details_an_outcome_is_unknown_once_anything_is_toggled(recording: Recording) -> None:
    found = read_way(recording("2.13.0", "trace_only"), "trace").what_if(without=FUSION)
    assert found.frame["outcome_after"].fillna("unknown").tolist() == [
        # Nothing was stored before the first: that one missed under any key.
        *("full_miss", "full_miss", "hit", "hit"),
        *("unknown", "hit"),
    ]
    assert found.rates["undecided"].tolist() == [0, 1]
    assert "1 lookup cannot be known" in repr(found)


def test_a_field_that_only_separates_graphs_is_warned_of_first(recording: Recording) -> None:
    scope = read_way(recording("2.13.0", "graph_relu_tanh"), "all")
    found = scope.what_if(without="gm")
    (pair,) = found.warnings.to_dict("records")
    codes = scope.entries.set_index("entry")["code_key"]
    assert {pair["code_key"], pair["other_code_key"]} == {codes[pair["entry"]], codes[pair["other_entry"]]}
    assert pair["code_key"] != pair["other_code_key"]
    keys = scope.entries.set_index("entry")["cache_key"]
    assert (pair["cache_key"], pair["other_key"]) == (keys[pair["entry"]], keys[pair["other_entry"]])
    assert repr(found).startswith("Not safe: 1 pair of keys would become one")
    assert found._repr_html_().index("Not safe") < found._repr_html_().index("lookups hit")


@pytest.mark.parametrize(("version", "name"), [c for c in CASES if c[1] in ("combined", "combined_fx")])
def test_sensitivity_finds_sets_larger_than_asked_for(version: str, name: str, recording: Recording) -> None:
    scope = read_way(recording(version, name), "all")
    ranking = scope.sensitivity()
    sets = {frozenset(fields_of(line)) for run in lookups_of(scope) for line in run} - {frozenset()}
    assert {frozenset(fields) for fields in ranking["fields"]} == sets
    fewest = min(sets, key=len)
    needs_all = {frozenset(row.fields): row.needs_all for row in ranking.itertuples(index=False)}
    assert needs_all[fewest]


@pytest.mark.slow
def test_every_row_of_the_sensitivity_is_what_a_toggle_gives(recording: Recording) -> None:
    for name in ("tour", "three_changes", "inputs", "training", "deterministic"):
        scope = read_way(recording("2.13.0", name), "all")
        for row in scope.sensitivity().itertuples(index=False):
            frame = scope.what_if(without=list(row.fields)).frame
            assert row.misses_alone == frame["changed_side"].sum()
            time = frame["time_won_ns"].sum(min_count=1)
            assert (row.time_alone_ns == time) or (pd.isna(time) and pd.isna(row.time_alone_ns))
            assert frame.set_index("lookup")["changed_side"][row.example_lookup]


def test_a_scope_without_lookups_says_so(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip") / "cache")
    found = scope.what_if(without=FUSION)
    assert repr(found) == "no lookups were read, so none can be replayed"
    assert found.frame.empty and scope.sensitivity().empty


def test_frames_have_the_declared_columns(recording: Recording) -> None:
    scope = read_way(recording("2.13.0", "config_flip"), "all")
    found = scope.what_if(without=FUSION)
    frames = {
        "what_if": found.frame, "what_if_rates": found.rates, "what_if_causes": found.by_cause,
        "what_if_runs": found.by_run, "what_if_differences": found.differences,
        "what_if_warnings": found.warnings, "sensitivity": scope.sensitivity(),
    }  # fmt: skip
    for name, frame in frames.items():
        declared = cachescope.describe(name)
        assert frame.columns.tolist() == declared["column"].tolist()
        assert frame.dtypes.tolist() == declared["dtype"].map(pandas_type).tolist(), name
