"""What had happened to each key before a lookup of it; lookups are named by their place in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.grouped import NONE, Grouped, Numbers, numbered, paired
from cachescope.analysis.history import LookupRow
from cachescope.analysis.timeline import Timeline

Flags = npt.NDArray[np.bool_]
_LONG_AGO: Final = np.iinfo(np.int64).min


class PastOfKeys:
    """The earlier lookups of a key, and which of them stored something or were still compiling."""

    def __init__(self, lookups: Sequence[LookupRow], timeline: Timeline) -> None:
        self._rows = lookups
        keys = numbered([row.cache_key for row in lookups])
        self._of_key = Grouped(paired(keys, numbered([row.cache for row in lookups])))
        self.run: Numbers = np.array([row.run for row in lookups], dtype=np.int64)
        self.is_hit: Flags = np.array([row.is_hit for row in lookups], dtype=bool)
        self._compile = numbered([row.compile_id for row in lookups])
        ends = (None if row.is_hit else timeline.end_of(row) for row in lookups)
        self._end: Numbers = np.array([_LONG_AGO if end is None else end for end in ends], dtype=np.int64)
        self._was_refused: Flags = np.array(
            [timeline.why_not_stored(row) is not None for row in lookups], dtype=bool
        )
        may_store = np.array([row.outcome in ("full_miss", "guard_miss") for row in lookups], dtype=bool)
        self._was_stored: Flags = may_store & ~self._was_refused
        guards = [row.guards_expr if row.is_hit or row.outcome == "guard_miss" else None for row in lookups]
        self._guards, self._guard_texts = (
            numbered(guards),
            list(dict.fromkeys(g for g in guards if g is not None)),
        )
        self._other_run = self._first_of_other_runs()

    def before(self, at: int) -> Numbers:
        """Earlier lookups of the same key."""
        return self._of_key.before(int(self._of_key.group[at]), at)

    def compiling_elsewhere(self, at: int, earlier: Numbers) -> Numbers:
        """Those misses of other runs among earlier lookups whose compile was still going on."""
        row = self._rows[at]
        if row.time is None:
            return earlier[:0]
        goes_on = ~self.is_hit[earlier] & (row.time <= self._end[earlier])
        racing: Numbers = earlier[goes_on & (self.run[earlier] != row.run)]
        return racing

    def stored(self, at: int, earlier: Numbers) -> Numbers:
        """Those earlier lookups because of which an entry of the key was there."""
        row = self._rows[at]
        # Two lookups of one key in one compile: the first went through the AOTAutograd entry.
        one_compile = (self.run[earlier] == row.run) & (self._compile[earlier] == self._compile[at])
        is_over = True if row.time is None else self._end[earlier] < row.time
        stored: Numbers = earlier[self.is_hit[earlier] | (self._was_stored[earlier] & ~one_compile & is_over)]
        return stored

    def none_was_stored(self, earlier: Numbers) -> bool:
        """Whether torch refused to store the result of each of some lookups."""
        return bool((self._was_refused[earlier] & ~self.is_hit[earlier]).all())

    def guards(self, earlier: Numbers) -> list[str]:
        """The guards that some lookups show, each once."""
        codes = pd.unique(self._guards[earlier])
        return [self._guard_texts[code] for code in codes.tolist() if code != NONE]

    def other_run_before(self, at: int) -> bool:
        """Whether another run had looked up any key of this cache before."""
        row = self._rows[at]
        first, run, of_other = self._other_run.get(row.cache, (at, row.run, at))
        return (first if run != row.run else of_other) < at

    def _first_of_other_runs(self) -> dict[str, tuple[int, int, int]]:
        """By cache: the place and run of the first lookup with a key, and the place of the first of another run."""
        found: dict[str, tuple[int, int, int]] = {}
        for at, row in enumerate(self._rows):
            if row.cache_key is None:
                continue
            first, run, other = found.setdefault(row.cache, (at, row.run, len(self._rows)))
            if other > at and row.run != run:
                found[row.cache] = first, run, at
        return found
