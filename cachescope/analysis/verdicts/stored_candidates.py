"""Entries that a lookup may be compared with: stored before the lookup, and represented by no recorded lookup."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from cachescope.analysis.history.entry_times import NEVER, EntryTimes
from cachescope.analysis.history.places_by_group import Numbers
from cachescope.analysis.history.rows import EntryRow, LookupRow

_Graph = tuple[str, str | None, int | None]


class StoredCandidates:
    """The entries with hash details, by kind and by graph; numbered as in `rows`.

    Parameters
    ----------
    entries : sequence of EntryRow
    lookups : sequence of LookupRow
        In time order.
    times : EntryTimes
    """

    def __init__(self, entries: Sequence[EntryRow], lookups: Sequence[LookupRow], times: EntryTimes) -> None:
        self.rows = [entry for entry in entries if entry.detail_set is not None]
        wanted = {entry.cache_key for entry in self.rows}
        first: dict[str | None, int] = {}
        for at, row in enumerate(lookups):
            if row.cache_key in wanted:
                first.setdefault(row.cache_key, at)
        looked_up = [first.get(entry.cache_key) for entry in self.rows]
        # The first recorded lookup of a key represents its entries from then on; if it missed, it wrote them.
        self._until: Numbers = np.array(
            [NEVER if at is None else at if lookups[at].is_hit else -1 for at in looked_up],
            dtype=np.int64,
        )
        intervals = [times.interval(entry) for entry in self.rows]
        self._begin: Numbers = np.array([begin for begin, _ in intervals], dtype=np.int64)
        self._end: Numbers = np.array([end for _, end in intervals], dtype=np.int64)
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

    def may_be_of_graph(self, row: LookupRow, at: int) -> bool:
        """Whether an entry of a lookup's graph may have existed, and nothing shows whether it did."""
        numbers = np.array(self.with_graph(row), dtype=np.int64)
        may_be = self._until[numbers] >= at
        if row.time is not None:
            may_be &= (self._begin[numbers] <= row.time) & (row.time < self._end[numbers])
        return bool(may_be.any())

    def _there(self, entries: Sequence[int], row: LookupRow, at: int) -> list[int]:
        if row.time is None or not entries:
            return []
        numbers = np.array(entries)
        there = (self._end[numbers] <= row.time) & (self._until[numbers] >= at)
        found: list[int] = numbers[there].tolist()
        return found
