"""What is found out about each lookup that missed, while they are judged."""

from __future__ import annotations

import numpy as np

from cachescope.analysis.history.places_by_group import NONE, Numbers
from cachescope.analysis.verdicts.misses import Why


class ReasonsFound:
    """Why each lookup missed, by its place, as far as it is judged; equal reasons are one."""

    def __init__(self, lookups: int) -> None:
        self.whys: list[Why] = []
        self._number: dict[Why, int] = {}
        self._latest: tuple[Why | None, int] = None, NONE
        self.why: Numbers = np.full(lookups, NONE, dtype=np.int64)
        self.baseline: Numbers = np.full(lookups, NONE, dtype=np.int64)
        self.baseline_entry: Numbers = np.full(lookups, NONE, dtype=np.int64)

    def number(self, why: Why) -> int:
        """The number of a reason."""
        number = self._number.setdefault(why, len(self.whys))
        if number == len(self.whys):
            self.whys.append(why)
        return number

    def record(self, at: int | Numbers, why: Why, baseline: int | None = None) -> None:
        """Note why one lookup or several missed, and the place of the lookup that they are compared with."""
        # Of a fleet, many in a row missed for one reason.
        if why is not self._latest[0]:
            self._latest = why, self.number(why)
        self.why[at] = self._latest[1]
        self.baseline[at] = NONE if baseline is None else baseline
