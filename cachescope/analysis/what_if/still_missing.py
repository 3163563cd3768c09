"""Why misses stay misses although fields of their keys do not count: no key became equal, or one did and its entry did not help."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cachescope.analysis.what_if.entries import Entries
from cachescope.analysis.what_if.key_sets import Joined
from cachescope.analysis.what_if.recorded import MISS, NEVER, Flags, Outcomes, Positions
from cachescope.analysis.what_if.replay import Replay

GUARDS: Final = "guards"
"""An entry was there, and its guards did not hold."""
GONE: Final = "gone"
"""The entry had been stored and was not there any more."""
CONCURRENT: Final = "concurrent"
"""Another run was compiling what it needed and had not stored it."""
PENDING: Final = "pending"
"""Its own run had compiled that and not stored it."""
NOT_STORED: Final = "not stored"
"""An earlier lookup of an equal key missed, and stored nothing."""
ELSEWHERE: Final = "elsewhere"
"""The entry was in another cache directory."""
FIRST: Final = "first"
"""Several keys become one, and it is the first lookup of it."""
DIFFERS: Final = "differs"
"""No other key becomes equal to its own."""


class Stays(NamedTuple):
    """Misses that stay misses."""

    reason: Positions  # one of the words above, of each
    group: Positions  # A number for its what-if key in its cache directory


def still_missing(replay: Replay, joined: Joined, after: Outcomes, at: Positions) -> Stays:
    """Why some misses stay misses."""
    cells, recorded = replay.cells, replay.recorded
    classes = replay.classes(joined)
    group_of_cell = np.unique(classes * replay.directories.count + cells.directory, return_inverse=True)[1]
    cell = cells.of_lookup[at]
    group, same = group_of_cell[cell], classes[cell]
    here = _Stored.of(replay, np.flatnonzero(np.isin(classes, same)), after)
    group_of_entry = group_of_cell[here.entries.cell]
    started = here.count_before(group_of_entry, here.entries.since, group, at)
    ended = here.count_before(group_of_entry, here.entries.gone, group, at)
    started_anywhere = here.count_before(classes[here.entries.cell], here.entries.since, same, at)
    of_others = here.of_other_runs(group_of_entry, group, at)
    silent = np.flatnonzero((after == MISS) & ~recorded.storing)
    count_silent = _Counter(group_of_cell[cells.of_lookup[silent]], silent, len(after))
    keys_of_class = np.bincount(
        np.unique(classes * len(replay.table.keys) + cells.key) // len(replay.table.keys)
    )
    is_guard_miss = recorded.lookups.outcome.are("guard_miss")[at]
    reason = np.select(
        [
            is_guard_miss | (started > ended),
            ended > 0,
            of_others > 0,
            here.running(group_of_entry, group, at) > 0,
            count_silent.before(group, at - 1) > 0,
            started_anywhere > started,
            keys_of_class[same] > 1,
        ],
        [GUARDS, GONE, CONCURRENT, PENDING, NOT_STORED, ELSEWHERE, FIRST],
        DIFFERS,
    )
    return Stays(reason, group)


def concurrent_misses(replay: Replay, joined: Joined, after: Outcomes) -> Positions:
    """The misses of keys that become equal to others, and hit unless runs compile at the same time.

    Those of which another run was compiling the very key are left out: no field keeps these from hitting.
    """
    cells, group = replay.groups(joined)
    group_of_cell = np.full(len(replay.cells) + 1, -1, dtype=np.int64)
    group_of_cell[cells] = group
    at = _before_any_entry(replay, cells, group_of_cell, after)
    if not len(at):
        return at
    mine = np.isin(group, group_of_cell[replay.cells.of_lookup[at]])
    here = _Stored.of(replay, cells[mine], after)
    cell = replay.cells.of_lookup[at]
    running = here.of_other_runs(group_of_cell[here.entries.cell], group_of_cell[cell], at)
    with_its_key = here.of_other_runs(here.entries.cell, cell, at)
    found: Positions = at[(running > 0) & (with_its_key == 0)]
    return found


def _before_any_entry(
    replay: Replay, cells: Positions, group_of_cell: Positions, after: Outcomes
) -> Positions:
    """The misses of some groups that are not the first of theirs, and come before it has an entry."""
    recorded = replay.recorded
    group_of_lookup = group_of_cell[replay.cells.of_lookup]
    at = np.flatnonzero((after == MISS) & (group_of_lookup >= 0))
    group = group_of_lookup[at]
    count = int(group_of_cell.max()) + 1
    first, since = np.full((2, count), NEVER, dtype=np.int64)
    first[group[::-1]] = at[::-1]
    np.minimum.at(since, group_of_cell[cells], replay.cells.early[cells])
    stores = recorded.storing[at]
    np.minimum.at(since, group[stores], recorded.since[at[stores]])
    # With guards, an entry that is there need not serve it.
    is_certain = ~replay.cells.has_guards[replay.cells.of_lookup[at]]
    found: Positions = at[is_certain & (first[group] < at) & (at < since[group])]
    return found


class _Stored(NamedTuple):
    """The entries of some cells that exist after a replay, and the run that stored each."""

    entries: Entries
    run: Positions
    run_of_lookup: Positions
    last: int

    @classmethod
    def of(cls, replay: Replay, cells: Positions, after: Outcomes) -> _Stored:
        entries, _ = replay.entries.of(cells)
        entries = entries.take((entries.source < 0) | (after[entries.source] == MISS))
        runs = np.unique(replay.recorded.lookups.run, return_inverse=True)[1]
        return cls(entries, runs[entries.source], runs, len(after))

    def count_before(
        self, of_entry: Positions, moments: Positions, group: Positions, at: Positions
    ) -> Positions:
        """How many of the moments of each group had come at some positions."""
        return _Counter(of_entry, moments, self.last).before(group, at)

    def running(self, of_entry: Positions, group: Positions, at: Positions) -> Positions:
        """How many compiles of each group had begun and stored nothing yet."""
        by_miss: Flags = self.entries.source >= 0
        group_of_entry, source, since = (
            of_entry[by_miss],
            self.entries.source[by_miss],
            self.entries.since[by_miss],
        )
        begun = _Counter(group_of_entry, source, self.last).before(group, at - 1)
        found: Positions = begun - _Counter(group_of_entry, since, self.last).before(group, at)
        return found

    def of_other_runs(self, of_entry: Positions, group: Positions, at: Positions) -> Positions:
        """The same without those of the run of each lookup."""
        runs = int(self.run_of_lookup.max(initial=0)) + 1
        mine = self.running(of_entry * runs + self.run, group * runs + self.run_of_lookup[at], at)
        return self.running(of_entry, group, at) - mine


class _Counter:
    """Counts, of some groups, the moments that had come."""

    def __init__(self, group: Positions, moments: Positions, last: int) -> None:
        self._span = last + 2
        # A moment that never comes is after the last position.
        self._sorted = np.sort(group * self._span + np.minimum(moments, last + 1))

    def before(self, group: Positions, at: Positions) -> Positions:
        """How many moments of each group are at some positions or before."""
        first = np.searchsorted(self._sorted, group * self._span, "left")
        found: Positions = (
            np.searchsorted(self._sorted, group * self._span + np.maximum(at, -1), "right") - first
        )
        return found
