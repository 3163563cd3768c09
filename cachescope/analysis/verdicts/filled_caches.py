"""Whether something was stored before a lookup: a graph that is new then is no cold start."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import MISSING, Flags
from cachescope.analysis.history.places_by_group import NONE

NEW_GRAPH: Final = "new graph"
"""The kind of a first lookup that was made when other graphs were stored already."""


class FilledCaches:
    """What had been stored in torch's caches before each lookup, as far as lookups show it.

    Parameters
    ----------
    history : History
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._rows = history.lookups

    def is_before(self, at: int) -> bool:
        """Whether something was: a process that was not read had stored what hits, or an earlier run had stored a result."""
        run = int(self._rows.run[at])
        return run in self._runs_that_hit or self._first_hit < at or run in self._runs_that_began_later

    @cached_property
    def _first_hits(self) -> list[int]:
        """The places of hits of keys that nothing had looked up before: a process that was not read had stored them."""
        rows = self._rows
        places = np.flatnonzero((rows.key != NONE) & ~rows.is_of_vllm)
        first = places[np.unique(rows.key[places], return_index=True)[1]]
        return sorted(first[rows.is_hit[first]].tolist())

    @cached_property
    def _first_hit(self) -> int:
        return self._first_hits[0] if self._first_hits else len(self._rows)

    @cached_property
    def _runs_that_hit(self) -> frozenset[int]:
        return frozenset(self._rows.run[self._first_hits].tolist())

    @cached_property
    def _is_hit_next(self) -> Flags:
        """Of which lookups the next one of the same key hits."""
        rows = self._rows
        order = np.argsort(rows.key, kind="stable")
        found = np.zeros(len(rows), dtype=bool)
        found[order[:-1]] = (rows.key[order[1:]] == rows.key[order[:-1]]) & rows.is_hit[order[1:]]
        found[rows.key == NONE] = False
        return found

    @cached_property
    def _runs_that_began_later(self) -> frozenset[int]:
        """The runs whose first lookup was made after another run had stored a result for certain."""
        rows, end = self._rows, self._history.end
        stored = np.flatnonzero(self._history.stored & (end != MISSING) & ~rows.is_of_vllm)
        # A trace does not say what torch could not write: the next lookup of the key does if it hits, or the text log.
        is_written = np.fromiter(map(self._history.timeline.is_stored, stored.tolist()), dtype=bool)
        stored = stored[self._is_hit_next[stored] | is_written]
        if not len(stored):
            return frozenset()
        first = stored[np.argmin(end[stored])]
        others = stored[rows.run[stored] != rows.run[first]]
        runs, places = np.unique(rows.run, return_index=True)
        began = rows.time[places]
        of_others = end[others].min() if len(others) else np.iinfo(np.int64).max
        earliest = np.where(runs == rows.run[first], of_others, end[first])
        return frozenset(runs[(began != MISSING) & (began > earliest)].tolist())
