"""Which compiles of other processes were still running when a lookup was made: it could not find what they would store."""

from __future__ import annotations

import numpy as np

from cachescope.analysis.history.entry_times import LONG_AGO, NEVER
from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import MISSING, Flags
from cachescope.analysis.history.places_by_group import NONE, Numbers


class RunningCompiles:
    """The compile that follows each miss; lookups are named by their place in time order."""

    def __init__(self, history: History) -> None:
        lookups = history.lookups
        self._run = lookups.run
        self._time: Numbers = np.where(lookups.time == MISSING, NEVER, lookups.time)
        self._end: Numbers = np.where(lookups.is_miss, history.end, LONG_AGO)
        self._last_seen: Numbers = history.timeline.last_seen

    def were_running(self, compiles: Numbers, at: Numbers) -> Flags:
        """Which of some compiles (-1 is none) another process had not finished at the lookup given for each."""
        is_other = (compiles != NONE) & (self._run[compiles] != self._run[at])
        found: Flags = is_other & (self._end[compiles] > self._time[at])
        return found

    def was_running(self, one: int, at: int) -> bool:
        """Whether another process had not finished a compile (-1 is none) at a lookup."""
        return one != NONE and bool(self._run[one] != self._run[at] and self._end[one] > self._time[at])

    def is_seen_running(self, one: int, at: int) -> bool:
        """Whether it is recorded that a compile went on after a lookup; an end that is not recorded is estimated elsewhere."""
        return bool(self._last_seen[one] > self._time[at])

    def finished(self, compiles: Numbers, at: int) -> Numbers:
        """Those of some compiles that had been finished at a lookup, or are of its own process."""
        found: Numbers = compiles[~self.were_running(compiles, np.array(at))]
        return found
