"""Entries that a lookup may be compared with: stored before the lookup, and represented by no recorded lookup."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from cachescope.analysis.history.entry_times import NEVER, EntryTimes
from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import MISSING
from cachescope.analysis.history.places_by_group import NONE, Numbers

_Graph = tuple[str, str | None, int | None]


class StoredCandidates:
    """The entries with hash details, by kind and by graph; numbered as in `rows`. Lookups are named by their place in time order.

    `detail_set` has the set of each.

    Parameters
    ----------
    history : History
    times : EntryTimes
    """

    def __init__(self, history: History, times: EntryTimes) -> None:
        self._lookups = history.lookups
        self.rows = [entry for entry in history.entries if entry.detail_set is not None]
        looked_up = [history.lookups_of(entry) for entry in self.rows]
        # The first recorded lookup of a key represents its entries from then on; if it missed, it wrote them.
        is_hit = history.lookups.is_hit
        self._until: Numbers = np.array(
            [NEVER if not places else places[0] if is_hit[places[0]] else -1 for places in looked_up],
            dtype=np.int64,
        )
        intervals = [times.interval(entry) for entry in self.rows]
        self.detail_set: Numbers = np.array([entry.detail_set for entry in self.rows], dtype=np.int64)
        self._begin: Numbers = np.array([begin for begin, _ in intervals], dtype=np.int64)
        self._end: Numbers = np.array([end for _, end in intervals], dtype=np.int64)
        self._of_kind: dict[tuple[str, str | None], list[int]] = defaultdict(list)
        self._of_graph: dict[_Graph, list[int]] = defaultdict(list)
        for number, entry in enumerate(self.rows):
            self._of_kind[entry.cache, entry.direction].append(number)
            self._of_graph[entry.cache, entry.direction, entry.gm].append(number)

    def with_kind(self, at: int) -> Sequence[int]:
        """All entries of the cache and direction of a lookup."""
        if not self.rows:
            return []
        lookups = self._lookups
        return self._of_kind.get((lookups.cache_of(at), lookups.direction[at]), [])

    def with_graph(self, at: int) -> Sequence[int]:
        """All entries of the graph of a lookup."""
        if not self.rows:
            return []
        lookups, gm = self._lookups, int(self._lookups.gm[at])
        graph = lookups.cache_of(at), lookups.direction[at], None if gm == NONE else gm
        return self._of_graph.get(graph, [])

    def of_kind(self, at: int) -> list[int]:
        """The candidates of the cache and direction of a lookup."""
        return self._there(self.with_kind(at), at)

    def of_graph(self, at: int) -> list[int]:
        """The candidates of the graph of a lookup."""
        return self._there(self.with_graph(at), at)

    def may_be_of_graph(self, at: int) -> bool:
        """Whether an entry of a lookup's graph may have existed, and nothing shows whether it did."""
        numbers = np.array(self.with_graph(at), dtype=np.int64)
        may_be = self._until[numbers] >= at
        time = self._lookups.time[at]
        if time != MISSING:
            may_be &= (self._begin[numbers] <= time) & (time < self._end[numbers])
        return bool(may_be.any())

    def _there(self, entries: Sequence[int], at: int) -> list[int]:
        time = self._lookups.time[at]
        if time == MISSING or not entries:
            return []
        numbers = np.array(entries)
        there = (self._end[numbers] <= time) & (self._until[numbers] >= at)
        found: list[int] = numbers[there].tolist()
        return found
