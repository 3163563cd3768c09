"""What lay in a cache directory at a moment. Events are played into it in time order, and lookups ask it.

Moments are positions of lookups, as the timeline counts them. `report/page/replay.js` does the same in a browser.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from operator import itemgetter
from typing import Final, Literal, NamedTuple

HIT: Final = 0
MISS: Final = 1
UNKNOWN: Final = 2
"""Not an outcome of torch: a replay reports it if nothing decides."""

Place = str | int | None
"""Where something lies: for verdicts the folder of one key, None if it is not known; for what-if the number of a key in one folder."""
Found = Literal[
    "found", "not known", "guards", "gone", "elsewhere", "concurrent", "pending", "not stored", "nothing"
]
"""Whether a lookup finds something, or why not: guards did not hold; it was deleted, or lies in another folder; another run or its own was compiling it; that stored nothing, or nobody compiled it."""
_RUNS_NAMED: Final = 8


class Event(NamedTuple):
    """An entry comes or goes, or a compile that may store one begins or ends."""

    at: int  # the position of the first lookup that sees it
    place: Place
    by: int  # the lookup that did it; -1 if it was none of those recorded
    more: int  # 1 if it comes or begins, -1 if it goes or ends, 0 if a compile ended and stored nothing
    guards: str | None = None  # of an entry, empty if none; None if they, or it, are uncertain
    run: int | None = None  # for a compile: the run that compiles


class Racing(NamedTuple):
    """Other runs that were still compiling a key."""

    first: int  # the index of the first of their misses
    runs: tuple[int, ...]
    """Their numbers, in order. Only those that missed first: in a fleet that starts at once, thousands race."""
    more: int  # how many others there are


class Directory:
    """What lies in places that count as one, as the last lookup to ask saw it.

    In a replay, `after` has the outcomes so far of the lookups that store: one that hits stores nothing, and one whose outcome
    is unknown may have stored something.
    """

    def __init__(self, events: Iterable[Event], after: Mapping[int, int] | list[int] | None = None) -> None:
        # The events still to come, the next one last.
        self._coming = sorted(events, key=itemgetter(0))
        self._coming.reverse()
        self._after = after
        # How many entries there are: by guards, and by guards and place.
        self._count: dict[tuple[Place, ...], int] = defaultdict(int)
        # The compiles that are running, everywhere and by place: their misses in time order, each with its run; and how many each run has.
        self._compiles: dict[tuple[Place, ...], dict[int, int]] = defaultdict(dict)
        self._runs: dict[tuple[Place, ...], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self._has_lost = False
        self.latest = -1
        """The latest lookup that stored an entry, or showed that there was one; -1 if none did."""
        self.kept_back = -1
        """The latest lookup after whose compile nothing was stored; -1 if there is none."""

    def would_find(self, place: Place, at: int, guards: str | None = None, run: int = -1) -> Found:
        """What a lookup finds in the other places; in its own, nothing fits.

        Positions must not decrease from one call to the next. `guards` are those of what the lookup compiled itself. It is known whether
        the guards of an entry hold if it has none, or the same. In all other cases that depends on sizes, which no log has.
        """
        self.move_to(at)
        if self._has_other(place, "") or (guards and self._has_other(place, guards)):
            return "found"
        if self._has_other(place, None):
            return "not known"
        if self._count[None,]:
            return "guards"
        if self._has_lost:
            return "gone"
        if self._runs[()]:
            return "concurrent" if self.is_compiled_by_another(run) else "pending"
        return "nothing" if self.kept_back < 0 else "not stored"

    def holds(self, place: Place) -> bool:
        """Whether an entry lies in one place."""
        return self._count[None, place] > 0

    def is_compiled_by_another(self, run: int, *place: Place) -> bool:
        """Whether another run compiles, for one place or for any."""
        runs = self._runs[place]
        return len(runs) > (run in runs)

    def racing(self, run: int, here: Place) -> Racing | None:
        """The other runs that are compiling, except those known to compile for another place."""
        first, runs, count = None, list[int](), 0
        for where in [()] if here is None else [(here,), (None,)]:
            by = next((by for by, other in self._compiles[where].items() if other != run), None)
            if by is not None:
                first = by if first is None else min(by, first)
                others = self._runs[where]
                runs += [other for other in islice(others, _RUNS_NAMED + 1) if other != run][:_RUNS_NAMED]
                count += len(others) - (run in others)
        named = tuple(sorted(runs[:_RUNS_NAMED]))
        return None if first is None else Racing(first, named, count - len(named))

    def move_to(self, at: int) -> None:
        """Apply every event that a lookup at a position sees."""
        while self._coming and self._coming[-1][0] <= at:
            _, place, by, more, guards, run = self._coming.pop()
            if run is not None:
                self._compile(place, by, more, run)
                continue
            came = MISS if by < 0 or self._after is None else self._after[by]
            if came == HIT:
                continue
            for kind in (None,) if guards is None or came == UNKNOWN else (None, guards):
                self._count[kind,] += more
                self._count[kind, place] += more
            if more < 0:
                self._has_lost = True
            else:
                self.latest = max(self.latest, by)

    def _compile(self, place: Place, by: int, more: int, run: int) -> None:
        if not more:
            self.kept_back = max(self.kept_back, by)
        for where in (), (place,):
            if more > 0:
                self._compiles[where][by] = run
            elif more < 0:
                del self._compiles[where][by]
            runs = self._runs[where]
            runs[run] += more
            if not runs[run]:
                del runs[run]

    def _has_other(self, place: Place, guards: str | None) -> bool:
        return self._count[guards,] > self._count[guards, place]
