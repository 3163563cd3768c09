"""What each cache directory contained over time, as far as the recorded lookups and entries show.

A *cell* is one key in one directory. Its lookups are followed in time order: which entries there were, and what nothing
explains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final, Literal, NamedTuple

from cachescope.analysis.what_if.replay_columns import HIT, MISS, NEVER, ReplayColumns
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key

NO_GUARDS: Final = 0
"""The number of the guards of an entry that has none."""
NOT_KNOWN: Final = -1
"""For an entry of unknown guards, or one that may not exist."""


@dataclass(slots=True)
class Stored:
    """One entry under a key in a directory, from the position at which it was stored until it was gone."""

    since: int
    # Position of the miss that stored it; -1 if it existed before, or came from elsewhere.
    source: int
    gone: int = NEVER
    guards: str | None = None
    has_known_guards: bool = False
    # Its guards as a number, as `Directory` takes them.
    guards_code: int = NOT_KNOWN


class Difference(NamedTuple):
    """A recorded outcome that does not follow from what was stored: something outside the recording happened."""

    position: int
    kind: Literal["gone", "came"]


Event = tuple[int, bool, int, int, int, int]
"""Something to be played into a directory: its position, whether it is a lookup, its key, the guards of the entry or of what the lookup
compiled, and of an entry when it is gone and the position of the miss that stored it, or -1. At one position, entries come first.
"""


@dataclass(slots=True, eq=False)
class Cell:
    """One key in one directory."""

    number: int
    key: int
    directory: int
    lookups: list[int] = field(default_factory=list)
    misses: list[int] = field(default_factory=list)
    entries: list[Stored] = field(default_factory=list)
    # Whether its entries may have guards.
    has_guards: bool = False
    # Whether the first entry alone determines what exists at any time.
    is_plain: bool = True

    def events(self) -> Iterator[Event]:
        """Its entries and misses, to be played into a directory."""
        for entry in self.entries:
            yield entry.since, False, self.key, entry.guards_code, entry.gone, entry.source
        compiled = {entry.source: entry.guards_code for entry in self.entries}
        for at in self.misses:
            yield at, True, self.key, compiled.get(at, NOT_KNOWN), NEVER, -1


class Cells:
    """Every key in every directory in which it was looked up or stored."""

    def __init__(self, columns: ReplayColumns, is_symbolic: list[bool]) -> None:
        self.every: list[Cell] = []
        # The cell of each lookup; None for a lookup that no replay changes.
        self.of_lookup: list[Cell | None] = []
        self.of_key: dict[int, list[Cell]] = {}
        self.differences: list[Difference] = []
        self._columns = columns
        self._guards: dict[str | None, int] = {None: NO_GUARDS}
        entries = self._numbered()
        for cell in self.every:
            self._walk(cell, entries.get(cell.number, []), is_symbolic[cell.key])

    def _numbered(self) -> Mapping[int, list[EntryRow]]:
        """Make the cells; return the sound entries of those that have any."""
        columns, directories = self._columns, self._columns.run_directories
        known: dict[tuple[int, int], Cell] = {}

        def cell_of(key: int, directory: int) -> Cell:
            cell = known.get((key, directory))
            if cell is None:
                cell = known[key, directory] = Cell(len(known), key, directory)
                self.every.append(cell)
                self.of_key.setdefault(key, []).append(cell)
            return cell

        for at, (key, outcome) in enumerate(zip(columns.key, columns.outcome, strict=True)):
            if key is None or outcome not in (HIT, MISS):
                self.of_lookup.append(None)
                continue
            cell = cell_of(key, directories.of_lookup[at])
            self.of_lookup.append(cell)
            cell.lookups.append(at)
            if outcome == MISS:
                cell.misses.append(at)
        return by_key(
            (cell_of(key, directory).number, entry)
            for entry, key in zip(columns.history.entries, columns.key_of_entry, strict=True)
            if entry.status == "ok"
            for directory in directories.of_root[entry.root]
        )

    def _walk(self, cell: Cell, entries: list[EntryRow], is_symbolic: bool) -> None:
        columns = self._columns
        before, guards_of = self._entries_before(cell, entries)
        walk = CellWalk(before, guards_of)
        rows, outcome, since = columns.history.lookups, columns.outcome, columns.stored_since
        walk.walk(Step(at, rows[at], outcome[at] == HIT, since[at]) for at in cell.lookups)
        cell.entries = walk.entries
        self.differences += walk.differences
        # Guards that no log shows: unless every entry is known to have none.
        is_open = is_symbolic and not all(entry.has_known_guards for entry in walk.entries)
        cell.has_guards = walk.has_guards or is_open or any(entry.guards_expr for entry in entries)
        cell.is_plain = not (cell.has_guards or walk.was_removed)
        for entry in walk.entries:
            if entry.source >= 0:
                columns.stored_since[entry.source] = entry.since
            if entry.has_known_guards or not cell.has_guards:
                entry.guards_code = self._guards.setdefault(entry.guards, len(self._guards))

    def _entries_before(
        self, cell: Cell, entries: list[EntryRow]
    ) -> tuple[list[Stored], Mapping[int, str | None]]:
        """The entries that no recorded miss stored, and the guards of those that one did, by its position."""
        if not entries:
            return [], {}
        in_order = sorted(entries, key=lambda entry: entry.modified_time or 0)
        guards = [entry.guards_expr or None for entry in in_order]
        columns = self._columns
        if storing := [at for at in cell.lookups if columns.stored_since[at] < NEVER]:
            # The same number, in time order: each is the result of one miss.
            is_each = len(storing) == len(guards)
            return [], dict(zip(storing, guards, strict=True)) if is_each else {}
        since = [columns.position_of(entry.modified_time) for entry in in_order]
        return [Stored(at, -1, NEVER, shown, True) for at, shown in zip(since, guards, strict=True)], {}


class Step(NamedTuple):
    """One lookup, as far as it says what was stored."""

    at: int
    row: LookupRow
    is_hit: bool
    since: int  # from which position its result exists; `NEVER` if it stored nothing


class CellWalk:
    """The walk through one cell: its entries, and what nothing explains."""

    def __init__(self, entries: Iterable[Stored], guards_of: Mapping[int, str | None]) -> None:
        self.entries = list(entries)
        # Whether some lookup shows guards, and whether entries came or went from outside.
        self.has_guards = False
        self.was_removed = False
        self.differences: list[Difference] = []
        self._guards_of = guards_of
        self._first = NEVER
        self._there = _StoredNow()
        self._coming = [(entry.since, number, entry) for number, entry in enumerate(self.entries)]
        heapify(self._coming)

    def walk(self, steps: Iterable[Step]) -> None:
        """Follow the lookups in time order, and record what does not follow from what was stored."""
        for step in steps:
            self._first = min(self._first, step.at)
            while self._coming and self._coming[0][0] <= step.at:
                self._there.add(heappop(self._coming)[2])
            before = self._there
            if not step.is_hit:
                self._miss(step)
            elif not before.entries:
                before.add(self._found_nevertheless(step.at))
            self.has_guards |= bool(step.row.guards_expr)
            before.learn_guards(step)

    def _miss(self, step: Step) -> None:
        if step.row.outcome == "guard_miss":
            self.has_guards = True
            if not self.entries:
                self._there.add(self._add(Stored(0, -1)))
        elif self._there.entries:
            self.differences.append(Difference(step.at, "gone"))
            self.was_removed = True
            for entry in self._there.entries:
                entry.gone = step.at
            self._there = _StoredNow()
        if step.since < NEVER:
            is_known = step.at in self._guards_of
            entry = Stored(step.since, step.at, NEVER, self._guards_of.get(step.at), is_known)
            heappush(self._coming, (step.since, len(self.entries), self._add(entry)))

    def _found_nevertheless(self, at: int) -> Stored:
        """The entry of a recorded hit for which no stored entry is known."""
        if self._coming and self._coming[0][2].source >= 0:
            # It was stored sooner than the records show.
            first = heappop(self._coming)[2]
            first.since = at
            return first
        if self._first == at:
            # It existed before the recording; a copied directory has the times of the copy.
            entry = heappop(self._coming)[2] if self._coming else self._add(Stored(0, -1))
            entry.since = 0
            return entry
        self.differences.append(Difference(at, "came"))
        self.was_removed = True
        return self._add(Stored(at, -1))

    def _add(self, entry: Stored) -> Stored:
        self.entries.append(entry)
        return entry


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

    def learn_guards(self, step: Step) -> None:
        """Record the guards that a lookup shows, if only one candidate's are unknown."""
        guards = step.row.guards_expr
        if len(self._unknown) != 1 or guards in self._known:
            return
        # For a miss, torch prints the guards of a candidate; for a hit without guards, nothing (2.8 and later).
        if guards or (step.is_hit and step.row.status_detailed == "hit"):
            entry = self._unknown.pop()
            entry.guards, entry.has_known_guards = guards or None, True
            self._known.add(entry.guards)
