"""Which sets of hash details are equal, by sums, as more and more fields do not count."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.what_if.key_values import Lanes

Numbers = npt.NDArray[np.int64]


class EqualSets:
    """Classes of equal sets.

    Fields that do not count are taken to have their usual value. So the sets that have it already stay as they are,
    and only the others have to be looked at.

    Attributes
    ----------
    leader : array of int
        For each set, one set that represents all sets equal to it.
    """

    def __init__(self, sums: Lanes, leader: Numbers) -> None:
        self._sums = sums
        self.leader = leader

    def refined(self, moved: Sequence[tuple[npt.NDArray[np.integer], Lanes]]) -> EqualSets:
        """The classes if some more fields have their usual value."""
        sums = self._sums.copy()
        is_odd = np.zeros(len(self.leader), dtype=bool)
        for sets, differences in moved:
            is_odd[sets] = True
            for lane, difference in zip(sums, differences, strict=True):
                lane[sets] -= difference
        odd = np.flatnonzero(is_odd & self._is_leader)
        numbers, first = numbered(sums[:, odd])
        same, is_there = self._find(sums[:, odd[first]])
        leader = np.arange(len(is_odd))
        leader[odd] = np.where(is_there, same, odd[first])[numbers]
        return EqualSets(sums, leader[self.leader])

    def _find(self, sums: Lanes) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """A leader that has each of some sums, and whether there is one."""
        # Looking for numbers in order is quicker.
        order = np.argsort(sums[0])
        at = np.empty(len(order), dtype=np.int64)
        at[order] = np.searchsorted(self._ordered, sums[0, order])
        found = self._by_sum[np.minimum(at, len(self._by_sum) - 1)]
        return found, (self._sums[:, found] == sums).all(axis=0)

    @cached_property
    def _is_leader(self) -> npt.NDArray[np.bool_]:
        is_leader: npt.NDArray[np.bool_] = self.leader == np.arange(len(self.leader))
        return is_leader

    @cached_property
    def _by_sum(self) -> Numbers:
        """The leaders by their first sum."""
        leaders = np.flatnonzero(self._is_leader)
        by_sum: Numbers = leaders[np.argsort(self._sums[0, leaders])]
        return by_sum

    @cached_property
    def _ordered(self) -> npt.NDArray[np.uint64]:
        ordered: npt.NDArray[np.uint64] = self._sums[0, self._by_sum]
        return ordered


def numbered(lanes: Lanes) -> tuple[Numbers, Numbers]:
    """Number the columns from 0, equal ones equally; and the first place of each number."""
    codes, distinct = pd.factorize(lanes[0])
    first = _first(codes, len(distinct))
    if (lanes[1, first[codes]] != lanes[1]).any():
        codes, pairs = pd.factorize(pd.MultiIndex.from_arrays([lanes[0], lanes[1]]))
        first = _first(codes, len(pairs))
    return codes, first


def _first(codes: Numbers, count: int) -> Numbers:
    first = np.zeros(count, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first
