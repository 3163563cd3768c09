"""The recorded lookups as every replay needs them, and what each cache directory contained over time, by lookups and entries.

Time is counted in *positions*: the index of a lookup among all lookups in time order. A *cell* is one key in one directory. A walk
through its lookups in time order shows which entries it had, and which outcomes nothing explains.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Final, Literal, NamedTuple

from cachescope.analysis.history.directory import HIT, MISS, Event
from cachescope.analysis.history.entry_times import EntryTimes
from cachescope.analysis.history.history import History
from cachescope.analysis.history.timeline import NEVER
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.terms import MISSED, VLLM

OTHER: Final = 3
"""A lookup that no replay changes: bypassed, disabled, or vLLM's."""


class Key(NamedTuple):
    """A key of torch, as far as it is known."""

    cache: str
    direction: str | None
    name: str
    detail_set: int | None  # None if no source has its hash details

    @property
    def home(self) -> tuple[str, str | None]:
        """Keys of different homes never become equal."""
        return self.cache, self.direction


def _keys(history: History) -> tuple[list[Key], list[int]]:
    """All keys with the first details that any source has for them, and the key of every entry."""
    numbers = dict(history.key_numbers)
    keys = []
    for (cache, name), indexes in zip(history.key_numbers, history.of_key.values(), strict=True):
        rows = (history.lookups[at] for at in indexes)
        first = next((row for row in rows if row.detail_set is not None), None)
        direction, detail_set = (first.direction, first.detail_set) if first else (None, None)
        keys.append(Key(cache, direction, name, detail_set))
    key_of_entry = []
    for entry in history.entries:
        assert entry.cache_key is not None
        key = numbers.setdefault((entry.cache, entry.cache_key), len(keys))
        key_of_entry.append(key)
        if key == len(keys):
            keys.append(Key(entry.cache, None, entry.cache_key, None))
        if entry.detail_set is not None and keys[key].detail_set is None:
            direction = history.details.direction(entry.detail_set)
            keys[key] = Key(entry.cache, direction, entry.cache_key, entry.detail_set)
    return keys, key_of_entry


class RunDirectories:
    """Which runs share a cache directory, and which of these directories each directory read is.

    A recording may have been moved since it was made: a directory at a path that no run used is matched by the
    keys it contains.
    """

    def __init__(self, history: History, key_of_entry: Sequence[int]) -> None:
        known = {run.run: run.cache_dir for run in history.runs if run.cache_dir is not None}
        names = dict.fromkeys([*known.values(), *filter(None, history.folders)])
        code = {name: at for at, name in enumerate(names)}
        of_torch = [row.cache != VLLM for row in history.lookups]
        # Whether the directory of every run is recorded.
        self.are_all_known = all(
            row.run in known for row, is_one in zip(history.lookups, of_torch, strict=True) if is_one
        )
        of_run = {run: code[name] for run, name in known.items()}
        if of_run and not self.are_all_known:
            _find_by_hits(of_run, history)
        # All runs whose directory is not known share one: the only one, or one more.
        shared = 0 if len(code) == 1 else len(code)
        self.count = shared + 1
        # The number of the directory of each lookup.
        self.of_lookup = [
            of_run.get(row.run, shared) if folder is None else code[folder]
            for row, folder in zip(history.lookups, history.folders, strict=True)
        ]
        used = {one for one, is_one in zip(self.of_lookup, of_torch, strict=True) if is_one}
        # By the path of each directory that was read, the numbers of those that it may be. Then the paths that no run is known to have used.
        self.guessed: set[str] = set()
        self.of_root = self._roots(history, key_of_entry, code, sorted(used) or [0])

    def _roots(
        self, history: History, key_of_entry: Sequence[int], code: Mapping[str, int], used: list[int]
    ) -> dict[str, list[int]]:
        # By key, the directories in which it was looked up.
        where = by_key(sorted({*zip(history.key, self.of_lookup, strict=True)}, key=itemgetter(1)))
        votes: dict[str, Counter[int]] = defaultdict(Counter)
        for entry, key in zip(history.entries, key_of_entry, strict=True):
            votes[entry.root].update(where.get(key, ()))
        found = {}
        for root, count in votes.items():
            if (place := history.place_of(root)) in code:
                found[root] = [code[place]]
            elif count:
                found[root] = [count.most_common(1)[0][0]]
            else:
                found[root] = used
                if code:
                    self.guessed.add(root)
        return found


def _find_by_hits(of_run: dict[int, int], history: History) -> None:
    """Add the runs that found something that only one directory contained."""
    lookups, not_stored = history.lookups, history.timeline.not_stored
    wanted = {
        key
        for row, key in zip(lookups, history.key, strict=True)
        if key is not None and row.outcome == "hit" and row.run not in of_run
    }
    directory_of: dict[int, int] = {}
    for at, (row, key) in enumerate(zip(lookups, history.key, strict=True)):
        if key is None or key not in wanted:
            continue
        if row.outcome == "hit":
            if row.run not in of_run and key in directory_of:
                of_run[row.run] = directory_of[key]
        elif row.run in of_run and at not in not_stored:
            directory_of[key] = of_run[row.run]


@dataclass(slots=True)
class Stored:
    """One entry under a key in a directory, from the position at which it was stored until it was gone."""

    since: int
    source: int  # position of the miss that stored it; -1 if it existed before, or came from elsewhere
    gone: int = NEVER
    guards: str | None = None  # empty if it has none; None if they are not known
    # The last position at which it may not have been there yet; -1 if `since` is when it was stored.
    unsure: int = -1

    @property
    def sure(self) -> int:
        """The position from which it is known to exist."""
        return max(self.since, self.unsure + 1)

    def events(self, key: int) -> Iterator[Event]:
        """Its events for a directory. While it may or may not be there, its guards do not help."""
        for at, guards in {self.since: None, self.sure: self.guards}.items():
            yield Event(at, key, self.source, 1, guards)
            if self.gone < NEVER:
                yield Event(self.gone, key, self.source, -1, guards)


class Difference(NamedTuple):
    """A recorded outcome that does not follow from what was stored: something outside the recording happened."""

    position: int
    kind: Literal["gone", "came"]


@dataclass(slots=True, eq=False)
class Cell:
    """One key in one directory."""

    key: int
    directory: int
    lookups: list[int] = field(default_factory=list)
    misses: list[int] = field(default_factory=list)
    entries: list[Stored] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)  # those of its entries
    has_guards: bool = False  # whether its entries may have guards


class Cells:
    """Every key in every directory in which it was looked up or stored."""

    def __init__(self, history: History) -> None:
        self._history = history
        # The keys of lookups, then those of entries alone; and the index of each in them.
        self.keys, self.key_of_entry = _keys(history)
        codes = {"hit": HIT, **dict.fromkeys(MISSED, MISS)}
        self.outcome = [
            OTHER if key is None or row.cache == VLLM else codes.get(row.outcome, OTHER)
            for row, key in zip(history.lookups, history.key, strict=True)
        ]
        # The position from which the result of each lookup exists; `NEVER` if it is not known to have stored one.
        self.stored_since = [
            NEVER if outcome != MISS or at in history.timeline.not_stored else history.timeline.until[at]
            for at, outcome in enumerate(self.outcome)
        ]
        self.directories = RunDirectories(history, self.key_of_entry)
        self.every: list[Cell] = []
        # The cell of each lookup; None for a lookup that no replay changes.
        self.of_lookup: list[Cell | None] = []
        self.of_key: dict[int, list[Cell]] = {}
        self.differences: list[Difference] = []
        self._times = EntryTimes(history)
        self._has_times = any(row.time is not None for row in history.lookups)
        entries = self._numbered()
        for cell in self.every:
            self._walk(cell, entries.get(cell, []))

    def _numbered(self) -> Mapping[Cell, list[EntryRow]]:
        """Make the cells, and return the sound entries of those that have any."""
        history, directories = self._history, self.directories
        known: dict[tuple[int, int], Cell] = {}

        def cell_of(key: int, directory: int) -> Cell:
            cell = known.get((key, directory))
            if cell is None:
                cell = known[key, directory] = Cell(key, directory)
                self.every.append(cell)
                self.of_key.setdefault(key, []).append(cell)
            return cell

        for at, (key, outcome) in enumerate(zip(history.key, self.outcome, strict=True)):
            if key is None or outcome not in (HIT, MISS):
                self.of_lookup.append(None)
                continue
            cell = cell_of(key, directories.of_lookup[at])
            self.of_lookup.append(cell)
            cell.lookups.append(at)
            if outcome == MISS:
                cell.misses.append(at)
        return by_key(
            (cell_of(key, directory), entry)
            for entry, key in zip(history.entries, self.key_of_entry, strict=True)
            if entry.status == "ok"
            for directory in directories.of_root[entry.root]
        )

    def _walk(self, cell: Cell, entries: list[EntryRow]) -> None:
        history, detail_set = self._history, self.keys[cell.key].detail_set
        before, guards_of = self._entries_before(cell, entries)
        walk = CellWalk(before, guards_of)
        walk.walk((at, history.lookups[at], self.stored_since[at]) for at in cell.lookups)
        cell.entries = walk.entries
        self.differences += walk.differences
        # No log may show the guards, unless every entry is known to have none.
        is_symbolic = detail_set is not None and history.keys.has_symbols(detail_set)
        is_open = is_symbolic and any(entry.guards is None for entry in walk.entries)
        cell.has_guards = walk.has_guards or is_open or any(entry.guards_expr for entry in entries)
        for entry in walk.entries:
            if entry.source >= 0:
                self.stored_since[entry.source] = entry.since
            if entry.guards is None and not cell.has_guards:
                entry.guards = ""
            cell.events += entry.events(cell.key)

    def _entries_before(self, cell: Cell, entries: list[EntryRow]) -> tuple[list[Stored], Mapping[int, str]]:
        """The entries that no recorded miss stored; and for those that one stored, their guards by the position of the miss."""
        if not entries:
            return [], {}
        position_of = self._history.timeline.position_of
        timed = sorted((*self._times.interval(one), one.guards_expr or "", one.root) for one in entries)
        if storing := [at for at in cell.lookups if self.stored_since[at] < NEVER]:
            # As many entries as misses, in a known order: each is the result of one miss.
            is_each = len(storing) == len({begin for begin, *_ in timed}) == len(timed)
            return [], dict(zip(storing, (shown for _, _, shown, _ in timed), strict=True)) if is_each else {}
        found = []
        for begin, end, shown, root in timed:
            since, sure = (position_of(begin - 1), position_of(end - 1)) if self._has_times else (0, NEVER)
            sure = NEVER if root in self.directories.guessed else sure
            found.append(Stored(since, -1, NEVER, shown, sure - 1))
        return found, {}


class CellWalk:
    """The walk through one cell: its entries, and the outcomes that nothing explains."""

    def __init__(self, entries: Iterable[Stored], guards_of: Mapping[int, str]) -> None:
        self.entries = list(entries)
        # Whether some lookup shows guards.
        self.has_guards = False
        self.differences: list[Difference] = []
        self._guards_of = guards_of
        # Entries that are not yet known to exist, by the position from which they are.
        self._coming = [(entry.sure, number, entry) for number, entry in enumerate(self.entries)]
        heapify(self._coming)
        self._perhaps = [entry for entry in self.entries if entry.since < entry.sure]
        # The entries that exist; of these, the guards that are known, and those whose guards are not.
        self._there: list[Stored] = []
        self._known: set[str] = set()
        self._unknown: list[Stored] = []

    def walk(self, lookups: Iterable[tuple[int, LookupRow, int]]) -> None:
        """Follow the lookups in time order, and record what does not follow from what was stored.

        Each has its position, and that from which its result exists, which is `NEVER` if it stored nothing.
        """
        is_first = True
        for at, row, since in lookups:
            while self._coming and self._coming[0][0] <= at:
                self._take(heappop(self._coming)[2])
            if row.outcome == "hit" and not self._there:
                self._take(self._found_nevertheless(at, is_first))
            elif row.outcome == "guard_miss" and not self.entries:
                self._take(self._add(Stored(0, -1)))
            self._learn_guards(row)
            if row.outcome == "full_miss":
                self._lose_all(at)
            if since < NEVER:
                stored = self._add(Stored(since, at, NEVER, self._guards_of.get(at)))
                heappush(self._coming, (since, len(self.entries), stored))
            is_first = False

    def _found_nevertheless(self, at: int, is_first: bool) -> Stored:
        """The entry of a recorded hit for which no stored entry is known."""
        next_one = self._coming[0][2] if self._coming else None
        if next_one is not None and (is_first or next_one.source >= 0 or next_one.since <= at):
            heappop(self._coming)
            # It existed before the recording (a copied directory has the times of the copy), or was stored earlier than the records show.
            next_one.since, next_one.unsure = 0 if is_first and next_one.source < 0 else at, -1
            return next_one
        if is_first:
            return self._add(Stored(0, -1))
        self.differences.append(Difference(at, "came"))
        return self._add(Stored(at, -1))

    def _add(self, entry: Stored) -> Stored:
        self.entries.append(entry)
        return entry

    def _take(self, entry: Stored) -> None:
        self._there.append(entry)
        if entry.guards is None:
            self._unknown.append(entry)
        else:
            self._known.add(entry.guards)

    def _lose_all(self, at: int) -> None:
        """Nothing is there: entries that existed are gone, and those that may have existed come later."""
        for entry in self._perhaps:
            if entry.sure > at:
                entry.since = max(entry.since, at + 1)
        if not self._there:
            return
        self.differences.append(Difference(at, "gone"))
        for entry in self._there:
            entry.gone = at
        self._there, self._known, self._unknown = [], set(), []

    def _learn_guards(self, row: LookupRow) -> None:
        """Record the guards that a lookup shows, if only one candidate's are unknown."""
        guards = row.guards_expr or ""
        self.has_guards |= bool(guards) or row.outcome == "guard_miss"
        if len(self._unknown) != 1 or guards in self._known:
            return
        # For a miss, torch prints the guards of a candidate; for a hit without guards, nothing (2.8 and later).
        if guards or (row.outcome == "hit" and row.status_detailed == "hit"):
            self._unknown.pop().guards = guards
            self._known.add(guards)
