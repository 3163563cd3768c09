"""The places of each number, for many numbers at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


class Members:
    """Some places, grouped by the number there."""

    def __init__(self, places: Numbers, numbers: Numbers, count: int) -> None:
        self._places: Numbers = places[np.argsort(numbers, kind="stable")]
        self._sizes = np.bincount(numbers, minlength=count)
        self._starts = np.cumsum(self._sizes) - self._sizes

    def of(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """The places of some numbers, those of one number together and as given; and for each, which of `numbers` it has."""
        sizes = self._sizes[numbers]
        which = np.repeat(np.arange(len(numbers)), sizes)
        shift = self._starts[numbers] - (np.cumsum(sizes) - sizes)
        places: Numbers = self._places[shift[which] + np.arange(len(which))]
        return places, which
