"""Decides the misses of many what-if keys at once where guards matter, and no entry was removed from outside.

Whether the guards of an entry hold for a lookup is known if the lookup compiled the same guards itself, and
if the entry has none. Otherwise it is unknown, because a log does not contain the sizes.

The earliest entry of a group is in one cell. From then on all misses of other cells hit or are unknown. Those of this
cell stay misses until another cell may have an entry. What an unknown miss may have stored is no certain hit for
anybody. So the entries that certainly exist are known before any miss is decided. `guard_walk` does the same step by
step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cachescope.analysis.what_if.entries import NO_GUARDS, Entries
from cachescope.analysis.what_if.recorded import HIT, MISS, NEVER, UNKNOWN, Flags, Outcomes, Positions


class Misses(NamedTuple):
    """Recorded misses, by column."""

    at: Positions  # the position and the cell of each
    cell: Positions
    group: Positions  # the group of cells that share a what-if key and a directory
    guards: Positions  # the guards of what it stored, as `Entries` has them
    is_nested: Flags  # whether it is known to hit through an AOTAutograd entry, and so stores nothing

    def take(self, places: Positions | Flags) -> Misses:
        """Some of them."""
        return Misses(
            self.at[places],
            self.cell[places],
            self.group[places],
            self.guards[places],
            self.is_nested[places],
        )


def decide_groups(misses: Misses, entries: Entries, group: Positions) -> Outcomes:
    """The outcome of each miss."""
    count = int(max(entries.guards.max(initial=NO_GUARDS), misses.guards.max(initial=NO_GUARDS))) + 1
    first = _Earliest(group, entries.cell, entries.since)
    is_of_first = entries.cell == first.cell_of(group)
    of_first = _Fitting(entries, group, is_of_first, count)
    # What another cell may have: it was stored before anything was there, or by a miss that no entry certainly fitted.
    may_exist = ~is_of_first & (entries.source < of_first.since(group, entries.guards, entries.cell))
    second = _Earliest(group[may_exist], entries.cell[may_exist], entries.since[may_exist])
    ends = np.where(is_of_first, second.since_of(group), first.since_of(group))
    certain = _Fitting(entries, group, entries.source < ends, count)
    # The entries of its own key did not fit: that was recorded.
    hits = misses.is_nested | (certain.since(misses.group, misses.guards, misses.cell) <= misses.at)
    is_of_first = misses.cell == first.cell_of(misses.group)
    since = np.where(is_of_first, second.since_of(misses.group), first.since_of(misses.group))
    return np.where(hits, HIT, np.where(since <= misses.at, UNKNOWN, MISS)).astype(np.int8)


class _Fitting:
    """Since when there is an entry whose guards are known to hold, among some entries."""

    def __init__(self, entries: Entries, group: Positions, chosen: Flags, count: int) -> None:
        self._count = count
        chosen = chosen & (entries.guards >= NO_GUARDS)
        keys = group[chosen] * self._count + entries.guards[chosen]
        self._earliest = _Earliest(keys, entries.cell[chosen], entries.since[chosen])

    def since(self, group: Positions, guards: Positions, cell: Positions) -> Positions:
        """Since when there is one in another cell, for lookups that have compiled some guards themselves."""
        without = group * self._count
        own = without + np.maximum(guards, NO_GUARDS)
        return np.minimum(self._earliest.elsewhere(without, cell), self._earliest.elsewhere(own, cell))


class _Earliest:
    """The earliest entry of each key, and the earliest that is not in the same cell."""

    def __init__(self, keys: Positions, cells: Positions, since: Positions) -> None:
        order = np.lexsort((since, keys))
        cells, since = cells[order], since[order]
        self._keys, first, which = np.unique(keys[order], return_index=True, return_inverse=True)
        # One more for a key that is not there.
        self._cell = np.append(cells[first], -1)
        self._since = np.append(since[first], NEVER)
        self._elsewhere = np.full(len(self._since), NEVER, dtype=np.int64)
        others = np.flatnonzero(cells != self._cell[which])[::-1]
        self._elsewhere[which[others]] = since[others]

    def cell_of(self, keys: Positions) -> Positions:
        """The cell of the earliest entry of some keys; -1 if there is none."""
        return self._cell[self._places(keys)]

    def since_of(self, keys: Positions) -> Positions:
        """Since when some keys have an entry; `NEVER` if they have none."""
        return self._since[self._places(keys)]

    def elsewhere(self, keys: Positions, cells: Positions) -> Positions:
        """The same for entries that are not in some cells."""
        at = self._places(keys)
        return np.where(self._cell[at] == cells, self._elsewhere[at], self._since[at])

    def _places(self, keys: Positions) -> Positions:
        at = np.searchsorted(self._keys, keys)
        is_there = np.append(self._keys, -1)[at] == keys
        return np.where(is_there, at, len(self._keys))
