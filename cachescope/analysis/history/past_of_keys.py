"""What had happened to each key before a lookup of it. Lookups are named by their index in time order.

Each key is walked once, in time order: a lookup is processed when it was made and when its compile ended, and
not again for every later one. So a thousand ranks that miss one key take a thousand steps.

Since 2.8 text logs do not mention guards. A key missed because of its guards if it had been stored for a graph with
symbolic sizes, no failure to load it was recorded, and, if the cache directory is known, entries with several guards
exist there.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from heapq import heappop, heappush
from typing import Final, NamedTuple

from cachescope.analysis.history.history import History, is_miss
from cachescope.analysis.history.timeline import shows_symbol
from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key
from cachescope.keys.paths import is_in_remote_cache
from cachescope.terms import VLLM

_Compile = tuple[int, str | None]
"""A run and a compile id."""
_RUNS_NAMED: Final = 8
_LONG_AGO: Final = -(2**63)


class Racing(NamedTuple):
    """Other runs that were still compiling a key."""

    first: int  # the index of the first of their misses
    runs: tuple[int, ...]
    """Their numbers, the smallest first; not all of them, since a fleet that starts at once races by the thousand."""
    more: int  # how many others there are


class KeyPast:
    """The past of one key, as of the lookup that `move_to` was last given."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._lookups = history.lookups
        self._directories = history.directory_of
        self._not_stored = history.timeline.not_stored
        self._row = history.lookups[0]
        self._compile = _compile_of(self._row)
        self.latest: int | None = None
        """The latest earlier lookup of the key."""
        self.latest_hit: int | None = None
        """The latest lookup that found an entry."""
        # Lookups that show whether the key is stored.
        self._shown = _Found()
        self._earlier = _Found()
        self._ended = _Found()
        self._ended_or_not = _Found()
        self._going_on = _GoingOn(history)

    def move_to(self, at: int) -> None:
        """Advance to a lookup, which comes after all that were passed."""
        self._row = row = self._lookups[at]
        self._compile = _compile_of(row)
        if row.time is not None:
            for ended in self._going_on.ended_before(row.time):
                if ended not in self._not_stored:
                    of_ended = self._lookups[ended]
                    self._ended.add(ended, _compile_of(of_ended), self._directories.get(of_ended.run))

    def pass_by(self, at: int) -> None:
        """Let a lookup be one of the past."""
        row = self._lookups[at]
        compiled, directory = _compile_of(row), self._directories.get(row.run)
        self.latest = at
        if directory is not None:
            self._earlier.add(at, compiled, directory)
        if row.outcome == "hit":
            self.latest_hit = at
            self._shown.add(at, None, None)
            self._ended.add(at, None, directory)
            self._ended_or_not.add(at, None, directory)
        elif is_miss(row):
            self._going_on.add(at, row.run, directory)
            self._shown.add(at, compiled, None)
            if at not in self._not_stored:
                self._ended_or_not.add(at, compiled, directory)

    @property
    def latest_stored(self) -> int | None:
        """The latest lookup that shows that an entry of the key was stored."""
        # Two lookups of one key in one compile: the first went through the AOTAutograd entry, and stored nothing yet.
        return self._stored.latest(self._compile)

    @property
    def elsewhere(self) -> str | None:
        """A directory in which the key had been stored, else looked up; None if unknown or this lookup's is one of them."""
        here = self._directories.get(self._row.run)
        if here is None:
            return None
        if self.latest_stored is not None:
            return self._stored.elsewhere(here, self._compile)
        return self._earlier.elsewhere(here, but=None)

    def racing(self) -> Racing | None:
        """The other runs that had missed the key and were still compiling it, unless it is for another directory."""
        run, time = self._row.run, self._row.time
        return None if time is None else self._going_on.elsewhere(run, self._directories.get(run), time)

    @property
    def refused(self) -> int | None:
        """The latest miss if it is known to have stored nothing, its compile had ended, and nobody had stored the key since."""
        # Two lookups of one key in one compile: the result of that compile is not stored yet.
        shown = self._shown.latest(self._compile)
        if shown is None or shown not in self._not_stored or self._lookups[shown].outcome == "hit":
            return None
        end = self._history.timeline.end[shown]
        return None if self._row.time is not None and end is not None and end >= self._row.time else shown

    @property
    def _stored(self) -> _Found:
        return self._ended_or_not if self._row.time is None else self._ended


def pasts_of(history: History, chosen: Iterable[int]) -> Iterator[tuple[int, KeyPast]]:
    """Some lookups in time order, those of them that have a past, each with it; it is valid until the next one is taken."""
    lookups, keys, places = history.lookups, history.key, history.of_key
    # Apart from those that were made, those that each pre-flight predicts: it stores nothing for another run.
    of_key = by_key(
        ((key, None if lookups[at].prediction is None else lookups[at].run), at)
        for at in chosen
        if (key := keys[at]) is not None and places[key][0] != at
    )
    for (key, run), asking in of_key.items():
        every = places[key]
        # What is predicted comes after all that was made.
        if lookups[every[-1]].prediction is not None:
            every = [one for one in every if lookups[one].prediction is None or lookups[one].run == run]
        past, waiting = KeyPast(history), deque(every)
        for at in asking:
            while waiting and waiting[0] < at:
                past.pass_by(waiting.popleft())
            if past.latest is not None:
                past.move_to(at)
                yield at, past


def _compile_of(row: LookupRow) -> _Compile:
    return row.run, row.compile_id


class _Found:
    """Some lookups of a key: the latest and their directories; the lookups of any one compile can be left out."""

    def __init__(self) -> None:
        self._latest: tuple[int, _Compile | None] | None = None
        # The latest lookup of any other compile.
        self._latest_other: tuple[int, _Compile | None] | None = None
        # By directory: the compile whose lookups alone were made there; several are None, and no compile at all.
        self._compiled_in: dict[str, _Compile | None] = {}
        self._directories: list[str] = []

    def add(self, at: int, compiled: _Compile | None, directory: str | None) -> None:
        """Add a lookup under its compile; None if no query may leave it out."""
        latest = self._latest
        if latest is None or compiled == latest[1]:
            self._latest = (at, compiled) if latest is None or at > latest[0] else latest
        elif at > latest[0]:
            self._latest, self._latest_other = (at, compiled), latest
        elif self._latest_other is None or at > self._latest_other[0]:
            self._latest_other = at, compiled
        if directory is None:
            return
        if directory not in self._compiled_in:
            self._compiled_in[directory] = compiled
            insort(self._directories, directory)
        elif self._compiled_in[directory] != compiled:
            self._compiled_in[directory] = None

    def latest(self, but: _Compile) -> int | None:
        found = self._latest
        if found is not None and found[1] == but:
            found = self._latest_other
        return None if found is None else found[0]

    def elsewhere(self, here: str, but: _Compile | None) -> str | None:
        """The last directory in name order; None if none is known, or if a lookup was made in `here`."""
        if here in self._compiled_in and (but is None or self._compiled_in[here] != but):
            return None
        return next((directory for directory in self._directories[:-3:-1] if directory != here), None)


class _GoingOn:
    """Misses of a key whose compiles are still running."""

    def __init__(self, history: History) -> None:
        self._lookups = history.lookups
        self._end = history.timeline.end
        self._directories = history.directory_of
        self._by_end: list[tuple[int, int]] = []
        self._of_run: Counter[int] = Counter()
        # By cache directory, of which a run has one: its misses with their ends, ended ones too; and the runs that still compile.
        self._in_directory: dict[str | None, tuple[deque[tuple[int, int]], list[int]]] = {}

    def add(self, at: int, run: int, directory: str | None) -> None:
        going_on = _LONG_AGO if (end := self._end[at]) is None else end, at
        heappush(self._by_end, going_on)
        misses, runs = self._in_directory.setdefault(directory, (deque(), []))
        misses.append(going_on)
        if not self._of_run[run]:
            insort(runs, run)
        self._of_run[run] += 1

    def ended_before(self, time: int) -> list[int]:
        """Remove and return the misses whose compile has ended."""
        ended = []
        while self._by_end and self._by_end[0][0] < time:
            at = heappop(self._by_end)[1]
            ended.append(at)
            run = self._lookups[at].run
            self._of_run[run] -= 1
            if not self._of_run[run]:
                _, runs = self._in_directory[self._directories.get(run)]
                del runs[bisect_left(runs, run)]
        return ended

    def elsewhere(self, run: int, here: str | None, time: int) -> Racing | None:
        """The misses by other runs at a time, but for those that are known to use another directory."""
        first, named, going_on = None, [], 0
        for directory in self._in_directory if here is None else (here, None):
            if directory in self._in_directory:
                misses, runs = self._in_directory[directory]
                of_directory = self._first(misses, run, time)
                if of_directory is not None and (first is None or of_directory < first):
                    first = of_directory
                named += runs[: _RUNS_NAMED + 1]
                going_on += len(runs)
        if first is None:
            return None
        named.sort()
        if run in named:
            named.remove(run)
        del named[_RUNS_NAMED:]
        return Racing(first, tuple(named), going_on - (self._of_run[run] > 0) - len(named))

    def _first(self, misses: deque[tuple[int, int]], run: int, time: int) -> int | None:
        """The first of the misses by other runs with one directory."""
        while misses and misses[0][0] < time:
            misses.popleft()
        others = (at for end, at in misses if end >= time and self._lookups[at].run != run)
        return next(others, None)


def settled_history(
    lookups: Iterable[LookupRow], entries: Iterable[EntryRow], runs: Iterable[RunRow], details: HashDetails
) -> History:
    """What happened; misses that a text log leaves open and that can only be guard misses are said to be such."""
    history = History(lookups, entries, runs, details)
    found = _inferred_guard_misses(history)
    for at in found:
        history.lookups[at] = replace(history.lookups[at], outcome="guard_miss")
    history.inferred = tuple(history.lookups[at].lookup for at in found)
    return history


def is_open(row: LookupRow) -> bool:
    """Whether a text log leaves open if guards failed: a trace records guard misses itself."""
    return row.outcome == "full_miss" and row.status_detailed is None and row.cache != VLLM


def _inferred_guard_misses(history: History) -> list[int]:
    lookups = history.lookups
    asked = [at for at, row in enumerate(lookups) if is_open(row)]
    if not asked:
        return []
    # Whether each key that had been looked up before had been stored before.
    was_stored = {at: past.latest_stored is not None for at, past in pasts_of(history, asked)}
    symbolic: dict[int | None, bool] = {None: False}
    found: dict[int, None] = {}
    for at in asked:
        row = lookups[at]
        if row.cache_key is None or row.load_error is not None:
            continue
        # In a remote cache an entry with other guards replaces the one before, so the number of entries says nothing.
        stored = [entry for entry in history.entries_of(row) if not is_in_remote_cache(entry.path)]
        if at not in was_stored and not stored:
            continue
        detail_set = row.detail_set
        if detail_set is not None and detail_set not in symbolic:
            inputs = (
                one for one in history.details.details(detail_set) if one.field.startswith("example_inputs")
            )
            symbolic[detail_set] = any(shows_symbol(one.value_text) for one in inputs)
        # The FX graph of an AOTAutograd guard miss has the same guards, with or without details.
        may_have_guards = symbolic[detail_set] or history.aot[at] in found
        if may_have_guards and _is_there(was_stored.get(at, False), stored):
            found[at] = None
    # Through 2.7 an AOTAutograd entry had no guards of its own: the guards of its graphs failed.
    for at, row in enumerate(lookups):
        above = history.aot[at]
        if above is not None and (row.outcome == "guard_miss" or at in found) and is_open(lookups[above]):
            found[above] = None
    return list(found)


def _is_there(stored: bool, entries: list[EntryRow]) -> bool:
    """Whether a sound entry existed whose guards may have failed; if a directory was read, it decides.

    A guard miss adds an entry under the key, with other guards. A single entry is the one that the miss wrote.
    """
    if not entries:
        return stored
    sound = {entry.guards_expr for entry in entries if entry.status == "ok"}
    unread = sum(entry.status == "unreadable" for entry in entries)
    return stored and len(sound) + unread > 1
