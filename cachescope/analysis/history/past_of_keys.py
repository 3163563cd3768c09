"""What had happened to each key before a lookup of it. Lookups are named by their place in time order.

Each key is walked once, in time order: a lookup is processed when it was made and when its compile ended, and
not again for every later one. So a thousand ranks that miss one key take a thousand steps.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from cachescope.analysis.history.places_by_group import NONE, numbered, paired
from cachescope.analysis.history.rows import LookupRow
from cachescope.analysis.history.timeline import NotStored, Timeline

_NOBODY: Final = -2
_SEVERAL: Final = -3
_LONG_AGO: Final = -(2**63)
_RUNS_NAMED: Final = 8


@dataclass(frozen=True, slots=True)
class Racing:
    """Other runs that were still compiling a key."""

    first: int
    """The place of the first of their misses."""
    runs: list[int]
    """Their numbers, the smallest first; not all of them, since a fleet that starts at once races by the thousand."""
    more: int
    """How many others there are."""


@dataclass(slots=True)
class _Step:
    """One lookup of a key, with what later ones need. `compiled` is the number of its compile."""

    row: LookupRow
    at: int
    compiled: int
    end: int
    not_stored: NotStored | None
    directory: str | None

    @property
    def was_stored(self) -> bool:
        """Whether its compile stored an entry, as far as is known."""
        return self.row.is_miss and self.not_stored is None


class KeyPast:
    """The past of one key, as of the last lookup passed to `move_to`."""

    def __init__(self) -> None:
        self.guards: dict[str, None] = {}
        """The guards that earlier lookups show, each once."""
        self.latest_hit: int | None = None
        """The place of the latest lookup that found an entry."""
        self._refused: _Step | None = None
        self._of_this_compile: list[_Step] = []
        self._earlier = _Found()
        self._ended = _Found()
        self._ended_or_not = _Found()
        self._going_on = _GoingOn()
        self._walked = 0
        self._now: _Step | None = None

    def move_to(self, now: _Step, steps: Sequence[_Step]) -> None:
        """Advance to a lookup, past all earlier lookups of the key."""
        held, self._of_this_compile = self._of_this_compile, []
        for step in held:
            self._note_storing(step, now)
        while steps[self._walked].at < now.at:
            self._pass(steps[self._walked], now)
            self._walked += 1
        self._now = now
        if now.row.time is not None:
            for step in self._going_on.ended_before(now.row.time):
                if step.was_stored:
                    self._ended.add(step, step.compiled)

    @property
    def latest(self) -> int | None:
        """The place of the latest earlier lookup of the key."""
        return self._earlier.latest(but=_NOBODY)

    @property
    def latest_stored(self) -> int | None:
        """The place of the latest lookup that shows that an entry of the key was stored."""
        return self._stored.latest(self._compiled)

    @property
    def elsewhere(self) -> str | None:
        """A directory in which the key had been stored, else looked up; None if unknown or this lookup's is one of them."""
        here = None if self._now is None else self._now.directory
        if here is None:
            return None
        if self.latest_stored is not None:
            return self._stored.elsewhere(here, self._compiled)
        return self._earlier.elsewhere(here, but=_NOBODY)

    def racing(self) -> Racing | None:
        """The other runs that had missed the key and were still compiling it."""
        if self._now is None or self._now.row.time is None:
            return None
        return self._going_on.elsewhere(self._now.row.run)

    @property
    def not_stored(self) -> NotStored | None:
        """Why the latest miss stored nothing, if that is known and nobody had stored the key since."""
        return None if self.refused is None or self._refused is None else self._refused.not_stored

    @property
    def refused(self) -> int | None:
        """The place of the miss that `not_stored` explains, if its compile had ended."""
        time = None if self._now is None else self._now.row.time
        if self._refused is None or (time is not None and self._refused.end >= time):
            return None
        return self._refused.at

    def _note_storing(self, step: _Step, now: _Step) -> None:
        # Two lookups of one key in one compile: the result of that compile is not stored yet.
        if step.compiled == now.compiled and not step.row.is_hit:
            self._of_this_compile.append(step)
        elif step.row.is_hit:
            self.latest_hit, self._refused = step.at, None
        elif step.row.is_miss:
            self._refused = step if step.not_stored is not None else None

    def _pass(self, step: _Step, now: _Step) -> None:
        row = step.row
        if row.guards_expr is not None and (row.is_hit or row.outcome == "guard_miss"):
            self.guards[row.guards_expr] = None
        self._note_storing(step, now)
        self._earlier.add(step, step.compiled)
        if row.is_hit:
            self._ended.add(step, NONE)
            self._ended_or_not.add(step, NONE)
            return
        if not row.is_miss:
            return
        self._going_on.add(step)
        if step.was_stored:
            self._ended_or_not.add(step, step.compiled)

    @property
    def _stored(self) -> _Found:
        is_timed = self._now is not None and self._now.row.time is not None
        return self._ended if is_timed else self._ended_or_not

    @property
    def _compiled(self) -> int:
        # Two lookups of one key in one compile: the first went through the AOTAutograd entry, and stored nothing yet.
        return _NOBODY if self._now is None else self._now.compiled


class PastOfKeys:
    """The pasts of all keys. Ask in time order.

    Parameters
    ----------
    lookups : sequence of LookupRow
        In time order.
    timeline : Timeline
    directories : mapping
        The cache directory of each run, if known.
    """

    def __init__(
        self, lookups: Sequence[LookupRow], timeline: Timeline, directories: Mapping[int, str | None]
    ) -> None:
        self._rows = lookups
        self._steps: dict[tuple[str, str], list[_Step]] = defaultdict(list)
        self._pasts: dict[tuple[str, str], KeyPast] = defaultdict(KeyPast)
        run = numbered([row.run for row in lookups])
        compiles = paired(run, numbered([row.compile_id for row in lookups])).tolist()
        self._none = KeyPast()
        self._step_of: dict[int, _Step] = {}
        of_key: dict[tuple[str, str], list[int]] = defaultdict(list)
        for at, row in enumerate(lookups):
            if row.cache_key is not None:
                of_key[row.cache, row.cache_key].append(at)
        self._firsts = {places[0] for places in of_key.values()}
        for key, places in of_key.items():
            # If a fleet shares nothing, most keys are looked up once.
            for at in places if len(places) > 1 else ():
                row = lookups[at]
                step = _step(at, row, compiles[at], timeline, directories.get(row.run))
                self._step_of[at] = step
                self._steps[key].append(step)
        self._other_run = self._first_of_other_runs()

    def of(self, at: int) -> KeyPast:
        """The past of the key of a lookup; empty for the first lookup of a key and for a lookup without a key."""
        row = self._rows[at]
        if row.cache_key is None or at in self._firsts:
            return self._none
        key = row.cache, row.cache_key
        past = self._pasts[key]
        past.move_to(self._step_of[at], self._steps[key])
        return past

    def other_run_before(self, at: int) -> bool:
        """Whether another run had looked up any key of this cache before."""
        row = self._rows[at]
        first, run, of_other = self._other_run.get(row.cache, (at, row.run, at))
        return (first if run != row.run else of_other) < at

    def _first_of_other_runs(self) -> dict[str, tuple[int, int, int]]:
        """By cache: the place and run of the first lookup with a key, and the place of the first by another run."""
        found: dict[str, tuple[int, int, int]] = {}
        for at, row in enumerate(self._rows):
            if row.cache_key is None:
                continue
            first, run, other = found.setdefault(row.cache, (at, row.run, len(self._rows)))
            if other > at and row.run != run:
                found[row.cache] = first, run, at
        return found


def _step(at: int, row: LookupRow, compiled: int, timeline: Timeline, directory: str | None) -> _Step:
    end = None if row.is_hit else timeline.end_of(row)
    not_stored = timeline.why_not_stored(row) if row.is_miss else None
    return _Step(row, at, compiled, _LONG_AGO if end is None else end, not_stored, directory)


class _Found:
    """Some lookups of a key: the latest and their directories; the lookups of any one compile can be left out."""

    def __init__(self) -> None:
        self._latest = NONE, NONE
        # The latest lookup of any other compile.
        self._latest_other = NONE, NONE
        self._compiled_in: dict[str, int] = {}
        self._directories: list[str] = []

    def add(self, step: _Step, compiled: int) -> None:
        """Add a lookup under its compile; -1 if no query may leave it out."""
        placed = step.at, compiled
        if compiled == self._latest[1]:
            self._latest = max(self._latest, placed)
        elif placed > self._latest:
            self._latest, self._latest_other = placed, self._latest
        else:
            self._latest_other = max(self._latest_other, placed)
        if step.directory is None:
            return
        if step.directory not in self._compiled_in:
            insort(self._directories, step.directory)
        if self._compiled_in.setdefault(step.directory, compiled) != compiled:
            self._compiled_in[step.directory] = _SEVERAL

    def latest(self, but: int) -> int | None:
        place, compiled = self._latest
        if compiled == but:
            place, _ = self._latest_other
        return None if place == NONE else place

    def elsewhere(self, here: str, but: int) -> str | None:
        """The last directory in name order; None if none is known or a lookup was made in `here`."""
        if self._compiled_in.get(here, but) != but:
            return None
        return next((directory for directory in self._directories[:-3:-1] if directory != here), None)


class _GoingOn:
    """Misses of a key whose compiles are still running."""

    def __init__(self) -> None:
        self._by_end: list[tuple[int, int, _Step]] = []
        self._by_place: deque[_Step] = deque()
        self._of_run: dict[int, int] = defaultdict(int)
        self._runs: list[int] = []
        self._time = _LONG_AGO

    def add(self, step: _Step) -> None:
        heappush(self._by_end, (step.end, step.at, step))
        self._by_place.append(step)
        run = step.row.run
        if not self._of_run[run]:
            insort(self._runs, run)
        self._of_run[run] += 1

    def ended_before(self, time: int) -> list[_Step]:
        """Remove and return the misses whose compile has ended."""
        ended = []
        while self._by_end and self._by_end[0][0] < time:
            ended.append(heappop(self._by_end)[2])
            run = ended[-1].row.run
            self._of_run[run] -= 1
            if not self._of_run[run]:
                del self._runs[bisect_left(self._runs, run)]
        self._time = time
        return ended

    def elsewhere(self, run: int) -> Racing | None:
        """The misses by other runs."""
        while self._by_place and self._by_place[0].end < self._time:
            self._by_place.popleft()
        others = (step.at for step in self._by_place if step.row.run != run and step.end >= self._time)
        first = next(others, None)
        if first is None:
            return None
        named = [other for other in self._runs[: _RUNS_NAMED + 1] if other != run][:_RUNS_NAMED]
        return Racing(first, named, len(self._runs) - (self._of_run[run] > 0) - len(named))
