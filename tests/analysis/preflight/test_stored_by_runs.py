"""What runs leave under their keys, and what one process of a command finds of another's. Made by hand."""

from dataclasses import replace
from typing import Any

import pytest

from cachescope.analysis.preflight.predicting import commands, stored_beside, stored_candidate
from cachescope.analysis.preflight.would_find import Candidate, stored_by_recorded
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.readers.logs.preflight_notes import LookupNote
from tests.analysis.plain_rows import lookup_row, run_row

KEY = ("fxgraph", "f11")


def process(run: int, pid: int | None) -> RunRow:
    return run_row(run, pid=pid)


def note(*ended: int, cache_dir: str = "/cache") -> LookupNote:
    return LookupNote(cache_dir=cache_dir, ended_before=frozenset(ended))


def seen(by: RunRow, its_note: LookupNote, stored_by: RunRow, their_note: LookupNote) -> list[str]:
    beside = [(stored_by, their_note, Candidate("stored"))]
    return [candidate.is_there for candidate in stored_beside(beside, by, its_note)]


FIRST, SECOND = process(0, 100), process(1, 101)


@pytest.mark.parametrize(("by", "its_note", "stored_by", "their_note", "found"), [
    # One that had ended before, and one that begins after the other's end.
    (SECOND, note(100), FIRST, note(), ["yes"]),
    (FIRST, note(), SECOND, note(100), []),
    # At the same time it is not known, nor without a pid.
    (FIRST, note(), SECOND, note(), ["maybe"]),
    (SECOND, note(), FIRST, note(), ["maybe"]),
    (process(0, None), note(), process(1, None), note(), ["maybe"]),
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
    assert seen(SECOND, replace(note(100), **asks), FIRST, replace(note(), **of_other)) == found


def test_what_another_stores_is_said_to_be_its_own() -> None:
    beside = [(FIRST, note(), Candidate("stored", guards="L['t0'] > 1"))]
    (after,), (meanwhile,) = (list(stored_beside(beside, SECOND, its)) for its in (note(100), note()))
    assert after == Candidate("what run 0 of the same command would store", guards="L['t0'] > 1")
    assert meanwhile.what == after.what
    assert meanwhile.why_not == "they run at the same time, and which is first is not known"


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
    ({"compile_ended": False}, ("maybe", "its compile had not ended when the log did")),
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
    recorded = stored_by_recorded(
        [looked_up(**one, lookup=at, guards_expr="L['t0'] > 1") for at, one in enumerate(told)], []
    )
    assert recorded[KEY] == [
        Candidate("what run 7 had found", guards="L['t0'] > 1"),
        Candidate("what run 7 had stored", are_guards_known=False),
    ]
    assert set(recorded) == {KEY, ("fxgraph", "f22")}


def test_an_aotautograd_entry_points_to_the_graphs_that_were_looked_up_for_it() -> None:
    rows = [
        looked_up(lookup=0, cache="aotautograd", cache_key="a11"),
        looked_up(lookup=1, cache_key="f11", aot_lookup=0),
        looked_up(lookup=2, cache_key="f22", aot_lookup=0, outcome="hit"),
        looked_up(lookup=3, cache_key="f11", aot_lookup=0),
        # Bypassed, so it has no key; for another entry; for none.
        looked_up(lookup=4, cache_key=None, aot_lookup=0, outcome="bypass"),
        looked_up(lookup=6, cache_key="f33", aot_lookup=5),
        looked_up(lookup=7, cache_key="f44"),
        # Another of the same key, of which no graphs are recorded.
        looked_up(lookup=8, cache="aotautograd", cache_key="a11"),
    ]
    made = stored_by_recorded(rows, [])["aotautograd", "a11"]
    assert [one.graphs for one in made] == [(("f11", None), ("f22", None)), ()]


def test_what_a_miss_would_store() -> None:
    noted, graphs = replace(note(), stored_guards="L['t0'] > 1"), [("f11", "L['t0'] > 1")]
    fx, aot = looked_up(), looked_up(cache="aotautograd")
    of_itself = "stored by this run itself"
    found = stored_candidate(aot, noted, graphs, "yes")
    assert found == Candidate(of_itself, guards="L['t0'] > 1", graphs=tuple(graphs))
    why = "whether the run would store it is not known"
    assert stored_candidate(fx, note(), graphs, "maybe") == Candidate(of_itself, "maybe", why)
    assert stored_candidate(fx, replace(noted, stored_guards=""), (), "yes").guards is None
