"""The entries of all cells, and the lookups as a replay takes them: lookups and entries of a directory in; made by hand."""

from dataclasses import replace
from typing import Any

import pytest

from cachescope.analysis.history.directory import HIT, MISS
from cachescope.analysis.history.history import History
from cachescope.analysis.history.timeline import NEVER
from cachescope.analysis.what_if.cells import OTHER, ReplayColumns
from cachescope.analysis.what_if.replay import Replay, Replayed
from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.key_fields import Removed
from tests.analysis.plain_rows import entry_row, history_of, run_row
from tests.analysis.what_if.test_replay import hash_of, row
from tests.made import component

STORE = HashDetails()
for number in range(11):
    of_9 = {"fx_kwargs[is_backward]": "False", "fx_kwargs[is_inference]": "True"} if number == 9 else {}
    STORE.add(component(field, text) for field, text in {"x": str(number), **of_9}.items())


def miss(key: str, time: int, taken: int | None = 10, **told: Any) -> dict[str, Any]:
    return {"cache_key": key, "time": time, "time_taken_ns": taken, "outcome": "full_miss", **told}


def hit(key: str, time: int, **told: Any) -> dict[str, Any]:
    return {"cache_key": key, "time": time, "outcome": "hit", **told}


def stored(number: int, key: str, time: int | None, **told: Any) -> EntryRow:
    usual = {"cache": "fxgraph", "root": "d", "path": f"/d/{key}/{number}", "modified_time": time}
    return entry_row(number, cache_key=key, **(usual | told))


def rows_of(*lookups: dict[str, Any]) -> list[LookupRow]:
    """Each in a run of its own, and of one directory, if nothing else is said."""
    return [
        replace(row(at, at, 0, "fxgraph", "", False, None, None, None), **told)
        for at, told in enumerate(lookups)
    ]


def history(
    *lookups: dict[str, Any], entries: tuple[EntryRow, ...] = (), dirs: tuple[str | None, ...] = ()
) -> History:
    rows = rows_of(*lookups)
    named = dirs or ("d",) * len(rows)
    runs = [run_row(at, cache_dir=directory) for at, directory in enumerate(named)]
    return history_of(rows, STORE, entries=entries, runs=runs)


def test_of_several_entries_of_a_key_the_first_counts() -> None:
    """Under the same key, the first lookup would have found the entry that lay there, whatever came later."""
    store = HashDetails()
    one, other = (store.add([f"[{hash_of(f'x{n}')}] x: {n}"])[0] for n in range(2))
    lookups = miss("f2", 60, detail_set=other), hit("f1", 100, detail_set=one)
    for times, outcome in (((50, 80), HIT), ((80, 50), HIT), ((70, 80), MISS)):
        entries = tuple(stored(number, "f1", time) for number, time in enumerate(times))
        found = history_of(
            rows_of(*lookups), store, entries=entries, runs=[run_row(at, cache_dir="d") for at in (0, 1)]
        )
        assert Replayed(Replay(found), Removed(frozenset({"x"}))).after == [outcome, HIT]


def test_the_guards_of_what_each_lookup_stored() -> None:
    lookups = [miss("f1", 100), hit("f1", 200, guards_expr="a"), miss("f2", 300), hit("f3", 400)]
    cells = Replay(history(*lookups)).cells.every
    assert {entry.source: entry.guards for cell in cells for entry in cell.entries} == {0: "a", 2: "", -1: ""}


def recorded(*lookups: dict[str, Any], entries: tuple[EntryRow, ...] = ()) -> ReplayColumns:
    return ReplayColumns(history(*lookups, entries=entries))


def test_outcomes_and_what_was_stored() -> None:
    found = recorded(
        hit("f1", 1), miss("f1", 2), miss("f1", 3, None, compile_error="E: x"),
        {"cache_key": None, "time": 4, "outcome": "bypass"}, {"cache_key": "f1", "time": 5, "outcome": "guard_miss"},
        {"cache_key": "f1", "time": 6, "outcome": "unknown"}, hit(None, 7), miss(None, 8),  # type: ignore[arg-type]
    )  # fmt: skip
    assert found.outcome == [HIT, MISS, MISS, OTHER, MISS, OTHER, OTHER, OTHER]
    assert [at for at, since in enumerate(found.stored_since) if since < NEVER] == [1, 4]
    assert found.key[:3] == [0, 0, 0]
    assert [found.key[at] for at in (3, 6, 7)] == [None, None, None]


@pytest.mark.parametrize(("lookups", "since"), [
    # From the first lookup after the end of the compile, and always after its own.
    ([miss("f1", 100, 10), hit("f2", 105), hit("f2", 110), hit("f2", 111)], 3),
    ([miss("f1", 100, 10), hit("f2", 109)], 2),
    ([miss("f1", 100, 0), hit("f2", 100), hit("f2", 101)], 2),
    # A lookup without a time was made when the one before it was.
    ([miss("f1", 100, 10), hit("f2", 105), hit("f2", None), hit("f2", 111)], 3),
    ([miss("f1", 100, 10), hit("f2", 111), hit("f2", None)], 1),
])  # fmt: skip
def test_since_when_a_result_is_there(lookups: list[dict[str, Any]], since: int) -> None:
    assert recorded(*lookups).stored_since[0] == since


def test_graphs_of_one_compile_are_there_after_the_last() -> None:
    aot = {"cache": "aotautograd", "cache_key": "a1", "time": 100, "outcome": "full_miss"}
    graphs = [miss("f1", 101, 1, aot_lookup=0), hit("f9", 103), miss("f2", 104, 1, aot_lookup=0)]
    assert recorded(aot, *graphs, hit("f9", 200)).stored_since[1:4:2] == [4, 4]


def test_a_clock_that_is_set_back_hides_no_later_lookup() -> None:
    """Those after it were made after the store, whatever their clock says."""
    lookups = [miss("f1", 100, 10), hit("f2", 300), hit("f3", 120), hit("f4", 130), hit("f5", 400)]
    one_run = [{**told, "run": 0} for told in lookups]
    assert recorded(*one_run).stored_since[0] == 1


@pytest.mark.parametrize(("time", "position"), [(None, 0), (99, 0), (100, 1), (150, 1), (200, 2), (999, 2)])
def test_the_position_of_a_time(time: int | None, position: int) -> None:
    assert history(hit("f1", 100), hit("f1", 200)).timeline.position_of(time) == position


def test_the_keys_and_their_details() -> None:
    aot = {
        "cache": "aotautograd",
        "cache_key": "f1",
        "time": 5,
        "outcome": "hit",
        "detail_set": 7,
        "direction": None,
    }
    found = recorded(
        hit("f1", 1, direction="forward"), hit("f1", 2, detail_set=3, direction="backward"), hit("f1", 3, detail_set=4),
        hit("f2", 4), aot,
        entries=(
            stored(0, "f1", 1, detail_set=8), stored(1, "f2", 1, detail_set=9),
            stored(2, "f3", 1), stored(3, "f3", 2, detail_set=10), stored(4, "f1", 3, cache="aotautograd"),
            stored(5, "f2", 3, cache="aotautograd"),
        ),
    )  # fmt: skip
    named = [(key.cache, key.direction, key.name, key.detail_set) for key in found.keys]
    assert named == [
        # The first details that any source has, and the direction that goes with them.
        ("fxgraph", "backward", "f1", 3), ("fxgraph", "inference", "f2", 9), ("aotautograd", None, "f1", 7),
        ("fxgraph", None, "f3", 10), ("aotautograd", None, "f2", None),
    ]  # fmt: skip
    assert found.key == [0, 0, 0, 1, 2]
    assert found.key_of_entry == [0, 1, 3, 3, 2, 4]
