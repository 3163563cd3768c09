"""What one process of a command finds of what another one stores. The processes are made by hand."""

from __future__ import annotations

from dataclasses import fields

import pytest

from cachescope.analysis.preflight.candidates import Candidate
from cachescope.analysis.preflight.left_behind import Beside
from cachescope.frames.recorded_rows import RunRow
from cachescope.readers.logs.preflight_notes import LookupNote

KEY = ("fxgraph", "f11")


def process(run: int, pid: int | None) -> RunRow:
    nothing = {one.name: None for one in fields(RunRow)}
    return RunRow(**{**nothing, "run": run, "pid": pid})  # type: ignore[arg-type]


def note(*ended: int, cache_dir: str = "/cache") -> LookupNote:
    return LookupNote(cache_dir=cache_dir, ended_before=frozenset(ended))


def seen(by: RunRow, its_note: LookupNote, stored_by: RunRow, their_note: LookupNote) -> list[str]:
    beside = Beside()
    beside.add(stored_by, their_note, KEY, Candidate("stored"))
    return [candidate.is_there for candidate in beside.under(by, its_note, KEY)]


FIRST, SECOND = process(0, 100), process(1, 101)


def test_a_process_finds_what_one_stored_that_had_ended_before() -> None:
    assert seen(SECOND, note(100), FIRST, note()) == ["yes"]


def test_it_does_not_find_what_one_stores_that_begins_after_its_end() -> None:
    assert seen(FIRST, note(), SECOND, note(100)) == []


@pytest.mark.parametrize(("by", "other"), [(FIRST, SECOND), (SECOND, FIRST)])
def test_of_processes_at_the_same_time_it_is_not_known(by: RunRow, other: RunRow) -> None:
    assert seen(by, note(), other, note()) == ["maybe"]


@pytest.mark.parametrize("ended", [(), (100,)])
def test_what_one_stores_in_another_directory_is_not_there(ended: tuple[int, ...]) -> None:
    assert seen(SECOND, note(*ended, cache_dir="/other"), FIRST, note()) == []


def test_what_it_stores_itself_is_no_others() -> None:
    assert seen(FIRST, note(), FIRST, note()) == []


def test_without_a_pid_nothing_is_in_turn() -> None:
    assert seen(process(0, None), note(), process(1, None), note()) == ["maybe"]
