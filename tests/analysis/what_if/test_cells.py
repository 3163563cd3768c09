"""What directories held, against walking the lookups of every key in every directory one by one; made by hand."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.analysis.history.history import History
from cachescope.analysis.what_if.cell_walk import CellWalk, Step
from cachescope.analysis.what_if.recorded import HIT, MISS, NEVER, OTHER, Recorded
from cachescope.analysis.what_if.replay import Replay
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import run_row
from tests.analysis.what_if.test_replay import row
from tests.made import entry, fx, run, scope_of

# The key, the directory, the outcome, the time until the next one, how long a compile takes, and guards.
lookups = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 1),
        st.sampled_from(["hit"] * 4 + ["full_miss"] * 4 + ["guard_miss", "bypass"]),
        st.integers(1, 3),
        st.integers(1, 6),
        st.sampled_from([None] * 6 + ["a > 1"]),
    ),
    max_size=16,
)


def history_of(found: list[tuple[int, int, str, int, int, str | None]]) -> History:
    rows: list[LookupRow] = []
    time = 10
    for at, (key, directory, outcome, wait, taken, guards) in enumerate(found):
        took = None if outcome == "hit" else taken
        made = row(at, directory, time, "fxgraph", f"f{key}", outcome == "hit", None, took, None)
        rows.append(replace(made, outcome=outcome, status_detailed=outcome, guards_expr=guards))
        time += wait
    return History(rows, (), [run_row(n, cache_dir=f"dir{n}") for n in range(2)], HashDetails())


def steps_of(recorded: Recorded, found: list[tuple[int, int, str, int, int, str | None]]) -> list[list[Step]]:
    cells: dict[tuple[int, int], list[Step]] = defaultdict(list)
    for at, (key, directory, outcome, _, _, guards) in enumerate(found):
        if recorded.outcome[at] != OTHER:
            since = int(recorded.since[at]) if recorded.storing[at] else NEVER
            is_hit = outcome == "hit"
            step = Step(at, is_hit, outcome == "guard_miss", guards, is_hit, since)
            cells[key, directory].append(step)
    return list(cells.values())


@given(lookups)
def test_cells_are_what_a_walk_through_each_gives(
    found: list[tuple[int, int, str, int, int, str | None]],
) -> None:
    history = history_of(found)
    replay = Replay(history, HashDetails())
    differences = []
    for steps in steps_of(Recorded(history), found):
        walk = CellWalk([], {})
        walk.walk(steps)
        differences += walk.differences
        cell = int(replay.cells.of_lookup[steps[0].at])
        assert {int(replay.cells.of_lookup[step.at]) for step in steps} == {cell}
        early = min((entry.since for entry in walk.entries if entry.source < 0), default=NEVER)
        assert replay.cells.early[cell] == early
        assert replay.cells.is_plain[cell] == (not walk.has_guards and not walk.was_removed)
        for one in walk.entries:
            assert one.source < 0 or replay.recorded.since[one.source] == one.since
    assert sorted(replay.cells.differences) == sorted(differences)


def test_misses_before_the_first_store_and_hits_from_then_on_are_plain() -> None:
    """Two race for a key; later ones hit."""
    found = [(0, 0, "full_miss", 1, 4, None), (0, 0, "full_miss", 9, 4, None), (0, 0, "hit", 1, 1, None)]
    replay = Replay(history_of(found), HashDetails())
    assert replay.recorded.outcome.tolist() == [MISS, MISS, HIT]
    assert (replay.cells.is_plain.tolist(), replay.cells.stored) == ([True], {})
    assert replay.recorded.since.tolist()[:2] == [2, 2]


def test_entries_of_keys_that_nobody_looked_up_are_of_no_key_that_was() -> None:
    missed = fx("f1", details={"gm": "g", "x": "1"}, at=10, took=1.0, save_error="OSError: full")
    looked = run(missed, cache_dir="/cache")
    entries = [entry("fxgraph", f"f{at}", {"gm": "g", "x": str(at)}, at=1) for at in (2, 3, 4)]
    assert scope_of(looked, entries=entries).replayed.replay.cells.differences == []
    # One of its own was there before, and it stored none itself.
    there = entry("fxgraph", "f1", {"gm": "g", "x": "1"}, at=1)
    cells = scope_of(looked, entries=[*entries, there]).replayed.replay.cells
    assert [one.position for one in cells.differences] == [0]


def test_entries_may_have_no_time() -> None:
    """As those in a remote cache, which were there all the time."""
    looked = run(fx("f1", details={"gm": "g"}, at=10, took=1.0), cache_dir="/cache")
    entries = [entry("fxgraph", "f2", {"gm": "g"}, at=at, name=str(at)) for at in (None, 1, None)]
    cells = scope_of(looked, entries=entries).replayed.replay.cells
    assert cells.early.tolist() == [NEVER, 0]


def looked_up(key: int, outcome: str, wait: int = 1, taken: int = 4) -> tuple[int, int, str, int, int, None]:
    return key, 0, outcome, wait, taken, None


@pytest.mark.parametrize(
    ("found", "early", "walked"),
    [
        # Hits alone: each was there before.
        ([looked_up(0, "hit"), looked_up(1, "hit")], [0, 0], []),
        ([looked_up(0, "hit"), looked_up(1, "hit"), looked_up(0, "hit"), looked_up(1, "hit")], [0, 0], []),
        ([looked_up(0, "full_miss"), looked_up(1, "full_miss")], [NEVER, NEVER], []),
        # A hit at once when it is stored, and one before that, which shows that it was stored sooner.
        ([looked_up(0, "full_miss", 5), looked_up(0, "hit"), looked_up(1, "hit")], [NEVER, 0], []),
        ([looked_up(0, "full_miss", 3), looked_up(0, "hit"), looked_up(1, "hit")], [NEVER, 0], [0]),
        # A miss of what is there already, and one before it is.
        ([looked_up(0, "full_miss", 5), looked_up(0, "full_miss")], [NEVER], [0]),
        ([looked_up(0, "full_miss", 4), looked_up(0, "full_miss")], [NEVER], []),
        # A hit before any miss; and one after misses that stored nothing.
        ([looked_up(0, "hit"), looked_up(0, "full_miss")], [0], [0]),
        ([looked_up(1, "hit"), looked_up(0, "full_miss"), looked_up(0, "hit"), looked_up(0, "full_miss")], [0, NEVER], [1]),
    ],
    ids=range(9),
)  # fmt: skip
def test_which_cells_are_walked(
    found: list[tuple[int, int, str, int, int, str | None]], early: list[int], walked: list[int]
) -> None:
    cells = Replay(history_of(found), HashDetails()).cells
    assert (cells.early.tolist(), list(cells.stored)) == (early, walked)
