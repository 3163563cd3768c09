"""Whether a run's cache held something before a lookup: a graph that is new then is no cold start."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import MISSING
from cachescope.analysis.history.places_by_group import NONE


class FilledCaches:
    """Which runs found something in torch's caches that another process had stored.

    Only a run's own hits show it. What others stored may lie on another machine, also under the same path.

    Parameters
    ----------
    history : History
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._rows = history.lookups

    def is_before(self, at: int) -> bool:
        """Whether the run of a lookup is known to have had something in its cache by then."""
        first = self._first_found.get(int(self._rows.run[at]))
        return first is not None and first < at

    @cached_property
    def _first_found(self) -> dict[int, int]:
        """For each run that hit what another had stored: from which place on its cache is known to have held it."""
        rows, end = self._rows, self._history.end
        runs, begins = np.unique(rows.run, return_index=True)
        began = dict(zip(runs.tolist(), begins.tolist(), strict=True))
        before: dict[int, int] = {}
        found: dict[int, int] = {}
        for at in np.flatnonzero((rows.key != NONE) & ~rows.is_of_vllm).tolist():
            run, key = int(rows.run[at]), int(rows.key[at])
            earlier = before.get(key)
            before[key] = at
            if not rows.is_hit[at]:
                continue
            if earlier is None:
                found[run] = min(found.get(run, at), at)
            elif rows.run[earlier] != run and MISSING != end[earlier] < rows.time[began[run]]:
                # It was there when the run began.
                found[run] = -1
        return found
