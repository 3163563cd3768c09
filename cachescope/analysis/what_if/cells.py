"""The contents of each cache directory over time, from the recorded lookups and entries: the basis of every replay.

A *cell* is one key in one directory. Time is counted in *positions*: the place of a lookup among all lookups in
time order. A stored entry exists from the first lookup after its compile ended.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np
import numpy.typing as npt

from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import MISSING
from cachescope.analysis.history.rows import EntryRow, LookupRow
from cachescope.analysis.what_if.keys import Key

NEVER: Final = 2**31 - 1
HIT: Final = 0
MISS: Final = 1
UNKNOWN: Final = 2
"""Not an outcome of torch: a replay reports it if nothing decides."""
OTHER: Final = 3
"""Bypassed or disabled: no replay changes it."""

Positions = npt.NDArray[np.int64]
Outcomes = npt.NDArray[np.int8]


@dataclass(slots=True)
class Stored:
    """One entry under a key in a directory, from the position at which it was stored until it was gone."""

    since: int
    source: int
    """Position of the miss that stored it; -1 if it existed before, or came from elsewhere."""
    gone: int = NEVER
    guards: str | None = None
    has_known_guards: bool = False


@dataclass(slots=True)
class Cell:
    """One key in one directory."""

    key: int
    directory: int
    lookups: list[int] = field(default_factory=list)
    entries: list[Stored] = field(default_factory=list)
    has_guards: bool = False
    was_removed: bool = False

    def add(self, entry: Stored) -> Stored:
        """Add an entry, and return it."""
        self.entries.append(entry)
        return entry

    @property
    def is_plain(self) -> bool:
        """Whether the first entry alone determines what exists at any time."""
        return not (self.has_guards or self.was_removed)


@dataclass(frozen=True, slots=True)
class Difference:
    """A recorded outcome that does not follow from what was stored: something outside the recording happened."""

    position: int
    recorded: int
    kind: str


class Recorded:
    """The lookups in time order as arrays, and the cells they were made in."""

    def __init__(self, history: History) -> None:
        entries = history.entries
        self.rows = lookups = list(history.lookups)
        self.directories = Directories(history, lookups)
        self.keys, key_of = _keys(lookups, entries)
        n = len(lookups)
        self.key: Positions = np.array(
            [-1 if r.cache_key is None else key_of[r.cache, r.cache_key] for r in lookups], dtype=np.int64
        ).reshape(n)
        codes = {"hit": HIT, "full_miss": MISS, "guard_miss": MISS}
        self.outcome: Outcomes = np.array([codes.get(r.outcome, OTHER) for r in lookups], dtype=np.int8)
        self.outcome[self.key < 0] = OTHER
        self.aot: Positions = history.lookups.aot
        self.storing: npt.NDArray[np.bool_] = (self.outcome == MISS) & history.stored
        self._times = _filled_times(lookups)
        self.since: Positions = self._since(history.end)
        self._guards_of: dict[int, str | None] = {}
        self.cells: list[Cell] = []
        self.cell: Positions = np.full(n, -1, dtype=np.int64)
        self._fill_cells(entries, key_of)
        self.differences: list[Difference] = []
        for cell in self.cells:
            self._walk(cell)

    def _since(self, end: Positions) -> Positions:
        """The position from which the result of each miss exists."""
        at = np.arange(len(self.rows), dtype=np.int64)
        found = np.where(self.storing & (end != MISSING), end, -1)
        since = np.maximum(np.searchsorted(self._times, found, side="right"), at + 1)
        # In one compile the graph of an AOTAutograd entry is looked up again after the entry failed.
        last = at.copy()
        same = self.aot >= 0
        last_of_aot = np.full(len(self.rows) + 1, -1, dtype=np.int64)
        np.maximum.at(last_of_aot, self.aot[same], at[same])
        last[same] = last_of_aot[self.aot[same]]
        return np.maximum(since, last + 1)

    def position_of(self, time: int | None) -> int:
        """The first lookup made after a time; 0 if the time is unknown."""
        if time is None:
            return 0
        return int(np.searchsorted(self._times, time, side="right"))

    def _fill_cells(self, entries: Sequence[EntryRow], key_of: dict[tuple[str, str], int]) -> None:
        found: dict[tuple[int, int], int] = {}

        def cell_of(key: int, directory: int) -> Cell:
            at = found.setdefault((key, directory), len(self.cells))
            if at == len(self.cells):
                self.cells.append(Cell(key, directory))
            return self.cells[at]

        for at, (row, key) in enumerate(zip(self.rows, self.key.tolist(), strict=True)):
            if key < 0 or self.outcome[at] == OTHER:
                continue
            directory = self.directories.of_run[row.run]
            cell_of(key, directory).lookups.append(at)
            self.cell[at] = found[key, directory]
        of_cell: dict[int, list[EntryRow]] = defaultdict(list)
        for entry in entries:
            if entry.status != "ok":
                continue
            key = key_of[entry.cache, entry.cache_key]
            for directory in self.directories.of_root[entry.root]:
                cell_of(key, directory)
                of_cell[found[key, directory]].append(entry)
        for at, mine in of_cell.items():
            self._add_entries(self.cells[at], mine)

    def _add_entries(self, cell: Cell, entries: list[EntryRow]) -> None:
        """Add entries that no recorded miss stored; they exist from when they were written."""
        cell.has_guards |= any(entry.guards_expr for entry in entries)
        entries.sort(key=lambda entry: entry.modified_time or 0)
        stored = [at for at in cell.lookups if self.storing[at]]
        if stored:
            # The same number, in time order: each is the result of one miss.
            guards = [entry.guards_expr or None for entry in entries]
            self._guards_of.update(zip(stored, guards, strict=True) if len(stored) == len(guards) else ())
            return
        for entry in entries:
            since = self.position_of(entry.modified_time)
            cell.entries.append(Stored(since, -1, guards=entry.guards_expr or None, has_known_guards=True))

    def _walk(self, cell: Cell) -> None:
        """Follow the lookups of a cell in time order, and record what does not follow from what was stored."""
        coming = [(entry.since, number, entry) for number, entry in enumerate(cell.entries)]
        heapify(coming)
        there = _StoredNow()
        for at in cell.lookups:
            row = self.rows[at]
            while coming and coming[0][0] <= at:
                there.add(heappop(coming)[2])
            before = there
            if self.outcome[at] == HIT:
                if not there.entries:
                    there.add(self._found_nevertheless(cell, at, coming))
            else:
                if row.outcome == "guard_miss":
                    cell.has_guards = True
                    if not cell.entries:
                        there.add(cell.add(Stored(0, -1)))
                elif there.entries:
                    self.differences.append(Difference(at, MISS, "gone"))
                    cell.was_removed = True
                    for entry in there.entries:
                        entry.gone = at
                    there = _StoredNow()
                if self.storing[at]:
                    since, known = int(self.since[at]), at in self._guards_of
                    entry = Stored(since, at, guards=self._guards_of.get(at), has_known_guards=known)
                    heappush(coming, (since, len(cell.entries), cell.add(entry)))
            if row.guards_expr:
                cell.has_guards = True
            before.learn_guards(row)

    def _found_nevertheless(self, cell: Cell, at: int, coming: list[tuple[int, int, Stored]]) -> Stored:
        """The entry of a recorded hit for which no stored entry is known."""
        if coming and coming[0][2].source >= 0:
            # It was stored sooner than the records show.
            _, _, first = heappop(coming)
            first.since = at
            self.since[first.source] = at
            return first
        if cell.lookups[0] == at:
            # It existed before the recording; a copied directory has the times of the copy.
            entry = heappop(coming)[2] if coming else cell.add(Stored(0, -1))
            entry.since = 0
            return entry
        self.differences.append(Difference(at, HIT, "came"))
        cell.was_removed = True
        return cell.add(Stored(at, -1))


class _StoredNow:
    """The entries that exist at one time, and what is known of their guards: they come one by one and go together."""

    def __init__(self) -> None:
        self.entries: list[Stored] = []
        self._known: set[str | None] = set()
        self._unknown: list[Stored] = []

    def add(self, entry: Stored) -> None:
        self.entries.append(entry)
        if entry.has_known_guards:
            self._known.add(entry.guards)
        else:
            self._unknown.append(entry)

    def learn_guards(self, row: LookupRow) -> None:
        """Record the guards that a lookup shows, if only one candidate's are unknown."""
        if row.guards_expr in self._known or len(self._unknown) != 1:
            return
        # For a miss, torch prints the guards of a candidate; for a hit without guards, nothing (2.8 and later).
        if row.guards_expr or (row.is_hit and row.status_detailed == "hit"):
            entry = self._unknown.pop()
            entry.guards, entry.has_known_guards = row.guards_expr or None, True
            self._known.add(entry.guards)


def _filled_times(lookups: Sequence[LookupRow]) -> Positions:
    """The time of every lookup; a lookup without one gets the time of the lookup before it."""
    times, latest = [], 0
    for row in lookups:
        latest = latest if row.time is None else row.time
        times.append(latest)
    return np.array(times, dtype=np.int64)


def _keys(
    lookups: Sequence[LookupRow], entries: Sequence[EntryRow]
) -> tuple[list[Key], dict[tuple[str, str], int]]:
    """Every key, with the first details that any source has for it."""
    details: dict[tuple[str, str], tuple[int, str | None]] = {}
    order: dict[tuple[str, str], int] = {}
    rows: list[LookupRow | EntryRow] = [*lookups, *entries]
    for row in rows:
        if row.cache_key is None:
            continue
        name = row.cache, row.cache_key
        order.setdefault(name, len(order))
        if row.detail_set is not None and name not in details:
            details[name] = row.detail_set, row.direction
    keys = []
    for cache, cache_key in order:
        detail_set, direction = details.get((cache, cache_key), (None, None))
        keys.append(Key(cache, cache_key, direction, detail_set))
    return keys, order


class Directories:
    """Which runs share a cache directory, and which of these directories each directory read is.

    A recording may have been moved since it was made: a directory at a path that no run used is matched by the
    keys it contains.
    """

    def __init__(
        self,
        history: History,
        lookups: Sequence[LookupRow],
    ) -> None:
        known: dict[int, str | None] = {r.run: r.cache_dir for r in history.runs if r.cache_dir is not None}
        self.names: list[str | None] = list(dict.fromkeys(known.values()))
        self.are_all_known = len(known) == len({row.run for row in lookups} | known.keys())
        code = {name: at for at, name in enumerate(self.names)}
        keys_of: dict[tuple[str, str], int] = {}
        of_run = {run: code[name] for run, name in known.items()}
        for at, row in enumerate(lookups):
            if row.cache_key is None:
                continue
            name = row.cache, row.cache_key
            if row.run not in of_run and row.is_hit and name in keys_of:
                # It found what only that directory contained.
                of_run[row.run] = keys_of[name]
            if row.run in of_run and not row.is_hit and history.why_not_stored(at) is None:
                keys_of[name] = of_run[row.run]
        shared = 0 if len(self.names) == 1 else len(self.names)
        if shared == len(self.names):
            self.names.append(None)
        self.of_run: dict[int, int] = defaultdict(lambda: shared, of_run)
        self.of_root = self._roots(lookups, history.entries, code)

    def _roots(
        self, lookups: Sequence[LookupRow], entries: Sequence[EntryRow], code: dict[str | None, int]
    ) -> dict[str, list[int]]:
        used = sorted({self.of_run[row.run] for row in lookups}) or [0]
        where: dict[tuple[str, str], set[int]] = defaultdict(set)
        for row in lookups:
            if row.cache_key is not None:
                where[row.cache, row.cache_key].add(self.of_run[row.run])
        votes: dict[str, Counter[int]] = defaultdict(Counter)
        for entry in entries:
            votes[entry.root].update(where.get((entry.cache, entry.cache_key), ()))
        found = {}
        for root, count in votes.items():
            if root in code:
                found[root] = [code[root]]
            else:
                found[root] = [count.most_common(1)[0][0]] if count else used
        return found
