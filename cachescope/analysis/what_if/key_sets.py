"""The distinct sets of hash details of the keys: what each is as a sum, and where it differs from the others.

A set is stored as the few values that the first set of its cache does not have. What all of them share is one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from cachescope.analysis.detail_arrays import Codes, differing
from cachescope.analysis.what_if.equal_sets import EqualSets, Numbers, numbered
from cachescope.analysis.what_if.key_values import Lanes, Values, number_of
from cachescope.details import HashDetails

Home = tuple[str, str | None]
"""A cache and a direction: keys of different homes never become equal."""

# So many sets are compared at once.
_CHUNK: Final = 8192


class _Odd(NamedTuple):
    """The sets that have another value in one field than the first set of their cache, and that value; 0 is absent."""

    sets: Codes
    values: Codes


class Joined(NamedTuple):
    """Sets that become equal to others, and for each a number that those that become equal share."""

    sets: Numbers
    classes: Numbers


class DetailSets:
    """Sets of hash details under any schema.

    Attributes
    ----------
    total : array of uint64
        For each set, the sum of the numbers of its values.
    is_symbolic : array of bool
        For each set, whether one of its inputs has a symbolic size.
    present, varying : list of int
        The codes of the fields that some set has, and of those in which sets of one cache differ.
    equal : array of int
        For each set, the first set whose sum is the same: their texts differ, their hashes do not.
    """

    def __init__(
        self, values: Values, details: HashDetails, codes: Numbers, homes: Sequence[Home], home: Numbers
    ) -> None:
        self._values = values
        self._details = details
        self._codes = codes
        caches = sorted({cache for cache, _ in homes})
        self._cache = np.array([caches.index(cache) for cache, _ in homes], dtype=np.int64)[home]
        self._usual: Codes = np.zeros((len(caches), len(details.fields)), dtype=np.int32)
        self.total: Lanes = np.array(
            [number_of(*(word or "" for word in one)) for one in homes], dtype=np.uint64
        )
        self.total = self.total.reshape(-1, 2).T[:, home]
        self._symbols = np.zeros(len(codes), dtype=np.int64)
        sets, fields, odd = self._differences()
        self.is_symbolic = self._symbols > 0
        self.present: list[int] = np.union1d(np.nonzero(self._usual)[1], fields[odd > 0]).tolist()
        order = np.argsort(fields, kind="stable")
        sets, odd = sets[order], odd[order]
        varying, starts = np.unique(fields[order], return_index=True)
        self.varying: list[int] = varying.tolist()
        parts = zip(np.split(sets, starts[1:]), np.split(odd, starts[1:]), strict=True)
        self._odd = {field: _Odd(*part) for field, part in zip(self.varying, parts, strict=False)}
        numbers, first = numbered(self.total)
        self.equal: Numbers = first[numbers]
        self._distinct = first
        self._classes = EqualSets(self.total, self.equal)
        self._without_one: dict[int, EqualSets] = {}

    def _differences(self) -> tuple[Codes, Codes, Codes]:
        """Each value that the first set of a cache does not have: the set, the field and the value. Sums on the way."""
        found: list[tuple[Codes, Codes, Codes]] = [(_NONE, _NONE, _NONE)]
        numbers, is_symbolic = self._values.numbers, self._values.is_symbolic.astype(np.int64)
        for cache in np.unique(self._cache).tolist():
            mine = np.flatnonzero(self._cache == cache)
            first = int(self._codes[mine[0]])
            usual = self._usual[cache] = self._values.by_field(first)
            self.total[:, mine] += numbers[:, usual].sum(axis=1, dtype=np.uint64)[:, None]
            self._symbols[mine] = is_symbolic[usual].sum()
            for start in range(0, len(mine), _CHUNK):
                some = mine[start : start + _CHUNK]
                which, fields, values = self._differences_from(first, self._codes[some])
                found.append((some[which].astype(np.int32), fields, values))
                ends = np.searchsorted(which, np.arange(len(some) + 1))
                for total, number in (*zip(self.total, numbers, strict=True), (self._symbols, is_symbolic)):
                    # Numbers of 64 bits wrap around: differences of running sums are exact.
                    running = np.cumsum(number[values] - number[usual[fields]])
                    total[some] += np.diff(np.append(np.zeros(1, running.dtype), running)[ends])
        sets, fields, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return sets, fields, values

    def _differences_from(self, first: int, codes: Numbers) -> tuple[Numbers, Codes, Codes]:
        fields, hashes = differing(self._details, [first, *codes.tolist()])
        which, column = np.nonzero(hashes[1:] != hashes[0])
        return which, fields[column], self._values.of_hashes(fields[column], hashes[1:][which, column])

    def column(self, field: int) -> Codes:
        """The value of each set in a field; 0 is absent."""
        column: Codes = self._usual[self._cache, field]
        if field in self._odd:
            column[self._odd[field].sets] = self._odd[field].values
        return column

    def without(self, changes: Mapping[int, Lanes]) -> Lanes:
        """The sum of each set, less a number for its value in each of some fields."""
        usual = np.zeros((2, len(self._usual)), dtype=np.uint64)
        for field, numbers in changes.items():
            usual += numbers[:, self._usual[:, field]]
        lanes: Lanes = self.total - usual[:, self._cache]
        for field in changes.keys() & self._odd.keys():
            lanes[:, self._odd[field].sets] -= self._more_than_usual(field, changes[field])
        return lanes

    def joined(self, changes: Mapping[int, Lanes]) -> Joined:
        """The sets that become equal to others without such numbers."""
        fields = sorted(changes.keys() & self._odd.keys(), key=lambda field: -len(self._odd[field].sets))
        classes = self._classes
        if len(fields) > 1 and changes[fields[0]] is self._values.numbers:
            # Most of the work, and often the same: one field that nearly every set has another value of.
            if fields[0] not in self._without_one:
                self._without_one = {fields[0]: self._refined(classes, fields[:1], changes)}
            classes = self._without_one[fields.pop(0)]
        leader = self._refined(classes, fields, changes).leader[self._distinct]
        count = np.bincount(leader, minlength=1)
        is_joined = count[leader] > 1
        return Joined(self._distinct[is_joined], leader[is_joined])

    def _refined(self, classes: EqualSets, fields: Iterable[int], changes: Mapping[int, Lanes]) -> EqualSets:
        moved = [(self._odd[field].sets, self._more_than_usual(field, changes[field])) for field in fields]
        return classes.refined(moved)

    def _more_than_usual(self, field: int, numbers: Lanes) -> Lanes:
        """What a number per value makes of the odd values of a field, less what it makes of the usual one."""
        odd = self._odd[field]
        more: Lanes = numbers[:, odd.values] - numbers[:, self._usual[self._cache[odd.sets], field]]
        return more


_NONE: Final = np.zeros(0, dtype=np.int32)
