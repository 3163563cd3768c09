"""What a group of keys decides, against looking at every entry for every miss; made by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from cachescope.analysis.what_if.entries import NO_GUARDS, NOT_KNOWN, Entries
from cachescope.analysis.what_if.exact import decide
from cachescope.analysis.what_if.guard_groups import Misses, decide_groups
from cachescope.analysis.what_if.guard_walk import walk
from cachescope.analysis.what_if.recorded import HIT, MISS, NEVER, UNKNOWN

GROUPS = 2
guards = st.sampled_from([NOT_KNOWN, NO_GUARDS, 1, 2])


@dataclass(frozen=True)
class Miss:
    """One miss, and what it stored."""

    cell: int
    is_nested: bool
    stored_after: int | None
    guards: int
    stays: int


@dataclass(frozen=True)
class Entry:
    """One entry; a cell is of the group that is its number modulo the number of groups."""

    cell: int
    since: int
    gone: int
    source: int
    guards: int


misses = st.lists(
    st.builds(
        Miss,
        cell=st.integers(0, 3 * GROUPS - 1),
        is_nested=st.sampled_from([False] * 5 + [True]),
        stored_after=st.none() | st.integers(1, 6),
        guards=guards,
        stays=st.integers(1, 8),
    ),
    max_size=20,
)
outside = st.lists(
    st.builds(
        Entry,
        cell=st.integers(0, 3 * GROUPS - 1),
        since=st.integers(0, 20),
        gone=st.just(NEVER),
        source=st.just(-1),
        guards=guards,
    ),
    max_size=3,
)


def entries_of(found: list[Miss], before: list[Entry], *, is_removed: bool) -> list[Entry]:
    stored = [
        Entry(m.cell, at + m.stored_after, at + m.stored_after + m.stays if is_removed and m.stays < 8 else NEVER, at, m.guards)
        for at, m in enumerate(found)
        if m.stored_after is not None and not m.is_nested
    ]  # fmt: skip
    return [*before, *stored]


def slow(found: list[Miss], entries: list[Entry]) -> list[int]:
    after: list[int] = []
    for at, miss in enumerate(found):
        others = [
            entry
            for entry in entries
            if entry.cell != miss.cell
            and entry.cell % GROUPS == miss.cell % GROUPS
            and entry.since <= at < entry.gone
        ]
        own = miss.guards if miss.stored_after is not None else NOT_KNOWN
        exist = [e for e in others if e.source < 0 or after[e.source] == MISS]
        if miss.is_nested or any(e.guards != NOT_KNOWN and e.guards in (NO_GUARDS, own) for e in exist):
            after.append(HIT)
        else:
            may_exist = any(e.source < 0 or after[e.source] != HIT for e in others)
            after.append(UNKNOWN if may_exist else MISS)
    return after


def columns(found: list[Miss], entries: list[Entry]) -> tuple[Misses, Entries, np.ndarray]:
    cell = np.array([m.cell for m in found], dtype=np.int64)
    own = [NOT_KNOWN if m.stored_after is None else m.guards for m in found]
    nested = np.array([m.is_nested for m in found], dtype=bool)
    listed = [(e.cell, e.since, e.gone, e.source, e.guards) for e in entries]
    theirs = Entries(*np.array(listed, dtype=np.int64).reshape(-1, 5).T)
    mine = Misses(np.arange(len(found)), cell, cell % GROUPS, np.array(own, dtype=np.int64), nested)
    return mine, theirs, theirs.cell % GROUPS


def miss(cell: int, after: int | None, guards: int = NO_GUARDS, stays: int = 8) -> Miss:
    return Miss(cell, False, after, guards, stays)


# The second entry of the first cell has no guards, and was stored before another cell had any.
@example([miss(0, 1, NOT_KNOWN), miss(0, 1), miss(2, None), miss(2, None)], [])
@given(misses, outside)
def test_without_removals_all_groups_are_decided_at_once(found: list[Miss], before: list[Entry]) -> None:
    entries = entries_of(found, before, is_removed=False)
    assert decide_groups(*columns(found, entries)).tolist() == slow(found, entries)


# Gone just when it is looked for.
@example([miss(0, 1, stays=1), miss(2, None), miss(2, None)], [])
@given(misses, outside)
def test_with_removals_a_group_is_walked(found: list[Miss], before: list[Entry]) -> None:
    entries = entries_of(found, before, is_removed=True)
    mine, theirs, group = columns(found, entries)
    wanted = slow(found, entries)
    assert decide(mine, theirs, group).tolist() == wanted
    for number in range(GROUPS):
        is_here = mine.group == number
        some = walk(mine.take(is_here), theirs.take(group == number))
        assert some == [outcome for outcome, here in zip(wanted, is_here, strict=True) if here]
