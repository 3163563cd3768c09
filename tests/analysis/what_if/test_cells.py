"""What directories held; made by hand."""

from dataclasses import replace

import pytest

from cachescope.analysis.history.history import History
from cachescope.analysis.what_if.cells import Cell
from cachescope.analysis.what_if.replay import Replay
from cachescope.analysis.what_if.replay_columns import HIT, MISS, NEVER
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import run_row
from tests.analysis.what_if.test_replay import row
from tests.made import entry, fx, run, scope_of

# The key, the outcome, the time until the next one, and how long a compile takes.
Looked = tuple[int, str, int, int]


def replay_of(found: list[Looked]) -> Replay:
    rows: list[LookupRow] = []
    time = 10
    for at, (key, outcome, wait, taken) in enumerate(found):
        took = None if outcome == "hit" else taken
        made = row(at, 0, time, "fxgraph", f"f{key}", outcome == "hit", None, took, None)
        rows.append(replace(made, outcome=outcome, status_detailed=outcome))
        time += wait
    return Replay(History(rows, (), [run_row(0, cache_dir="dir")], HashDetails()))


def test_misses_before_the_first_store_and_hits_from_then_on_are_plain() -> None:
    """Two race for a key; later ones hit."""
    replay = replay_of([(0, "full_miss", 1, 4), (0, "full_miss", 9, 4), (0, "hit", 1, 1)])
    assert replay.columns.outcome == [MISS, MISS, HIT]
    assert [cell.is_plain for cell in replay.cells.every] == [True]
    assert replay.columns.stored_since[:2] == [2, 2]


def test_entries_of_keys_that_nobody_looked_up_are_of_no_key_that_was() -> None:
    missed = fx("f1", details={"gm": "g", "x": "1"}, at=10, took=1.0, save_error="OSError: full")
    looked = run(missed, cache_dir="/cache")
    entries = [entry("fxgraph", f"f{at}", {"gm": "g", "x": str(at)}, at=1) for at in (2, 3, 4)]
    assert scope_of(looked, entries=entries).replay.cells.differences == []
    # One of its own was there before, and it stored none itself.
    there = entry("fxgraph", "f1", {"gm": "g", "x": "1"}, at=1)
    cells = scope_of(looked, entries=[*entries, there]).replay.cells
    assert [one.position for one in cells.differences] == [0]


def test_entries_may_have_no_time() -> None:
    """As those in a remote cache, which were there all the time."""
    looked = run(fx("f1", details={"gm": "g"}, at=10, took=1.0), cache_dir="/cache")
    entries = [entry("fxgraph", "f2", {"gm": "g"}, at=at, name=str(at)) for at in (None, 1, None)]
    cells = scope_of(looked, entries=entries).replay.cells
    assert list(map(early_of, cells.every)) == [NEVER, 0]


def early_of(cell: Cell) -> int:
    """Since when it has an entry that no recorded miss stored."""
    return min((entry.since for entry in cell.entries if entry.source < 0), default=NEVER)


def looked_up(key: int, outcome: str, wait: int = 1, taken: int = 4) -> Looked:
    return key, outcome, wait, taken


@pytest.mark.parametrize(("found", "early", "gone"), [
    # Hits alone: each was there before.
    ([looked_up(0, "hit"), looked_up(1, "hit")], [0, 0], []),
    ([looked_up(0, "hit"), looked_up(1, "hit"), looked_up(0, "hit"), looked_up(1, "hit")], [0, 0], []),
    ([looked_up(0, "full_miss"), looked_up(1, "full_miss")], [NEVER, NEVER], []),
    # A hit at once when it is stored, and one before that, which shows that it was stored sooner.
    ([looked_up(0, "full_miss", 5), looked_up(0, "hit"), looked_up(1, "hit")], [NEVER, 0], []),
    ([looked_up(0, "full_miss", 3), looked_up(0, "hit"), looked_up(1, "hit")], [NEVER, 0], []),
    # A miss of what is there already, and one before it is.
    ([looked_up(0, "full_miss", 5), looked_up(0, "full_miss")], [NEVER], [0]),
    ([looked_up(0, "full_miss", 4), looked_up(0, "full_miss")], [NEVER], []),
    # A hit before any miss; and one after a miss that had not stored yet.
    ([looked_up(0, "hit"), looked_up(0, "full_miss")], [0], [0]),
    ([looked_up(1, "hit"), looked_up(0, "full_miss"), looked_up(0, "hit"), looked_up(0, "full_miss")], [0, NEVER], [1]),
], ids=range(9))  # fmt: skip
def test_what_was_there_before_and_what_went(found: list[Looked], early: list[int], gone: list[int]) -> None:
    cells = replay_of(found).cells.every
    assert list(map(early_of, cells)) == early
    assert [cell.number for cell in cells if not cell.is_plain] == gone
