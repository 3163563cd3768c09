"""What is played into one directory, against looking at every entry for every miss; made by hand."""

from dataclasses import dataclass

from hypothesis import example, given
from hypothesis import strategies as st

from cachescope.analysis.what_if.cells import NO_GUARDS, NOT_KNOWN, Cell, Stored
from cachescope.analysis.what_if.replay import play
from cachescope.analysis.what_if.replay_columns import HIT, MISS, NEVER, UNKNOWN

CELLS = 3
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
    cell: int
    since: int
    gone: int
    source: int
    guards: int


misses = st.lists(
    st.builds(
        Miss, cell=st.integers(0, CELLS - 1), is_nested=st.sampled_from([False] * 5 + [True]),
        stored_after=st.none() | st.integers(1, 6), guards=guards, stays=st.integers(1, 8),
    ),
    max_size=20,
)  # fmt: skip
outside = st.lists(
    st.builds(
        Entry, cell=st.integers(0, CELLS - 1), since=st.integers(0, 20), gone=st.just(NEVER),
        source=st.just(-1), guards=guards,
    ),
    max_size=3,
)  # fmt: skip


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
        others = [entry for entry in entries if entry.cell != miss.cell and entry.since <= at < entry.gone]
        own = miss.guards if miss.stored_after is not None else NOT_KNOWN
        exist = [e for e in others if e.source < 0 or after[e.source] == MISS]
        if miss.is_nested or any(e.guards != NOT_KNOWN and e.guards in (NO_GUARDS, own) for e in exist):
            after.append(HIT)
        else:
            may_exist = any(e.source < 0 or after[e.source] != HIT for e in others)
            after.append(UNKNOWN if may_exist else MISS)
    return after


def played(found: list[Miss], entries: list[Entry]) -> list[int]:
    cells = [Cell(number, number, 0, is_plain=False) for number in range(CELLS)]
    for e in entries:
        cells[e.cell].entries.append(Stored(e.since, e.source, e.gone, guards_code=e.guards))
    for at, m in enumerate(found):
        cells[m.cell].misses.append(at)
    after = [HIT if m.is_nested else MISS for m in found]
    play(cells, after)
    return after


def miss(cell: int, after: int | None, guards: int = NO_GUARDS, stays: int = 8) -> Miss:
    return Miss(cell, False, after, guards, stays)


# The second entry of the first cell has no guards, and was stored before another cell had any.
@example([miss(0, 1, NOT_KNOWN), miss(0, 1), miss(1, None), miss(1, None)], [], False)
# Gone just when it is looked for.
@example([miss(0, 1, stays=1), miss(1, None), miss(1, None)], [], True)
@given(misses, outside, st.booleans())
def test_what_is_found_is_what_lay_there(found: list[Miss], before: list[Entry], is_removed: bool) -> None:
    entries = entries_of(found, before, is_removed=is_removed)
    assert played(found, entries) == slow(found, entries)
