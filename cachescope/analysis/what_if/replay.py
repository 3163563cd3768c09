"""Replays the recorded lookups, in time order, under other keys: which would have found an entry.

An entry exists from the moment its compile ended, in the directory it was written to. A miss that becomes a hit
stores nothing. Bypassed and disabled lookups stay so, and recorded hits stay hits. A miss hits if it comes after the
earliest store of its group, unless guards matter (`guard_groups`), or entries were removed from outside (`guard_walk`).

`report/page/replay.js` does the same in a browser, over the integers of `codes`; `tests/report/test_replay.py` holds it to this.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from cachescope.analysis.history.history import History
from cachescope.analysis.what_if.cells import Cells
from cachescope.analysis.what_if.directories import Directories
from cachescope.analysis.what_if.entries import EntriesOfCells
from cachescope.analysis.what_if.exact import decide
from cachescope.analysis.what_if.guard_groups import Misses
from cachescope.analysis.what_if.key_sets import Joined
from cachescope.analysis.what_if.keys import KeyTable
from cachescope.analysis.what_if.members import Members
from cachescope.analysis.what_if.recorded import (
    HIT,
    MISS,
    NEVER,
    UNKNOWN,
    Flags,
    Outcomes,
    Positions,
    Recorded,
)
from cachescope.details import HashDetails
from cachescope.keys.key_fields import Removed
from cachescope.terms import AOTAUTOGRAD


class Replay:
    """Everything that does not depend on a schema, which keeps `outcomes` quick.

    Attributes
    ----------
    recorded, directories, table, cells, entries
        What a replay works on.
    is_aot : array of bool
        For each cell, whether it is of AOTAutograd.
    graphs, unknown : array of int
        The misses of graphs whose AOTAutograd lookup missed too, and those that may have hit anything: their key has no
        details.
    """

    def __init__(self, history: History, details: HashDetails) -> None:
        self.recorded = recorded = Recorded(history)
        self.directories = Directories(history, recorded)
        self.table = KeyTable(details, recorded.keys)
        self.cells = cells = Cells(history, recorded, self.directories, self.table.is_symbolic)
        misses = np.flatnonzero(recorded.outcome == MISS)
        self._misses = Members(misses, cells.of_lookup[misses], len(cells))
        self.entries = EntriesOfCells(recorded, cells)
        # The cells of each set of details.
        sets = self.table.set_of_key[cells.key]
        known = np.flatnonzero(sets >= 0)
        count = self.table.set_count
        self._cells_of_set = Members(known, sets[known], count)
        self._of_several = np.flatnonzero(np.bincount(sets[known], minlength=count) > 1)
        caches = [cache for cache, _ in recorded.keys.homes]
        self._cache = pd.factorize(np.array(caches))[0][recorded.keys.home[cells.key]]
        is_aot = np.array([cache == AOTAUTOGRAD for cache in caches], dtype=bool)
        self.is_aot: Flags = is_aot[recorded.keys.home[cells.key]]
        self.graphs = self._graphs_of_misses(misses)
        self.unknown = self._that_may_have_hit(misses)

    def _graphs_of_misses(self, misses: Positions) -> Positions:
        """The misses of graphs whose AOTAutograd lookup missed too."""
        aot = self.recorded.lookups.aot
        graphs = misses[(aot[misses] >= 0) & ~self.is_aot[self.cells.of_lookup[misses]]]
        found: Positions = graphs[self.recorded.outcome[aot[graphs]] == MISS]
        return found

    def _that_may_have_hit(self, misses: Positions) -> Positions:
        """The misses whose key has no details: under other keys, they may have found any entry that existed."""
        recorded, cells = self.recorded, self.cells
        home = self._cache * self.directories.count + cells.directory
        first = np.full(int(home.max(initial=-1)) + 1, NEVER, dtype=np.int64)
        np.minimum.at(first, home, cells.early)
        stores = misses[recorded.storing[misses]]
        np.minimum.at(first, home[cells.of_lookup[stores]], recorded.since[stores])
        mine = misses[~self.table.has_details[recorded.key[misses]]]
        found: Positions = mine[first[home[cells.of_lookup[mine]]] <= mine]
        return found

    def outcomes(self, removed: Removed, joined: Joined | None = None) -> Outcomes:
        """The outcome of every lookup, in time order, without what is removed from the keys.

        Parameters
        ----------
        removed : Removed
        joined : Joined, optional
            What becomes equal by that, if it is known already.
        """
        after = self.recorded.outcome.copy()
        cells, group = self.groups(self.table.joined(removed) if joined is None else joined)
        is_aot = self.is_aot[cells]
        # Recorded hits stay hits: only misses are decided, those of AOTAutograd first.
        self._decide(cells[is_aot], group[is_aot], after)
        # If an AOTAutograd entry is found, its graphs are found through it.
        after[self.graphs[after[self.recorded.lookups.aot[self.graphs]] == HIT]] = HIT
        self._decide(cells[~is_aot], group[~is_aot], after)
        if removed:
            after[self.unknown[after[self.unknown] == MISS]] = UNKNOWN
        return after

    def groups(self, joined: Joined) -> tuple[Positions, Positions]:
        """The cells that share a what-if key and a directory with others, and for each the number of its group."""
        others = self._of_several[~np.isin(self._of_several, joined.sets)]
        new = int(joined.classes.max(initial=-1)) + 1
        classes = np.append(joined.classes, new + np.arange(len(others)))
        cells, which = self._cells_of_set.of(np.append(joined.sets, others))
        group = pd.factorize(classes[which] * self.directories.count + self.cells.directory[cells])[0]
        has_several = (np.bincount(group) > 1)[group]
        return cells[has_several], group[has_several]

    def classes(self, joined: Joined) -> Positions:
        """A number for each cell that those with one what-if key share, whatever their directory."""
        sets = self.table.set_of_key[self.cells.key]
        new = int(joined.classes.max(initial=-1)) + 1
        of_set = new + np.arange(self.table.set_count + 1)
        of_set[joined.sets] = joined.classes
        found: Positions = np.where(sets >= 0, of_set[sets], len(of_set) + new + self.cells.key)
        return found

    def _decide(self, cells: Positions, group: Positions, after: Outcomes) -> None:
        """Decide the misses of some cells; what AOTAutograd hits imply is already in `after`."""
        is_walked = np.zeros(int(group.max(initial=-1)) + 1, dtype=bool)
        is_walked[group[~self.cells.is_plain[cells]]] = True
        is_plain = ~is_walked[group]
        self._close(cells[is_plain], group[is_plain], after)
        if not is_plain.all():
            self._decide_exactly(cells[~is_plain], group[~is_plain], after)

    def _close(self, cells: Positions, group: Positions, after: Outcomes) -> None:
        """A miss hits if it comes after the earliest store of its group."""
        at, which = self._misses.of(cells)
        since = np.full(int(group.max(initial=-1)) + 1, NEVER, dtype=np.int64)
        np.minimum.at(since, group, self.cells.early[cells])
        group_of_miss = group[which]
        stores = self.recorded.storing[at] & (after[at] == MISS)
        np.minimum.at(since, group_of_miss[stores], self.recorded.since[at[stores]])
        after[at[since[group_of_miss] <= at]] = HIT

    def _decide_exactly(self, cells: Positions, group: Positions, after: Outcomes) -> None:
        """Decide the misses of groups where guards matter, or entries were removed."""
        at, which = self._misses.of(cells)
        is_nested = after[at] == HIT
        misses = Misses(at, cells[which], group[which], self.entries.guards_of_miss[at], is_nested)
        entries, which = self.entries.of(cells)
        exist = (entries.source < 0) | (after[entries.source] == MISS)
        after[at] = decide(misses, entries.take(exist), group[which[exist]])
