"""Walks the misses of one group of cells in time order, where entries were removed.

It decides as `guard_groups` does, step by step.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush

from cachescope.analysis.what_if.entries import NO_GUARDS, NOT_KNOWN, Entries
from cachescope.analysis.what_if.guard_groups import Misses
from cachescope.analysis.what_if.recorded import HIT, MISS, NEVER, UNKNOWN


def walk(misses: Misses, entries: Entries) -> list[int]:
    """The outcome of each miss."""
    coming = sorted(zip(*(column.tolist() for column in entries), strict=True), key=_since, reverse=True)
    there = _There()
    after: dict[int, int] = {-1: MISS}
    columns = misses.at, misses.cell, misses.guards, misses.is_nested
    for at, cell, own, is_nested in zip(*(column.tolist() for column in columns), strict=True):
        while coming and _since(coming[-1]) <= at:
            of_cell, _, gone, source, guards = coming.pop()
            if after[source] != HIT:
                there.add(of_cell, gone, guards if after[source] == MISS else NOT_KNOWN)
        there.drop_gone(at)
        # The entries of its own key did not fit: that was recorded.
        if is_nested or there.fits(cell, NO_GUARDS) or there.fits(cell, own):
            after[at] = HIT
        else:
            after[at] = UNKNOWN if there.may_fit(cell) else MISS
    return [after[at] for at in misses.at.tolist()]


def _since(entry: tuple[int, ...]) -> int:
    return entry[1]


class _There:
    """The entries that exist at one time: how many there are of each cell, by the guards that are known to hold."""

    def __init__(self) -> None:
        self._any = _Count()
        self._fitting: dict[int, _Count] = defaultdict(_Count)
        self._going: list[tuple[int, int, int]] = []

    def add(self, cell: int, gone: int, guards: int) -> None:
        """Add an entry; with guards `NOT_KNOWN`, it may not exist or may not fit."""
        self._change(cell, guards, 1)
        if gone < NEVER:
            heappush(self._going, (gone, cell, guards))

    def drop_gone(self, at: int) -> None:
        """Drop the entries that are gone at a position."""
        while self._going and self._going[0][0] <= at:
            _, cell, guards = heappop(self._going)
            self._change(cell, guards, -1)

    def fits(self, cell: int, guards: int) -> bool:
        """Whether another cell certainly has an entry with some guards."""
        return guards != NOT_KNOWN and self._fitting[guards].has_other(cell)

    def may_fit(self, cell: int) -> bool:
        """Whether another cell may have an entry."""
        return self._any.has_other(cell)

    def _change(self, cell: int, guards: int, more: int) -> None:
        self._any.add(cell, more)
        if guards != NOT_KNOWN:
            self._fitting[guards].add(cell, more)


class _Count:
    """How many entries there are, of each cell and in all."""

    def __init__(self) -> None:
        self._all = 0
        self._of_cell: dict[int, int] = defaultdict(int)

    def add(self, cell: int, more: int) -> None:
        self._all += more
        self._of_cell[cell] += more

    def has_other(self, cell: int) -> bool:
        """Whether there is one of another cell."""
        return self._all > self._of_cell[cell]
