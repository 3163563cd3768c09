"""Which sets of fields separate the keys of one graph: what a search for fields that would help has to try.

Sets are not guessed: they are the differences between keys of one graph, nearest first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import compress
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.what_if.replay import Replay

Codes = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Fields = frozenset[str]
# The number of sets to try: the most frequent.
_SETS: Final = 32
# How many comparisons of two values the search for sets may take; with few keys, every pair is compared.
_COMPARISONS: Final = 100_000_000
_FEWEST_PARTNERS: Final = 4
# So many values are held at once, unless one graph has more.
_VALUES: Final = 1 << 25


def field_sets(replay: Replay, largest: int) -> list[Fields]:
    """Sets of at least two fields that separate keys of one graph, the most frequent first."""
    table = replay.table
    names = table.varying
    if len(table.with_details) < 2 or len(names) < 2:
        return []
    missing = {replay.recorded.key[at] for at in replay.misses}
    missed = np.array([key in missing for key in table.with_details], dtype=bool)
    columns = np.stack([_coded(table.column(name)) for name in names])
    homes = _coded([table.keys[key].home for key in table.with_details])
    graph = columns[names.index("gm")] if "gm" in names else np.zeros(len(homes), dtype=np.int32)
    graphs = graph.astype(np.int64) * (int(homes.max()) + 1) + homes
    order = np.argsort(graphs, kind="stable")
    columns, graphs, missed = columns[:, order], graphs[order], missed[order]
    partners = max(_FEWEST_PARTNERS, _COMPARISONS // columns.size)
    count: Counter[Fields] = Counter()
    for part in _parts(graphs, _VALUES // len(names)):
        count.update(_Search(names, columns[:, part], graphs[part], missed[part], largest).sets(partners))
    ordered = sorted(count.items(), key=lambda item: (-item[1], sorted(item[0])))
    return [fields for fields, _ in ordered[:_SETS]]


def _coded(values: Sequence[Hashable]) -> Codes:
    """Small numbers in place of some values: equal ones for equal values."""
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(value, len(number)) for value in values], dtype=np.int32)


def _parts(graphs: Positions, size: int) -> Iterator[slice]:
    """Whole graphs, some at a time: at least so many keys."""
    first = 0
    for end in [*(np.flatnonzero(np.diff(graphs)) + 1).tolist(), len(graphs)]:
        if end - first >= size or end == len(graphs):
            yield slice(first, end)
            first = end


Patterns = npt.NDArray[np.uint64]


class _Search:
    """Compares keys with others of their graph."""

    def __init__(
        self, names: Sequence[str], values: Codes, graphs: Positions, missed: Flags, largest: int
    ) -> None:
        self._names = names
        self._values = values
        self._weights = np.random.default_rng(0).integers(1, 2**63, size=len(names), dtype=np.uint64)
        at = np.arange(len(graphs))
        self._start = np.maximum.accumulate(np.where(np.diff(graphs, prepend=-1) != 0, at, 0))
        self._missed = missed
        self._largest = largest
        # Of each key, how many fields separate it from the nearest of those that it was compared with, and which.
        self._nearest = np.full(len(graphs), 2**31 - 1, dtype=np.int64)
        self._nearest_set = np.full(len(graphs), -1, dtype=np.int64)
        self._number: dict[Fields, int] = {}
        self._count: Counter[Fields] = Counter()

    def sets(self, partners: int) -> Counter[Fields]:
        """How often keys differ in each set, if every key is compared with the first of its graph and so many before it."""
        at = np.arange(len(self._start))
        rest = at[at > self._start]
        self._look_at(self._start[rest], rest, *self._compared(self._start[rest], rest))
        for back in range(1, partners + 1):
            is_one_graph = at[back:] - back > self._start[back:]
            if not is_one_graph.any():
                break
            # Neighbouring keys are contiguous, which is quicker than picking them.
            size, pattern = self._compared(slice(0, len(at) - back), slice(back, None))
            later = at[back:][is_one_graph]
            self._look_at(later - back, later, size[is_one_graph], pattern[is_one_graph])
        numbers, counts = np.unique(self._nearest_set[self._nearest_set >= 0], return_counts=True)
        sets = list(self._number)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            self._count[sets[number]] += count
        return self._count

    def _compared(self, earlier: slice | Positions, later: slice | Positions) -> tuple[Positions, Patterns]:
        """In how many fields each pair of keys differs, and a number that is equal for equal fields."""
        count = len(self._start[later])
        size, pattern = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.uint64)
        for values, weight in zip(self._values, self._weights, strict=True):
            differs = np.flatnonzero(values[earlier] != values[later])
            size[differs] += 1
            pattern[differs] += weight
        return size, pattern

    def _look_at(self, earlier: Positions, later: Positions, size: Positions, pattern: Patterns) -> None:
        """Count the sets in which pairs of keys differ, and remember which are the smallest of a key."""
        is_small = size <= self._largest
        is_nearer = size < self._nearest[later]
        of_use = (size > 0) & (is_small | is_nearer) & (self._missed[earlier] | self._missed[later])
        nearer = of_use & is_nearer
        self._nearest[later[nearer]] = size[nearer]
        self._nearest_set[later[nearer]] = -1
        several = np.flatnonzero(of_use & (size > 1))
        codes, distinct = pd.factorize(pattern[several])
        first = np.zeros(len(distinct), dtype=np.int64)
        first[codes[::-1]] = several[::-1]
        sets = self._differing(earlier[first], later[first])
        times = np.bincount(codes, minlength=len(distinct)).tolist()
        for fields, count in zip(sets, times, strict=True):
            if len(fields) <= self._largest:
                self._count[fields] += count
        numbers = np.array(
            [self._number.setdefault(fields, len(self._number)) for fields in sets], dtype=np.int64
        )
        is_large = nearer[several] & ~is_small[several]
        self._nearest_set[later[several[is_large]]] = numbers[codes[is_large]]

    def _differing(self, earlier: Positions, later: Positions) -> list[Fields]:
        """The fields in which each of some pairs of keys differs."""
        differs = (self._values[:, earlier] != self._values[:, later]).T
        return [frozenset(compress(self._names, row)) for row in differs.tolist()]
