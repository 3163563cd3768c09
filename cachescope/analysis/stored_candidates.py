"""Entries that a lookup may be compared with: there when it was made, and no recorded lookup stands for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from cachescope.analysis.grouped import Numbers
from cachescope.analysis.history import EntryRow, LookupRow

_NEVER = np.iinfo(np.int64).max
_Graph = tuple[str, str | None, int | None]


class StoredCandidates:
    """The entries with hash details, by kind and by graph; numbered as in `rows`."""

    def __init__(self, entries: Sequence[EntryRow], lookups: Sequence[LookupRow]) -> None:
        self.rows = [entry for entry in entries if entry.detail_set is not None]
        wanted = {entry.cache_key for entry in self.rows}
        first: dict[str | None, int] = {}
        for at, row in enumerate(lookups):
            if row.cache_key in wanted:
                first.setdefault(row.cache_key, at)
        self._looked_up: Numbers = np.array(
            [first.get(e.cache_key, _NEVER) for e in self.rows], dtype=np.int64
        )
        self._modified: Numbers = np.array(
            [_NEVER if e.modified_time is None else e.modified_time for e in self.rows], dtype=np.int64
        )
        self._of_kind: dict[tuple[str, str | None], list[int]] = defaultdict(list)
        self._of_graph: dict[_Graph, list[int]] = defaultdict(list)
        for number, entry in enumerate(self.rows):
            self._of_kind[entry.cache, entry.direction].append(number)
            self._of_graph[entry.cache, entry.direction, entry.gm].append(number)

    def with_kind(self, row: LookupRow) -> Sequence[int]:
        """All entries of the cache and direction of a lookup."""
        return self._of_kind.get((row.cache, row.direction), [])

    def with_graph(self, row: LookupRow) -> Sequence[int]:
        """All entries of the graph of a lookup."""
        return self._of_graph.get((row.cache, row.direction, row.gm), [])

    def of_kind(self, row: LookupRow, at: int) -> list[int]:
        """The candidates of the cache and direction of a lookup."""
        return self._there(self.with_kind(row), row, at)

    def of_graph(self, row: LookupRow, at: int) -> list[int]:
        """The candidates of the graph of a lookup."""
        return self._there(self.with_graph(row), row, at)

    def _there(self, entries: Sequence[int], row: LookupRow, at: int) -> list[int]:
        if row.time is None or not entries:
            return []
        numbers = np.array(entries)
        there = (self._modified[numbers] < row.time) & (self._looked_up[numbers] >= at)
        found: list[int] = numbers[there].tolist()
        return found
