"""The frame lookups with what pre-flights predict: their lookups and a directory in, rows out; made by hand."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.preflight.predicting import (
    commands,
    stored_beside,
    stored_candidate,
    with_predictions,
)
from cachescope.analysis.preflight.would_find import Candidate, stored_by_recorded
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.readers.logs.notes import LookupNote
from cachescope.table import Table
from cachescope.verdict_kinds import OTHER_KEY
from tests.analysis.plain_rows import context_row, lookup_row, run_row
from tests.made import Details, Made, aot, entry, fx, run, scope_of

SECOND_NS = 10**9


def asked(key: str, outcome: str = "full_miss", **told: Any) -> Made:
    """A lookup of a pre-flight, which finds nothing, with its note."""
    note = {"lookup": {"cache": "fxgraph", "key": key, "cache_dir": "/cache"}}
    return fx(key, outcome, at=0, took=0.25, preflight_note=json.dumps(note), **told)


def plain(value: Any) -> Any:
    return None if pd.isna(value) else value


REMOTE = "redis://host:1/0"


def stored_remotely(key: str, **told: Any) -> Any:
    return entry("fxgraph", key, root=REMOTE, path=f"{REMOTE}/pt2:fx-graph-v1::{key}:c1", **told)


def remotely(key: str, **noted: Any) -> Made:
    """A lookup of a pre-flight of a program that asks a remote cache, by itself or as noted."""
    asks = {"cache": "fxgraph", "key": key, "cache_dir": "/cache", "sizes": [4], "remote": True} | noted
    stores = {"cache": "fxgraph", "key": key, "guards": "L['t0'] > 3"}
    note = json.dumps({"lookup": asks, "stored": stores})
    return fx(key, "full_miss", at=0, took=0.25, preflight_note=note)


def outcomes(lookups: list[Made], *entries: Any) -> list[str]:
    made: list[str] = scope_of(run(*lookups, is_preflight=True), entries=entries).lookups["outcome"].tolist()
    return made


def test_a_predicted_hit_saves_what_its_entry_took() -> None:
    scope = scope_of(
        run(asked("f11"), asked("f22"), asked("f33"), asked("f44", "bypass", bypass_reason="no"), is_preflight=True),
        entries=[
            entry("fxgraph", "f99", time_taken_ns=9 * SECOND_NS),
            entry("fxgraph", "f11", time_taken_ns=3 * SECOND_NS),
            # Of an older torch, which stored no time; one that torch cannot load saves nothing.
            entry("fxgraph", "f22"),
            entry("fxgraph", "f33", status="damaged", damage="truncated", time_taken_ns=5 * SECOND_NS),
            entry("fxgraph", "f44", time_taken_ns=7 * SECOND_NS),
        ],
    )  # fmt: skip
    lookups = scope.lookups
    assert lookups["outcome"].tolist() == ["would_hit", "would_hit", "would_miss", "would_bypass"]
    assert [plain(value) for value in lookups["predicted_entry"]] == [1, 2, None, None]
    assert [plain(value) for value in lookups["time_saved_ns"]] == [3 * SECOND_NS, None, None, None]
    # Its status is what torch would print after the real run.
    assert [plain(value) for value in lookups["status_detailed"]] == ["hit", "hit", "full_miss", None]
    # The stand-in for the compiler took no time of a compile.
    assert lookups["time_taken_ns"].isna().all()


@pytest.mark.parametrize(("lookup", "outcome", "why"), [
    (asked("f11", "bypass", bypass_reason="custom pass"), "would_bypass", "custom pass"),
    (asked("f11", "bypass"), "would_bypass", "torch does not say why"),
    (asked("f11", "disabled"), "disabled", "its caches are off"),
    (remotely("f11", brought=True), "not_known", "the program itself puts an entry under this key"),
    (remotely("f11", without_values=True), "not_known", "without weights"),
    (remotely("f11", cache_dir="/cache"), "would_hit", "the FX entry entry… in /cache"),
])  # fmt: skip
def test_what_is_predicted_of_a_lookup_and_why(lookup: Made, outcome: str, why: str) -> None:
    told = scope_of(run(lookup, is_preflight=True), entries=[entry("fxgraph", "f11")]).lookups
    assert told["outcome"].tolist() == [outcome]
    assert why in told["prediction"][0]


def test_a_run_finds_what_it_stored_itself_if_torch_would_store_it() -> None:
    beside = entry("fxgraph", "f99")
    assert outcomes([asked("f11"), asked("f11")], beside) == ["would_miss", "would_miss"]
    stored = [remotely("f11", remote=False), remotely("f11", remote=False)]
    assert outcomes(stored, beside) == ["would_miss", "would_hit"]


def test_an_entry_without_graphs_is_stored_at_once() -> None:
    of = {"cache": "aotautograd", "key": "a11"}
    note = json.dumps({"lookup": {**of, "cache_dir": "/cache"}, "stored": {**of, "guards": ""}})
    made = [aot("a11", at=0, took=0.5, preflight_note=note) for _ in range(2)]
    assert outcomes(made, entry("fxgraph", "f99")) == ["would_miss", "would_hit"]


def test_a_pre_flight_stored_nothing_for_another_one() -> None:
    runs = [run(asked("f11"), asked("f11"), is_preflight=True) for _ in range(2)]
    verdicts = scope_of(*runs, entries=[entry("fxgraph", "f99")]).misses["verdict"].tolist()
    assert verdicts == ["details_not_recorded", "entry_unavailable"] * 2


def test_a_pre_flight_is_of_the_one_directory_that_it_is_checked_against() -> None:
    entries = [entry("fxgraph", "f11"), entry("fxgraph", "f11", root="/other")]
    runs = [run(asked("f11"), is_preflight=True), run(fx("f22", at=9), cache_dir="/own")]
    assert scope_of(*runs, entries=entries[:1]).runs["cache_dir"].tolist() == ["/cache", "/own"]
    # Of several it is in the one that it used first.
    assert scope_of(*runs, entries=entries).runs["cache_dir"].tolist() == ["/cache", "/own"]
    unread = [entry("fxgraph", "f11", root=root) for root in ("/other", "/third")]
    assert scope_of(*runs, entries=unread).runs["cache_dir"].isna().tolist() == [True, False]


def test_what_is_missed_in_another_directory_of_the_program_is_not_said_to_be_deleted() -> None:
    lookups = [remotely("f11", remote=False, cache_dir=folder) for folder in ("/cache", "/other", "/cache")]
    entries = [entry("fxgraph", "f11"), entry("fxgraph", "f22", root="/other")]
    told = scope_of(run(*lookups, is_preflight=True), entries=entries)
    assert told.lookups["outcome"].tolist() == ["would_hit", "would_miss", "would_hit"]
    assert [plain(folder) for folder in told.lookups["cache_dir"]] == [None, "/other", None]
    (missed,) = told.misses.to_dict("records")
    assert (missed["verdict"], missed["kind"]) == ("entry_unavailable", "another directory")
    assert "/cache, not /other" in missed["reason"]


@pytest.mark.parametrize(("beside", "ways"), [
    (entry("fxgraph", "f22"), ["would_miss", "would_hit"]),
    # It may be loaded, and nothing looked up then.
    (entry("precompile", "0c6f"), ["not_known", "not_known"]),
    (entry("precompile", "0c6f", root="/other"), ["would_miss", "would_hit"]),
])  # fmt: skip
def test_what_is_precompiled_finds_graphs_unless_it_is_loaded_itself(
    beside: EntryRow, ways: list[str]
) -> None:
    """As torch 2.13 and 2.15 do: of each AOTAutograd key a random name is part, and the graphs below are looked up."""
    above, below = (
        json.dumps({"lookup": {"cache": cache, "key": key, "cache_dir": "/cache", "precompiled": True}})
        for cache, key in (("aotautograd", "a11"), ("fxgraph", "f11"))
    )
    made = aot("a11", at=0, took=1, preflight_note=above), fx("f11", at=0, took=0.5, preflight_note=below)
    entries = [entry("fxgraph", "f11"), beside]
    told = scope_of(run(*made, is_preflight=True), entries=entries).lookups
    assert told["outcome"].tolist() == ways
    assert all(told["prediction"].str.startswith("with caching_precompile")[:1])


def test_a_graph_whose_entry_is_gone_is_no_first_lookup() -> None:
    note = json.dumps({"lookup": {"cache": "aotautograd", "key": "a11", "cache_dir": "/cache"}})
    lookups = [aot("a11", at=0, took=1, preflight_note=note), asked("f11")]
    entries = [entry("aotautograd", "a11", fx_keys=("f11",)), entry("fxgraph", "f22")]
    told = scope_of(run(*lookups, is_preflight=True), entries=entries)
    assert told.lookups["cache_key"].tolist() == ["a11", "f11", "f11"]
    assert told.misses["verdict"].tolist() == ["entry_unavailable"] * 3
    assert told.misses["kind"].tolist() == ["graph entry", "not known", "not known"]


def test_a_process_may_find_what_another_one_of_the_command_would_store() -> None:
    note = {"lookup": {"cache": "fxgraph", "key": "f11", "cache_dir": "/cache"}}
    stores = note | {"stored": {"cache": "fxgraph", "key": "f11", "guards": ""}}
    one, other, third = (
        fx("f11", "full_miss", at=at, took=0.25, preflight_note=json.dumps(noted) if noted else None)
        for at, noted in ((0, stores), (1, note), (2, None))
    )
    runs = [run(lookup, is_preflight=True) for lookup in (one, other, third)]
    lookups = scope_of(*runs, entries=[entry("fxgraph", "f99")]).lookups
    # Only the second may find what a process beside it stores; of the third, nothing was noted.
    assert lookups["outcome"].tolist() == ["would_miss", "not_known", "not_known"]
    assert "run 0 of the same command" in lookups["prediction"][1]


def test_what_was_saved_is_not_checked_again(tmp_path: Path) -> None:
    """Nor against a directory that has changed since."""
    hit, miss = asked("f11"), asked("f22")
    scope = scope_of(run(hit, miss, is_preflight=True), entries=[entry("fxgraph", "f11")])
    scope.save(tmp_path / "saved")
    saved = cachescope.read(tmp_path / "saved")
    assert saved.lookups["prediction"].tolist() == scope.lookups["prediction"].tolist()
    tables = replace(saved.tables, entries=Table(EntryRow, []))
    assert [row.outcome for row in with_predictions(tables).lookups.rows] == ["would_hit", "would_miss"]


@pytest.mark.parametrize(("made_on", "device", "outcome"), [
    ("AVX512", "cpu", "not_known"),
    ("AVX2", "cpu", "would_hit"),
    ("AVX512", "cuda", "would_hit"),
    # Code without vectors runs on any of them.
    ("DEFAULT", "cpu", "would_hit"),
])  # fmt: skip
def test_what_a_run_on_another_cpu_recorded_may_not_load(made_on: str, device: str, outcome: str) -> None:
    """No key holds it: with ATEN_CPU_CAPABILITY=avx2, torch 2.12 finds such an entry and cannot compile its code."""
    asks = {"cache": "fxgraph", "key": "f11", "cache_dir": "/cache", "cpu": "AVX2 x86_64"}
    note = json.dumps({"lookup": asks})
    tensor = f"TensorMetadata(device=device(type='{device}'))"
    stored = fx("f11", details={"gm": "x", "example_inputs[0]": tensor}, at=1)
    tables = scope_of(run(stored), run(fx("f11", at=9, preflight_note=note), is_preflight=True)).tables
    settings = json.dumps({"torch.backends.cpu.get_cpu_capability()": made_on})
    context = context_row(0, run=0, settings=settings, platform="Linux-x86_64")
    asked_again = [replace(row, prediction=None, outcome="full_miss") for row in tables.lookups.rows]
    tables = replace(tables, lookups=Table(LookupRow, asked_again), contexts=Table(ContextRow, [context]))
    assert with_predictions(tables).lookups.rows[-1].outcome == outcome


def test_a_remote_cache_is_asked_where_the_program_asks_one() -> None:
    made = run(remotely("f11"), remotely("f22"), asked("f11"), is_preflight=True)
    told = scope_of(made, entries=[stored_remotely("f11")]).lookups
    assert told["outcome"].tolist() == ["would_hit", "would_miss", "would_miss"]
    assert told["prediction"].tolist()[1:] == [
        f"no entry under this key in {REMOTE}",
        f"the FX entry f11… in {REMOTE} is under this key, but the program asks no remote cache for it",
    ]


def test_a_remote_cache_that_was_not_read_leaves_a_miss_open() -> None:
    beside = entry("fxgraph", "f99")
    assert outcomes([remotely("f11"), remotely("f99")], beside) == ["not_known", "would_hit"]
    assert outcomes([remotely("f11")], beside, stored_remotely("f22")) == ["would_miss"]


def test_a_value_in_a_remote_cache_is_replaced_by_one_with_other_guards() -> None:
    """Alone it has one value under a key; a directory beside it keeps both."""
    for_few = stored_remotely("f11", guards_expr="L['t0'] < 4")
    few, many = [2], [5]
    alone = [remotely("f11", not_local=True, sizes=sizes) for sizes in (few, many, few)]
    assert outcomes(alone, for_few) == ["would_hit", "would_miss", "would_miss"]
    told = scope_of(run(*alone[:2], is_preflight=True), entries=[for_few]).lookups
    assert told["status_detailed"].tolist() == ["hit", "guard_miss"]
    again = [remotely("f11", sizes=sizes) for sizes in (few, many, many)]
    assert outcomes(again, for_few) == ["would_hit", "would_miss", "would_hit"]


def test_guards_that_would_fail_are_why_it_would_miss() -> None:
    for_few = stored_remotely("f11", guards_expr="L['t0'] < 4")
    scope = scope_of(run(remotely("f11", sizes=[5]), is_preflight=True), entries=[for_few])
    (miss,) = scope.misses.to_dict("records")
    assert (miss["verdict"], miss["kind"], miss["evidence"]) == ("guard_failed", "f11", "inferred")
    assert "no guards hold for t0 = 5: L['t0'] < 4" in miss["reason"]


def test_the_graphs_of_an_entry_are_looked_up_in_the_directory() -> None:
    """Also where the entry itself is looked up in a remote cache alone."""
    asks = {"cache": "aotautograd", "key": "a11", "cache_dir": "/cache", "not_local": True, "remote": True}
    made = aot("a11", at=0, took=0.5, preflight_note=json.dumps({"lookup": asks}))
    path = f"{REMOTE}/pt2:autograd-v1::a11:c1"
    stored = entry("aotautograd", "a11", root=REMOTE, path=path, fx_keys=("f11",))
    assert outcomes([made], stored, entry("fxgraph", "f11")) == ["would_hit", "would_hit"]
    assert outcomes([made], stored, entry("fxgraph", "f22"))[0] == "would_miss"
    # To torch the entry itself was found, also where a graph of it is not there.
    for graph, status in (("f11", "hit"), ("f22", "full_miss")):
        told = scope_of(run(made, is_preflight=True), entries=[stored, entry("fxgraph", graph)]).lookups
        assert told["status_detailed"].tolist() == ["hit", status]
    # Of itself nothing is looked up there.
    assert outcomes([made], entry("aotautograd", "a11"), stored_remotely("f99")) == ["would_miss"]


OPTION = "inductor_config[epilogue_fusion]"
WAS: Details = {"gm": "code", "example_inputs[0]": "Tensor(4)", OPTION: "True"}


def verdicts(*lookups: Made) -> list[tuple[str, tuple[str, ...]]]:
    misses = scope_of(run(*lookups, is_preflight=True), entries=[stored_remotely("f11", details=WAS)]).misses
    return [(row["verdict"], tuple(row["changed"])) for row in misses.to_dict("records")]


def changed(**noted: Any) -> Made:
    return replace(remotely("f22", **noted), details={**WAS, OPTION: "False"})


def test_a_predicted_miss_is_compared_with_what_a_remote_cache_holds() -> None:
    assert verdicts(changed()) == [("key_changed", (OPTION,))]


def test_a_predicted_miss_is_compared_with_what_a_mega_cache_holds() -> None:
    """Its entries have no time: the program would load them."""
    missed = asked("f22", details={**WAS, OPTION: "False"})
    scope = scope_of(run(missed, is_preflight=True), entries=[entry("fxgraph", "f11", WAS)])
    (miss,) = scope.misses.to_dict("records")
    assert (miss["verdict"], [*miss["changed"]]) == ("key_changed", [OPTION])
    assert miss["evidence_text"] == "predicted: the program would load the file that holds the entry"


def test_what_is_not_asked_is_no_reason() -> None:
    """No lookup of a program that asks no remote cache, nor one that was made: nothing says what lay there then."""
    assert verdicts(changed(remote=False)) == [("first_lookup", ())]
    made = fx("f22", "full_miss", at=0, details={**WAS, OPTION: "False"})
    (miss,) = scope_of(run(made), entries=[stored_remotely("f11", details=WAS)]).misses.to_dict("records")
    assert (miss["verdict"], miss["kind"]) == ("first_lookup", OTHER_KEY)


KEY = ("fxgraph", "f11")


def process(run: int, pid: int | None) -> RunRow:
    return run_row(run, pid=pid)


def note(*ended: int, cache_dir: str = "/cache") -> LookupNote:
    return LookupNote(cache_dir=cache_dir, ended_before=frozenset(ended))


def seen(by: RunRow, its_note: LookupNote, stored_by: RunRow, their_note: LookupNote) -> list[str]:
    beside = [(stored_by, their_note, Candidate("stored"))]
    return [candidate.is_there for candidate in stored_beside(beside, by, its_note)]


FIRST, SECOND = process(0, 100), process(1, 101)
STORES = note()._replace(is_stored=True)


@pytest.mark.parametrize(("by", "its_note", "stored_by", "their_note", "found"), [
    # One that had ended before, and one that begins after the other's end.
    (SECOND, note(100), FIRST, note(), ["yes"]),
    (FIRST, note(), SECOND, note(100), []),
    # At the same time it is not known, nor without a pid.
    (FIRST, note(), SECOND, note(), ["maybe"]),
    (SECOND, note(), FIRST, note(), ["maybe"]),
    (process(0, None), note(), process(1, None), note(), ["maybe"]),
    # One of them stores it, whichever is first: that is taken to be the first run, unless guards may tell otherwise.
    (FIRST, STORES, SECOND, STORES, []),
    (SECOND, STORES, FIRST, STORES, ["maybe"]),
    (FIRST, STORES._replace(stored_guards="L['t0'] > 1"), SECOND, STORES, ["maybe"]),
    # In another directory, whether it had ended or not.
    (SECOND, note(cache_dir="/other"), FIRST, note(), []),
    (SECOND, note(100, cache_dir="/other"), FIRST, note(), []),
    # What it stores itself is no other's.
    (FIRST, note(), FIRST, note(), []),
])  # fmt: skip
def test_what_a_process_finds_of_another(
    by: RunRow, its_note: LookupNote, stored_by: RunRow, their_note: LookupNote, found: list[str]
) -> None:
    assert seen(by, its_note, stored_by, their_note) == found


@pytest.mark.parametrize(("asks", "of_other", "found"), [
    ({}, {"is_remote": True}, ["yes"]),
    ({"is_remote": True}, {"is_remote": True, "cache_dir": "/other"}, ["yes"]),
    ({"is_remote": True}, {"cache_dir": "/other"}, []),
    ({"is_local": False}, {}, []),
    ({}, {"is_local": False}, []),
    ({"is_local": False, "is_remote": True}, {"is_local": False, "is_remote": True}, ["yes"]),
])  # fmt: skip
def test_what_one_stores_is_found(asks: dict[str, Any], of_other: dict[str, Any], found: list[str]) -> None:
    assert seen(SECOND, note(100)._replace(**asks), FIRST, note()._replace(**of_other)) == found


def test_what_another_stores_is_said_to_be_its_own() -> None:
    beside = [(FIRST, note(), Candidate("stored", guards="L['t0'] > 1"))]
    (after,), (meanwhile,) = (list(stored_beside(beside, SECOND, its)) for its in (note(100), note()))
    assert after == Candidate("what run 0 of the same command would store", guards="L['t0'] > 1")
    assert meanwhile.what == after.what
    assert meanwhile.why_not == "they run at the same time, and which is first is not known"


def test_equal_keys_of_ranks_are_no_change() -> None:
    """Each rank has a directory of its own, and one of them lacks what the others have."""
    told_of = asked("f11", details=WAS)
    notes = [told_of.told["preflight_note"].replace("/cache", f"/{rank}") for rank in range(3)]
    ranks = [replace(told_of, told={"preflight_note": note}) for note in notes]
    runs = [run(replace(one, at=at), is_preflight=True) for at, one in enumerate(ranks)]
    scope = scope_of(*runs, entries=[entry("fxgraph", "f11", WAS, root=f"/{rank}") for rank in (0, 2)])
    assert scope.lookups["outcome"].tolist() == ["would_hit", "not_known", "would_hit"]
    assert scope.lookups["prediction"][1] == "it looks into a directory that was not read: /1"
    cold = scope_of(*runs, entries=[entry("fxgraph", "f22", root="/0"), entry("fxgraph", "f22", root="/1")])
    assert {*zip(cold.misses["verdict"], cold.misses["kind"], strict=True)} == {("first_lookup", "")}


def test_processes_of_one_folder_are_of_one_command() -> None:
    sources = ("/a/1.log", "/b/1.log", "/a/3.log")
    runs = [replace(process(number, number), source=source) for number, source in enumerate(sources)]
    assert [[one.run for one in command] for command in commands(runs)] == [[0, 2], [1]]


def looked_up(**told: Any) -> LookupRow:
    return lookup_row(**{"lookup": 1, "run": 7, "cache_key": "f11"} | told)


@pytest.mark.parametrize(("told", "left"), [
    ({}, ("yes", "")),
    ({"outcome": "guard_miss"}, ("yes", "")),
    ({"compile_ended": True}, ("yes", "")),
    ({"compile_ended": False}, ("maybe", "its log ends within that compile: the process ended there, or the rest is missing")),
    ({"outcome": "hit", "compile_ended": False}, ("yes", "")),
    ({"save_bypass": "no"}, None),
    ({"save_error": "OSError: full"}, None),
    ({"compile_error": "ValueError: no"}, None),
    ({"outcome": "bypass"}, None),
    ({"outcome": "would_miss"}, None),
])  # fmt: skip
def test_what_a_recorded_lookup_left_behind(told: dict[str, Any], left: tuple[str, str] | None) -> None:
    found = stored_by_recorded([looked_up(**told)], [])[KEY]
    assert [(one.is_there, one.why_not) for one in found] == ([] if left is None else [left])


def test_guards_are_known_of_what_was_found_alone() -> None:
    """Those at a miss are the ones that failed, not those of what it stored."""
    told = [{"outcome": "hit"}, {"outcome": "guard_miss"}, {"cache_key": "f22", "outcome": "hit"}]
    rows = [looked_up(**one, lookup=at, guards_expr="L['t0'] > 1") for at, one in enumerate(told)]
    recorded = stored_by_recorded(rows, [])
    assert recorded[KEY] == [
        Candidate("what run 7 had found", guards="L['t0'] > 1", recorded=rows[0]),
        Candidate("what run 7 had stored", are_guards_known=False, recorded=rows[1]),
    ]
    assert set(recorded) == {KEY, ("fxgraph", "f22")}


def test_an_aotautograd_entry_points_to_the_graphs_that_were_looked_up_for_it() -> None:
    rows = [
        looked_up(lookup=0, cache="aotautograd", cache_key="a11"),
        looked_up(lookup=1, cache_key="f11", aot_lookup=0),
        looked_up(lookup=2, cache_key="f22", aot_lookup=0, outcome="hit"),
        looked_up(lookup=3, cache_key="f11", aot_lookup=0),
        # Bypassed, so it has no key, and the entry above it is not stored; for another entry; for none.
        looked_up(lookup=9, cache="aotautograd", cache_key="a22"),
        looked_up(lookup=4, cache_key=None, aot_lookup=9, outcome="bypass"),
        looked_up(lookup=6, cache_key="f33", aot_lookup=5),
        looked_up(lookup=7, cache_key="f44"),
        # Another of the same key, of which no graphs are recorded.
        looked_up(lookup=8, cache="aotautograd", cache_key="a11"),
    ]
    made = stored_by_recorded(rows, [])
    assert [one.graphs for one in made["aotautograd", "a11"]] == [(("f11", None), ("f22", None)), ()]
    assert ("aotautograd", "a22") not in made


def test_what_a_miss_would_store() -> None:
    noted, graphs = note()._replace(stored_guards="L['t0'] > 1"), [("f11", "L['t0'] > 1")]
    fx, aot = looked_up(), looked_up(cache="aotautograd")
    of_itself = "stored by this run itself"
    found = stored_candidate(aot, noted, graphs, "yes")
    assert found == Candidate(of_itself, guards="L['t0'] > 1", graphs=tuple(graphs))
    why = "whether the run would store it is not known"
    assert stored_candidate(fx, note(), graphs, "maybe") == Candidate(of_itself, "maybe", why)
    assert stored_candidate(fx, noted._replace(stored_guards=""), (), "yes").guards is None
