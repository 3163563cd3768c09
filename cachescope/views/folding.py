"""Rows folded below others: of rows in an order, those that are seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.intp]
NONE = -1


class Folding:
    """What is below what, and what is open.

    Parameters
    ----------
    above : array of int
        For each row the place of the one that it belongs to; -1 for none. Two levels, not more.
    """

    def __init__(self, above: Positions) -> None:
        self.above = above
        self._open: set[int] = set()
        self._top: Positions = np.arange(0)
        self._below: Positions = np.arange(0)
        self._of_below: Positions = np.arange(0)
        self.seen: Positions = np.arange(0)
        """The places of the rows that are seen, in their order."""

    def is_below(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Which rows are below one that is among those of the mask, and among them themselves."""
        found: npt.NDArray[np.bool_] = mask & (self.above != NONE) & mask[self.above]
        return found

    def arrange(self, top: Positions, below: Positions) -> None:
        """Take rows in their order: those on top, and those below one of them."""
        by_above = np.argsort(self.above[below], kind="stable")
        self._top, self._below = top, below[by_above]
        self._of_below = self.above[self._below]
        self._unfold()

    def toggle(self, place: int) -> None:
        """Open or close what is below a row."""
        self._open ^= {place}
        self._unfold()

    def count(self, place: int) -> int:
        """How many rows are below one."""
        first, end = self._bounds(place)
        return end - first

    def is_open(self, place: int) -> bool:
        """Whether what is below a row is seen."""
        return place in self._open

    def _bounds(self, place: int) -> tuple[int, int]:
        first, end = np.searchsorted(self._of_below, [place, place + 1])
        return int(first), int(end)

    def _unfold(self) -> None:
        at = np.flatnonzero(np.isin(self._top, np.array(sorted(self._open), dtype=np.intp)))
        groups = [self._below[slice(*self._bounds(place))] for place in self._top[at].tolist()]
        where = np.repeat(at + 1, [len(group) for group in groups])
        self.seen = np.insert(self._top, where, np.concatenate([self._top[:0], *groups]))
