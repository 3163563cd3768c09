"""How many fields separate one set of hash details from many others, without comparing them one by one.

The sets of one graph differ in few of their 640 fields. Each is kept as what differs from the first of them, and
a distance is counted over those few fields alone, for all other sets at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from cachescope.details import HashDetails

Numbers = npt.NDArray[np.int64]
_ABSENT = -1
# Sets that are compared together.
_AT_ONCE = 256


class FieldDifferences:
    """Distances between the sets of one graph, by their places in a list of distinct sets.

    Parameters
    ----------
    details : HashDetails
    sets : sequence of int
        Distinct codes of sets.
    is_apart : callable
        Whether a field, by name, is counted apart as well.
    """

    def __init__(self, details: HashDetails, sets: Sequence[int], is_apart: Callable[[str], bool]) -> None:
        self._details = details
        values = self._values(sets[:_AT_ONCE])
        self._first = values[0]
        parts = [self._from_first(values, 0)]
        for start in range(_AT_ONCE, len(sets), _AT_ONCE):
            parts.append(self._from_first(self._values(sets[start : start + _AT_ONCE]), start))
        rows, self._fields, self._held = (np.concatenate(part) for part in zip(*parts, strict=True))
        self._size: Numbers = np.bincount(rows, minlength=len(sets))
        self._starts: Numbers = np.concatenate([[0], np.cumsum(self._size)])
        self._rows_of = self._by_field(rows)
        self._is_apart = is_apart
        self._apart: dict[int, bool] = {}
        apart = np.array([self._counts_apart(field) for field in self._fields.tolist()], dtype=bool)
        self._size_apart: Numbers = np.bincount(rows[apart], minlength=len(sets))

    def counts(self, place: int) -> tuple[Numbers, Numbers]:
        """How many fields separate a set from each; and how many of them are not counted apart."""
        fields, held = self._of(place)
        count = self._size + len(fields)
        apart = self._size_apart + sum(self._counts_apart(field) for field in fields)
        for field, value in zip(fields, held, strict=True):
            rows, values = self._rows_of[field]
            shared = 1 + (values == value)
            count[rows] -= shared
            if self._counts_apart(field):
                apart[rows] -= shared
        return count, count - apart

    def counts_within(
        self, place: int, others: Numbers, fields: Iterable[str]
    ) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """How many fields separate a set from some others, and whether all of them are among certain fields."""
        mine, held = self._of(place)
        own = np.full(len(self._first), _ABSENT - 1, dtype=np.int64)
        own[mine] = held
        wanted = np.zeros(len(self._first), dtype=bool)
        wanted[[code for field in fields if (code := self._details.field_code(field)) is not None]] = True
        # Everything in which one of the others differs from the first, side by side.
        sizes = self._size[others]
        ends = np.cumsum(sizes)
        at = np.arange(ends[-1]) + np.repeat(self._starts[others] - ends + sizes, sizes)
        theirs = self._fields[at]
        weight = 1 - (own[theirs] == self._held[at]) - (own[theirs] > _ABSENT - 1)
        other = np.repeat(np.arange(len(others)), sizes)
        count = np.bincount(other, weights=weight, minlength=len(others)) + len(mine)
        inside = np.bincount(other, weights=weight * wanted[theirs], minlength=len(others))
        return count.astype(np.int64), count == inside + wanted[mine].sum()

    def _of(self, place: int) -> tuple[list[int], list[int]]:
        here = slice(self._starts[place], self._starts[place + 1])
        return self._fields[here].tolist(), self._held[here].tolist()

    def _by_field(self, rows: Numbers) -> dict[int, tuple[Numbers, Numbers]]:
        order = np.argsort(self._fields, kind="stable")
        fields, first = np.unique(self._fields[order], return_index=True)
        parts = np.split(order, first[1:])
        return {int(f): (rows[part], self._held[part]) for f, part in zip(fields, parts, strict=False)}

    def _from_first(self, values: Numbers, start: int) -> tuple[Numbers, Numbers, Numbers]:
        """Which sets from one on differ from the first in which field, and what they hold there."""
        rows, fields = np.nonzero(values != self._first)
        return rows + start, fields, values[rows, fields]

    def _values(self, sets: Sequence[int]) -> Numbers:
        """The hash codes of sets by field. Of a field that is there twice the last counts, as in a dict."""
        codes = [self._details.sets[code] for code in sets]
        rows = np.repeat(np.arange(len(codes)), [len(one) for one in codes])
        every = np.concatenate(codes)
        values = np.full((len(codes), len(self._details.fields)), _ABSENT, dtype=np.int64)
        values[rows, self._details.field_codes[every]] = self._details.hash_codes[every]
        return values

    def _counts_apart(self, field: int) -> bool:
        if field not in self._apart:
            name = self._details.fields[field]
            self._apart[field] = self._is_apart(name)
        return self._apart[field]
