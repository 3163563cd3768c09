"""Replays the recorded lookups, in time order, under other keys: which would have found an entry.

An entry exists from the moment its compile ended, in the directory it was written to. A miss that becomes a hit
stores nothing. Bypassed and disabled lookups stay so, and recorded hits stay hits. If guards matter, or
entries were removed from outside, an exact walk decides (`guard_walk`). Everything else has a closed form: a miss
hits if it comes after the earliest store of its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.history.history import History
from cachescope.analysis.what_if.cells import HIT, MISS, NEVER, UNKNOWN, Cell, Outcomes, Positions, Recorded
from cachescope.analysis.what_if.guard_walk import walk_group
from cachescope.analysis.what_if.keys import KeyTable, Lanes
from cachescope.details import HashDetails
from cachescope.keys.key_fields import Removed


class _Stage(NamedTuple):
    """Misses that are decided together, and whether each cell has some of them."""

    at: Positions
    is_of_cell: npt.NDArray[np.bool_]


class Replay:
    """Everything that does not depend on a schema, which keeps `outcomes` quick."""

    def __init__(
        self,
        history: History,
        details: HashDetails,
    ) -> None:
        self.recorded = recorded = Recorded(history)
        self.table = KeyTable(details, recorded.keys)
        cells = recorded.cells
        self.key_of_cell: Positions = np.array([cell.key for cell in cells], dtype=np.int64)
        self._directory = np.array([cell.directory for cell in cells], dtype=np.uint64)
        self._early: Positions = np.array(
            [min((e.since for e in cell.entries if e.source < 0), default=NEVER) for cell in cells],
            dtype=np.int64,
        )
        self._is_early = np.flatnonzero(self._early < NEVER)
        symbolic = self.table.is_symbolic
        for cell in cells:
            # Guards that no log shows: unless every entry is known to have none.
            if symbolic[cell.key] and any(not e.has_known_guards for e in cell.entries):
                cell.has_guards = True
        self._is_plain = np.array([cell.is_plain for cell in cells], dtype=bool)
        is_aot = history.lookups.is_aot
        known = recorded.cell >= 0
        missed = recorded.outcome == MISS
        # Recorded hits stay hits: only misses are decided, those of AOTAutograd first.
        self._stages = [
            _Stage(at, np.isin(np.arange(len(cells)), recorded.cell[at]))
            for at in (np.flatnonzero(chosen & known & missed) for chosen in (is_aot, ~is_aot))
        ]
        self._first_of_home = self._first_stores(cells)

    def _first_stores(self, cells: Sequence[Cell]) -> Positions:
        """For each cell, when the first entry of its cache came into its directory."""
        first = self._early.copy()
        stored = np.flatnonzero(self.recorded.storing)
        np.minimum.at(first, self.recorded.cell[stored], self.recorded.since[stored])
        caches = [self.table.keys[key].cache for key in self.key_of_cell]
        homes = _numbered(pd.MultiIndex.from_arrays([caches, self._directory]))
        earliest = np.full(len(cells) + 1, NEVER, dtype=np.int64)
        np.minimum.at(earliest, homes, first)
        return earliest[homes]

    def outcomes(self, removed: Removed, lanes: Lanes | None = None) -> Outcomes:
        """The outcome of every lookup, in time order, without what is removed from the keys."""
        recorded = self.recorded
        group = self._groups(self.table.lanes(removed) if lanes is None else lanes)
        walked = self._groups_to_walk(group)
        after = recorded.outcome.copy()
        for at, is_of_cell in self._stages:
            # If an AOTAutograd entry is found, its graphs are found through it.
            above = recorded.aot[at]
            nested = (above >= 0) & (after[above] == HIT) & (recorded.outcome[above] == MISS)
            cell = recorded.cell[at]
            groups = group[cell]
            since = np.full(len(group), NEVER, dtype=np.int64)
            np.minimum.at(since, group[self._is_early], self._early[self._is_early])
            stores = recorded.storing[at] & ~nested
            np.minimum.at(since, groups[stores], recorded.since[at[stores]])
            after[at[nested | ((since[groups] <= at) & self._is_plain[cell])]] = HIT
            beside = set(at[nested].tolist())
            for cells in walked:
                if is_of_cell[cells].any():
                    members = [recorded.cells[one] for one in cells.tolist()]
                    walk_group(recorded, members, after, beside)
        if removed:
            self._say_unknown(after)
        return after

    def _groups(self, lanes: Lanes) -> Positions:
        """Number the cells: those that share a what-if key and a directory get the same number."""
        first = lanes[0, self.key_of_cell] + self._directory * np.uint64(0x9E3779B97F4A7C15)
        second = lanes[1, self.key_of_cell]
        codes = _numbered(first)
        firsts = np.full(len(codes), NEVER, dtype=np.int64)
        np.minimum.at(firsts, codes, np.arange(len(codes)))
        leader = firsts[codes]
        if (second[leader] == second).all() and (self._directory[leader] == self._directory).all():
            return codes
        return _numbered(pd.MultiIndex.from_arrays([lanes[0, self.key_of_cell], second, self._directory]))

    def _groups_to_walk(self, group: Positions) -> list[Positions]:
        """The cells of each group that has several and no closed form."""
        if self._is_plain.all():
            return []
        is_walked = np.zeros(len(group), dtype=bool)
        is_walked[group[~self._is_plain]] = True
        is_walked &= np.bincount(group, minlength=len(group)) > 1
        cells = np.flatnonzero(is_walked[group])
        cells = cells[np.argsort(group[cells], kind="stable")]
        return np.split(cells, np.flatnonzero(np.diff(group[cells])) + 1) if len(cells) else []

    def _say_unknown(self, after: Outcomes) -> None:
        """Mark misses whose key has no details: they may have found any entry that existed."""
        if self.table.has_details.all():
            return
        at = np.flatnonzero((after == MISS) & (self.recorded.cell >= 0))
        cell = self.recorded.cell[at]
        blind = ~self.table.has_details[self.key_of_cell[cell]] & (self._first_of_home[cell] <= at)
        after[at[blind]] = UNKNOWN


def _numbered(values: npt.NDArray[np.uint64] | pd.MultiIndex) -> Positions:
    """Number the values from 0: equal values get equal numbers."""
    numbers: Positions = pd.factorize(values)[0].astype(np.int64)
    return numbers
