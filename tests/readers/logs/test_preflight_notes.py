"""Notes of a pre-flight: whatever they hold, they are notes of a lookup or of none, and never an exception."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.logs.notes import LookupNote, PreflightNotes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
NOTE = st.fixed_dictionaries(
    {},
    optional={
        name: JSON
        | st.fixed_dictionaries({}, optional={"cache": JSON, "key": JSON, "sizes": JSON, "guards": JSON})
        for name in ("lookup", "stored", "preflight")
    },
)


@pytest.mark.slow
@given(st.text() | JSON.map(json.dumps) | NOTE.map(json.dumps))
def test_any_text_is_a_note(text: str) -> None:
    note = LookupNote.of_json(text)
    assert all(size is None or isinstance(size, (bool, int, float)) for size in note.sizes)


def test_a_note_that_is_nested_too_deep_says_nothing() -> None:
    assert LookupNote.of_json("[" * 100_000) == LookupNote()


@pytest.mark.sweep
@given(st.lists(NOTE))
def test_any_notes_can_be_taken(taken: list[dict[str, Any]]) -> None:
    notes = PreflightNotes()
    for note in taken:
        notes.add(note)
    lookup = LookupRow(cache="fxgraph", cache_key="f11")
    notes.tell_of(lookup)
    of_it = [note for note in taken if _is_about(note.get("lookup"), lookup)]
    assert (lookup.preflight_note is not None) == bool(of_it)


def _is_about(note: object, lookup: LookupRow) -> bool:
    return isinstance(note, dict) and (note.get("cache"), note.get("key")) == (lookup.cache, lookup.cache_key)


def lookup_note(**told: Any) -> dict[str, Any]:
    return {"lookup": {"cache": "fxgraph", "key": "f11", **told}}


def test_what_would_be_stored_is_noted_before_the_record_or_after_it() -> None:
    stored = {"stored": {"cache": "fxgraph", "key": "f11", "guards": "t0 > 1"}}
    for is_before in (True, False):
        notes, lookup = PreflightNotes(), LookupRow(cache="fxgraph", cache_key="f11")
        notes.add(lookup_note(sizes=[3]))
        if is_before:
            notes.add(stored)
        notes.tell_of(lookup)
        if not is_before:
            notes.add(stored)
        assert lookup.preflight_note is not None
        found = LookupNote.of_json(lookup.preflight_note)
        assert (found.sizes, found.is_stored, found.stored_guards) == ((3,), True, "t0 > 1")


def test_two_lookups_of_one_key_have_notes_of_their_own() -> None:
    notes = PreflightNotes()
    lookups = [LookupRow(cache="fxgraph", cache_key="f11") for _ in range(2)]
    for size, lookup in enumerate(lookups):
        notes.add(lookup_note(sizes=[size]))
        notes.tell_of(lookup)
    assert [LookupNote.of_json(one.preflight_note or "").sizes for one in lookups] == [(0,), (1,)]


STORED = {"cache": "fxgraph", "key": "f11"}


@pytest.mark.parametrize(("note", "wanted"), [
    ({}, {}),
    ({"sizes": [3, 1.5, "7", None]}, {"sizes": (3, 1.5, None, None)}),
    ({"sizes": 3}, {}),
    ({"cache_dir": "/c"}, {"cache_dir": "/c"}),
    ({"not_local": True}, {"is_local": False}),
    ({"not_local": False}, {}),
    ({"remote": True}, {"is_remote": True}),
    ({"guards_skipped": True}, {"skips_guards": True}),
    ({"brought": True}, {"open": "brought"}),
    ({"without_values": True}, {"open": "without_values"}),
    ({"precompiled": True, "counts_read": True}, {"open": "counts_read"}),
    ({"counts_read": False}, {}),
    ({"stored": {}}, {}),
    ({"stored": STORED}, {"is_stored": True}),
    ({"stored": {**STORED, "guards": "g"}}, {"is_stored": True, "stored_guards": "g"}),
    ({"stored": {**STORED, "why_not": "no"}}, {}),
    ({"stored": {**STORED, "why_not": ""}}, {}),
])  # fmt: skip
def test_what_a_note_says(note: dict[str, Any], wanted: dict[str, Any]) -> None:
    of_lookup = {name: value for name, value in note.items() if name != "stored"}
    text = json.dumps({**lookup_note(**of_lookup), "stored": note.get("stored")})
    assert LookupNote.of_json(text) == LookupNote(**wanted)


@pytest.mark.parametrize(
    ("after", "found"), [([7, 8], {7, 8}), ([7, True, "8", 1.5], {7}), (None, set()), ("78", set())]
)
def test_the_processes_that_had_ended_are_numbers(after: object, found: set[int]) -> None:
    assert LookupNote.of_json(json.dumps(lookup_note(after=after))).ended_before == found


@pytest.mark.slow
@pytest.mark.parametrize("cut", [0.2, 0.5, 0.7, 0.9])
def test_a_recorded_pre_flight_that_was_cut_invents_nothing(cut: float, tmp_path: Path) -> None:
    with tarfile.open(Path(__file__).parents[2] / "data" / "preflights" / "2.13.0.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    whole = cachescope.read(tmp_path / "as_baked", tmp_path / "cache").lookups
    (trace,) = (tmp_path / "as_baked").rglob("dedicated_log_torch_trace_*.log")
    trace.write_bytes(trace.read_bytes()[: int(trace.stat().st_size * cut)])
    found = cachescope.read(tmp_path / "as_baked", tmp_path / "cache")
    assert set(found.lookups["outcome"]) <= {"would_hit", "not_known"}
    assert set(found.lookups["cache_key"].dropna()) <= set(whole["cache_key"])
