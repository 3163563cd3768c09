"""The contents of each cache directory over time, as far as the recorded lookups and entries show.

A *cell* is one key in one directory. Most cells are plain: misses, then hits from the first store on. Those are arrays
here. The others are walked once (`cell_walk`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from cachescope.analysis.history.history import History
from cachescope.analysis.what_if.cell_walk import CellWalk, Difference, Step, Stored
from cachescope.analysis.what_if.directories import Directories
from cachescope.analysis.what_if.members import Members
from cachescope.analysis.what_if.recorded import HIT, MISS, NEVER, OTHER, Flags, Positions, Recorded
from cachescope.frames.directory_rows import EntryRow


class Cells:
    """Every key in every directory in which it was looked up or stored, by column.

    Attributes
    ----------
    key, directory : array of int
        Of each cell.
    of_lookup : array of int
        The cell of each lookup; -1 for a lookup that no replay changes.
    early : array of int
        For each cell, since when it has an entry that no recorded miss stored; `NEVER` if there is none.
    has_guards, is_plain : array of bool
        For each cell, whether its entries may have guards, and whether the first entry alone determines what exists
        at any time.
    stored : dict
        The entries of the cells that were walked.
    differences : list of Difference
        The recorded outcomes that do not follow from what was stored.
    """

    def __init__(
        self, history: History, recorded: Recorded, directories: Directories, is_symbolic: Flags
    ) -> None:
        self._recorded = recorded
        self._rows = history.lookups
        self.of_lookup, pairs, entries_of = _numbered(history, recorded, directories)
        self.key, self.directory = np.divmod(pairs, directories.count)
        self.early: Positions = np.full(len(pairs), NEVER, dtype=np.int64)
        self.has_guards: Flags = self._show_guards()
        self.is_plain: Flags = ~self.has_guards
        self.stored: dict[int, list[Stored]] = {}
        self.differences: list[Difference] = []
        is_walked = self.has_guards | is_symbolic[self.key] | ~self._are_regular()
        is_walked[list(entries_of)] = True
        walked = np.flatnonzero(is_walked)
        for cell, steps in zip(walked.tolist(), self._steps(walked), strict=True):
            self._walk(cell, list(steps), entries_of.get(cell, ()), bool(is_symbolic[self.key[cell]]))

    def __len__(self) -> int:
        return len(self.early)

    def _show_guards(self) -> Flags:
        lookups = self._recorded.lookups
        shown = (self.of_lookup >= 0) & (lookups.shows_guards | lookups.outcome.are("guard_miss"))
        found = np.zeros(len(self), dtype=bool)
        found[self.of_lookup[shown]] = True
        return found

    def _are_regular(self) -> Flags:
        """Which cells have only misses before the first store, and only hits from then on; or hits alone."""
        recorded = self._recorded
        hits, misses = (np.flatnonzero(recorded.outcome == outcome) for outcome in (HIT, MISS))
        first_hit, first_store = np.full((2, len(self)), NEVER, dtype=np.int64)
        first_hit[self.of_lookup[hits[::-1]]] = hits[::-1]
        last_miss = np.full(len(self), -1, dtype=np.int64)
        last_miss[self.of_lookup[misses]] = misses
        stores = np.flatnonzero(recorded.storing)
        np.minimum.at(first_store, self.of_lookup[stores], recorded.since[stores])
        has_only_hits = last_miss < 0
        self.early[has_only_hits & (first_hit < NEVER)] = 0
        regular: Flags = has_only_hits | ((last_miss < first_store) & (first_store <= first_hit))
        return regular

    def _steps(self, cells: Positions) -> Iterator[Iterator[Step]]:
        """The lookups of each of some cells."""
        recorded, lookups = self._recorded, self._recorded.lookups
        known = np.flatnonzero(self.of_lookup >= 0)
        at, which = Members(known, self.of_lookup[known], len(self)).of(cells)
        is_hit = recorded.outcome[at] == HIT
        columns = (
            at.tolist(),
            is_hit.tolist(),
            lookups.outcome.are("guard_miss")[at].tolist(),
            [self._rows[one].guards_expr for one in at.tolist()],
            (is_hit & lookups.status_detailed.are("hit")[at]).tolist(),
            np.where(recorded.storing[at], recorded.since[at], NEVER).tolist(),
        )
        bounds = np.searchsorted(which, np.arange(len(cells) + 1)).tolist()
        for first, end in pairwise(bounds):
            yield map(Step, *(column[first:end] for column in columns))

    def _walk(self, cell: int, steps: Sequence[Step], entries: Sequence[EntryRow], is_symbolic: bool) -> None:
        since = self._recorded.since
        before, guards_of = self._entries_before(steps, entries)
        walk = CellWalk(before, guards_of)
        walk.walk(steps)
        self.stored[cell] = walk.entries
        self.differences += walk.differences
        for entry in walk.entries:
            if entry.source >= 0:
                since[entry.source] = entry.since
        self.early[cell] = min((e.since for e in walk.entries if e.source < 0), default=NEVER)
        # Guards that no log shows: unless every entry is known to have none.
        is_open = is_symbolic and not all(entry.has_known_guards for entry in walk.entries)
        has_guards = walk.has_guards or is_open or any(entry.guards_expr for entry in entries)
        self.has_guards[cell] = has_guards
        self.is_plain[cell] = not (has_guards or walk.was_removed)

    def _entries_before(
        self, steps: Sequence[Step], entries: Sequence[EntryRow]
    ) -> tuple[list[Stored], Mapping[int, str | None]]:
        """The entries that no recorded miss stored, and the guards of those that one did, by its position."""
        in_order = sorted(entries, key=lambda entry: entry.modified_time or 0)
        guards = [entry.guards_expr or None for entry in in_order]
        if storing := [step.at for step in steps if step.since < NEVER]:
            # The same number, in time order: each is the result of one miss.
            is_each = len(storing) == len(guards)
            return [], dict(zip(storing, guards, strict=True)) if is_each else {}
        since = [self._recorded.position_of(entry.modified_time) for entry in in_order]
        return [Stored(at, -1, NEVER, shown, True) for at, shown in zip(since, guards, strict=True)], {}


def _numbered(
    history: History, recorded: Recorded, directories: Directories
) -> tuple[Positions, Positions, Mapping[int, list[EntryRow]]]:
    """The cell of each lookup; key and directory of each cell as one number; and the sound entries of some cells."""
    known = recorded.outcome != OTHER
    pair_of_lookup = recorded.key[known] * directories.count + directories.of_lookup[known]
    codes, distinct = pd.factorize(pair_of_lookup)
    of_lookup = np.full(len(known), -1, dtype=np.int64)
    of_lookup[known] = codes
    pair_of_entry = [
        (key * directories.count + directory, entry)
        for entry, key in zip(history.entries, recorded.key_of_entry, strict=True)
        if entry.status == "ok"
        for directory in directories.of_root[entry.root]
    ]
    there = np.flatnonzero(np.isin(distinct, [pair for pair, _ in pair_of_entry]))
    number = dict(zip(distinct[there].tolist(), there.tolist(), strict=True))
    more: list[int] = []
    entries_of: dict[int, list[EntryRow]] = defaultdict(list)
    for pair, entry in pair_of_entry:
        cell = number.setdefault(pair, len(distinct) + len(more))
        if cell == len(distinct) + len(more):
            more.append(pair)
        entries_of[cell].append(entry)
    return of_lookup, np.append(distinct, np.array(more, dtype=np.int64)), entries_of
