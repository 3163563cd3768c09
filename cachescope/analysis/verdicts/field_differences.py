"""How many fields separate one set of hash details from many others, without comparing them one by one.

The sets of one graph differ in few of their 640 fields, and each differs from the first set in fewer still. A distance
is counted over those fields alone, for all other sets at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from cachescope.analysis.detail_arrays import Codes, differing
from cachescope.analysis.history.places_by_group import paired
from cachescope.details import HashDetails

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
# Hash codes that are compared together.
_AT_ONCE: Final = 1 << 20
_FAR: Final = 1 << 15


class FieldDifferences:
    """Distances between the sets of one graph, by their places in a list of distinct sets.

    Parameters
    ----------
    details : HashDetails
    sets : sequence of int
        Distinct codes of sets.
    is_apart : callable
        Whether a field, by name, is also counted separately.
    """

    def __init__(self, details: HashDetails, sets: Sequence[int], is_apart: Callable[[str], bool]) -> None:
        codes, self._hashes = differing(details, sets)
        names = [details.fields[code] for code in codes.tolist()]
        self._is_apart = np.array(list(map(is_apart, names)), dtype=bool)
        differs = self._hashes != self._hashes[0]
        self._size: Numbers = differs.sum(axis=1)
        self._size_apart: Numbers = differs[:, self._is_apart].sum(axis=1)
        self._rows_of = [
            (rows := np.flatnonzero(column), held[rows])
            for column, held in zip(differs.T, self._hashes.T, strict=True)
        ]

    def counts(self, place: int) -> tuple[Numbers, Numbers]:
        """How many fields separate a set from each other set, and how many of these are not counted separately."""
        mine = self._hashes[place]
        fields = np.flatnonzero(mine != self._hashes[0])
        count = self._size + len(fields)
        apart = self._size_apart + np.count_nonzero(self._is_apart[fields])
        for field in fields.tolist():
            rows, values = self._rows_of[field]
            shared = 1 + (values == mine[field])
            count[rows] -= shared
            if self._is_apart[field]:
                apart[rows] -= shared
        return count, count - apart

    def nearer(
        self,
        row: Numbers,
        at: Numbers,
        baselines: Numbers,
        may_be: Flags,
        may_be_apart: Flags,
        must_be_within: Flags,
    ) -> tuple[Numbers, Numbers]:
        """For each set asked for, one of those right before it in a row that is nearer to it than its baseline.

        Parameters
        ----------
        row : array of int
            Places of sets in the order of lookups; a set may occur several times.
        at : array of int
            Positions in the row to answer for.
        baselines : array of int
            The place of the baseline set for each of them.
        may_be : array of bool
            For each of them, one flag for each set right before it, the nearest last: whether that one may be chosen.
        may_be_apart : array of bool
            Whether it may still be chosen if all differing fields are counted separately.
        must_be_within : array of bool
            Whether it may only be chosen if all its changes are changes of the baseline.

        Returns
        -------
        nearer : array of int
            The position in the row of a set with fewer changed fields than the baseline, -1 if none: the first with the
            fewest among those whose changes are all changes of the baseline, or if there are none, the last with the fewest.
        apart : array of int
            How many fields separate each from its baseline.
        """
        count = may_be.shape[1]
        nearer, apart = np.full(len(at), -1), np.zeros(len(at), dtype=np.int64)
        hashes = self._by_field
        step = max(_AT_ONCE // (count * max(len(hashes), 1)), 1)
        for start in range(0, len(at), step):
            here = slice(start, start + step)
            before = at[here, None] + np.arange(-count, 0)
            own = hashes[:, row[at[here]]]
            differs = own[:, :, None] != hashes[:, row[np.maximum(before, 0)]]
            from_baseline = own != hashes[:, baselines[here]]
            apart[here] = _how_many(from_baseline)
            far = _how_many(differs)
            fewer = may_be[here] & (before >= 0) & (far > 0) & (far < apart[here, None])
            if not may_be_apart[here].all():
                fewer &= may_be_apart[here] | differs[~self._is_apart].any(axis=0)
            is_within = fewer & ~(differs & ~from_baseline[:, :, None]).any(axis=0)
            fewer &= is_within | ~must_be_within[here]
            first = np.argmin(np.where(is_within, far, _FAR), axis=1)
            last = count - 1 - np.argmin(np.where(fewer, far, _FAR)[:, ::-1], axis=1)
            chosen = np.where(is_within.any(axis=1), first, last)
            found = np.take_along_axis(before, chosen[:, None], axis=1)[:, 0]
            nearer[here] = np.where(fewer.any(axis=1), found, -1)
        return nearer, apart

    def without_each(self) -> Iterator[Numbers]:
        """For each field that differs: a number for each set, equal for sets that are equal in all other fields."""
        columns = [column.astype(np.int64) for column in self._by_field]
        every = np.zeros(len(self._hashes), dtype=np.int64)
        after = [every]
        for column in columns[:0:-1]:
            after.append(paired(after[-1], column))
        before = every
        for column in columns:
            yield paired(before, after.pop())
            before = paired(before, column)

    @cached_property
    def _by_field(self) -> Codes:
        return np.ascontiguousarray(self._hashes.T)


def _how_many(differs: Flags) -> Numbers:
    """Count the true values along the first axis."""
    # The smallest integers are the fastest to add.
    sums = differs.view(np.uint8).sum(axis=0, dtype=np.uint8 if len(differs) < 256 else np.int32)
    found: Numbers = sums.astype(np.int64)
    return found
