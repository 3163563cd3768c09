"""What had happened to each key before a lookup of it. Lookups are named by their place in time order.

Each key is walked once, in time order: a lookup is processed when it was made and when its compile ended, and
not again for every later one. So a thousand ranks that miss one key take a thousand steps.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import Final, NamedTuple

import numpy as np

from cachescope.analysis.history.lookups import MISSING, Flags, Lookups
from cachescope.analysis.history.places_by_group import NONE, Grouped, Numbers
from cachescope.analysis.history.timeline import Timeline

_NOBODY: Final = -2
_SEVERAL: Final = -3
_RUNS_NAMED: Final = 8


class Racing(NamedTuple):
    """Other runs that were still compiling a key."""

    first: int
    """The place of the first of their misses."""
    runs: tuple[int, ...]
    """Their numbers, the smallest first; not all of them, since a fleet that starts at once races by the thousand."""
    more: int
    """How many others there are."""


@dataclass(frozen=True, slots=True)
class _Steps:
    """The lookups of one key in time order, by column."""

    at: list[int]
    time: list[int]
    end: list[int]
    run: list[int]
    compiled: list[int]
    is_hit: list[bool]
    is_miss: list[bool]
    stores: list[bool]
    directory: list[int]


class KeyPast:
    """The past of one key, as of the lookup that `move_to` was last given."""

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self._walked = 0
        self._now = 0
        self._latest_hit = NONE
        # Lookups that show whether the key is stored.
        self._shown = _Found()
        self._earlier = _Found()
        self._ended = _Found()
        self._ended_or_not = _Found()
        self._going_on = _GoingOn(steps)

    def move_to(self, now: int) -> None:
        """Advance to a lookup, past all earlier lookups of the key."""
        steps = self._steps
        self._now = now
        for step in range(self._walked, now):
            self._pass(step)
        self._walked = now
        if steps.time[now] != MISSING:
            for step in self._going_on.ended_before(steps.time[now]):
                if steps.stores[step]:
                    self._ended.add(steps.at[step], steps.compiled[step], steps.directory[step])

    @property
    def latest(self) -> int | None:
        """The place of the latest earlier lookup of the key."""
        return self._steps.at[self._now - 1] if self._now else None

    @property
    def latest_hit(self) -> int | None:
        """The place of the latest lookup that found an entry."""
        return None if self._latest_hit == NONE else self._latest_hit

    @property
    def latest_stored(self) -> int | None:
        """The place of the latest lookup that shows that an entry of the key was stored."""
        # Two lookups of one key in one compile: the first went through the AOTAutograd entry, and stored nothing yet.
        return self._stored.latest(self._steps.compiled[self._now])

    @property
    def elsewhere(self) -> int | None:
        """The number of a directory in which the key had been stored, else looked up; None if unknown or this lookup's is one of them."""
        here = self._steps.directory[self._now]
        if here == NONE:
            return None
        if self.latest_stored is not None:
            return self._stored.elsewhere(here, self._steps.compiled[self._now])
        return self._earlier.elsewhere(here, but=_NOBODY)

    def racing(self) -> Racing | None:
        """The other runs that had missed the key and were still compiling it, unless it is for another directory."""
        steps, now = self._steps, self._now
        if steps.time[now] == MISSING:
            return None
        return self._going_on.elsewhere(steps.run[now], steps.directory[now])

    @property
    def refused(self) -> int | None:
        """The place of the latest miss if it is known to have stored nothing, its compile had ended, and nobody had stored the key since."""
        steps = self._steps
        # Two lookups of one key in one compile: the result of that compile is not stored yet.
        shown = self._shown.latest(steps.compiled[self._now])
        if shown is None or steps.is_hit[shown] or steps.stores[shown]:
            return None
        time = steps.time[self._now]
        return None if time != MISSING and steps.end[shown] >= time else steps.at[shown]

    def _pass(self, step: int) -> None:
        steps = self._steps
        at, compiled, directory = steps.at[step], steps.compiled[step], steps.directory[step]
        self._earlier.add(at, compiled, directory)
        if steps.is_hit[step]:
            self._latest_hit = at
            self._shown.add(step, NONE, NONE)
            self._ended.add(at, NONE, directory)
            self._ended_or_not.add(at, NONE, directory)
        elif steps.is_miss[step]:
            self._going_on.add(step)
            self._shown.add(step, compiled, NONE)
            if steps.stores[step]:
                self._ended_or_not.add(at, compiled, directory)

    @property
    def _stored(self) -> _Found:
        return self._ended_or_not if self._steps.time[self._now] == MISSING else self._ended


class PastOfKeys:
    """The pasts of all keys.

    Parameters
    ----------
    lookups : Lookups
    timeline : Timeline
    directories : mapping
        The cache directory of each run, if known.
    """

    def __init__(self, lookups: Lookups, timeline: Timeline, directories: Mapping[int, str | None]) -> None:
        self._lookups = lookups
        self._timeline = timeline
        self._of_key = Grouped(lookups.key)
        self._is_predicted = lookups.prediction.is_known
        # In the order of their names: the greatest number is the last name.
        self._names = sorted({name for name in directories.values() if name is not None})
        number: dict[str | None, int] = {None: NONE} | {name: at for at, name in enumerate(self._names)}
        runs, which = np.unique(lookups.run, return_inverse=True)
        of_run = [number[directories.get(run)] for run in runs.tolist()]
        self._directory = np.array(of_run, dtype=np.int64)[which]

    def directory(self, number: int) -> str:
        """The name of a directory."""
        return self._names[number]

    @cached_property
    def is_known(self) -> Flags:
        """Whose key had been looked up before: only these have a past."""
        key = self._lookups.key
        found: Flags = key != NONE
        found[self._of_key.first(np.arange(int(key.max(initial=NONE)) + 1))] = False
        return found

    def of_each(self, are_chosen: Flags) -> Iterator[tuple[int, KeyPast]]:
        """The lookups asked for that have a past, key by key, each with it; it is valid until the next one is taken."""
        places = np.flatnonzero(are_chosen & self.is_known)
        of_key = Grouped(self._lookups.key[places])
        for key in np.unique(self._lookups.key[places]).tolist():
            asking = places[of_key.of(key)]
            for mine in self._by_whom(asking):
                # What comes after the last of them does not matter.
                every = self._seen_by(int(mine[0]), self._of_key.of(key))
                every = every[: every.searchsorted(mine[-1]) + 1]
                past = KeyPast(self._steps(every))
                for now in every.searchsorted(mine).tolist():
                    if now:
                        past.move_to(now)
                        yield int(every[now]), past

    def _by_whom(self, places: Numbers) -> Iterator[Numbers]:
        """Some lookups in parts: those that were made, and those that each pre-flight predicts."""
        is_predicted = self._is_predicted[places]
        if not is_predicted.any():
            yield places
            return
        if not is_predicted.all():
            yield places[~is_predicted]
        of_run = self._lookups.run[places]
        for run in np.unique(of_run[is_predicted]).tolist():
            yield places[is_predicted & (of_run == run)]

    def _seen_by(self, at: int, places: Numbers) -> Numbers:
        """Of the lookups of a key those that are past to one of them: no pre-flight stores anything for another run."""
        run = self._lookups.run
        seen: Numbers = places[~self._is_predicted[places] | (run[places] == run[at])]
        return seen

    def other_run_before(self, at: int) -> bool:
        """Whether another run had looked up any key of the cache of a lookup before it."""
        lookups = self._lookups
        first, other = self._first_in_cache[int(lookups.cache.codes[at])]
        return (first if lookups.run[first] != lookups.run[at] else other) < at

    @cached_property
    def _first_in_cache(self) -> list[tuple[int, int]]:
        """For each cache: the place of the first lookup with a key, and that of the first by another run."""
        lookups = self._lookups
        found = []
        for cache in range(len(lookups.cache.distinct)):
            places = np.flatnonzero((lookups.key != NONE) & (lookups.cache.codes == cache))
            first = int(places[0]) if len(places) else len(lookups) - 1
            others = places[lookups.run[places] != lookups.run[first]]
            found.append((first, int(others[0]) if len(others) else len(lookups)))
        return found

    def _steps(self, places: Numbers) -> _Steps:
        lookups, timeline = self._lookups, self._timeline
        columns = (
            places,
            lookups.time,
            timeline.end,
            lookups.run,
            lookups.compiled_in,
            lookups.is_hit,
            lookups.is_miss,
            timeline.stores,
            self._directory,
        )
        return _Steps(
            *(column.tolist() if column is places else column[places].tolist() for column in columns)
        )


class _Found:
    """Some lookups of a key: the latest and their directories; the lookups of any one compile can be left out."""

    def __init__(self) -> None:
        self._latest = NONE, NONE
        # The latest lookup of any other compile.
        self._latest_other = NONE, NONE
        self._compiled_in: dict[int, int] = {}
        self._directories: list[int] = []

    def add(self, at: int, compiled: int, directory: int) -> None:
        """Add a lookup under its compile; -1 if no query may leave it out."""
        placed = at, compiled
        if compiled == self._latest[1]:
            self._latest = max(self._latest, placed)
        elif placed > self._latest:
            self._latest, self._latest_other = placed, self._latest
        else:
            self._latest_other = max(self._latest_other, placed)
        if directory == NONE:
            return
        before = self._compiled_in.setdefault(directory, compiled)
        if len(self._compiled_in) > len(self._directories):
            insort(self._directories, directory)
        if before != compiled:
            self._compiled_in[directory] = _SEVERAL

    def latest(self, but: int) -> int | None:
        place, compiled = self._latest
        if compiled == but:
            place, _ = self._latest_other
        return None if place == NONE else place

    def elsewhere(self, here: int, but: int) -> int | None:
        """The last directory in name order; None if none is known, or if a lookup was made in `here`."""
        if self._compiled_in.get(here, but) != but:
            return None
        return next((directory for directory in self._directories[:-3:-1] if directory != here), None)


class _GoingOn:
    """Misses of a key whose compiles are still running."""

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self._by_end: list[tuple[int, int]] = []
        self._of_run: dict[int, int] = defaultdict(int)
        # By cache directory, which a run has one of.
        self._by_place: dict[int, deque[int]] = defaultdict(deque)
        self._runs: dict[int, list[int]] = defaultdict(list)
        self._time = MISSING

    def add(self, step: int) -> None:
        heappush(self._by_end, (self._steps.end[step], step))
        run, directory = self._steps.run[step], self._steps.directory[step]
        self._by_place[directory].append(step)
        if not self._of_run[run]:
            insort(self._runs[directory], run)
        self._of_run[run] += 1

    def ended_before(self, time: int) -> list[int]:
        """Remove and return the misses whose compile has ended."""
        ended = []
        while self._by_end and self._by_end[0][0] < time:
            step = heappop(self._by_end)[1]
            ended.append(step)
            run = self._steps.run[step]
            self._of_run[run] -= 1
            if not self._of_run[run]:
                runs = self._runs[self._steps.directory[step]]
                del runs[bisect_left(runs, run)]
        self._time = time
        return ended

    def elsewhere(self, run: int, here: int) -> Racing | None:
        """The misses by other runs, but for those that are known to use another directory."""
        directories = list(self._by_place) if here == NONE else [here, NONE]
        firsts = [first for directory in directories if (first := self._first(run, directory)) is not None]
        if not firsts:
            return None
        going_on = [self._runs[directory] for directory in directories]
        named = sorted(other for runs in going_on for other in runs[: _RUNS_NAMED + 1] if other != run)[
            :_RUNS_NAMED
        ]
        more = sum(map(len, going_on)) - (self._of_run.get(run, 0) > 0) - len(named)
        return Racing(self._steps.at[min(firsts)], tuple(named), more)

    def _first(self, run: int, directory: int) -> int | None:
        """The first of the misses by other runs with one directory."""
        end, by_place = self._steps.end, self._by_place[directory]
        while by_place and end[by_place[0]] < self._time:
            by_place.popleft()
        others = (step for step in by_place if self._steps.run[step] != run and end[step] >= self._time)
        return next(others, None)
