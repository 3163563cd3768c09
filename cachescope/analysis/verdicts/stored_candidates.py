"""Entries that a lookup may be compared with: stored before the lookup, and represented by no recorded lookup."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from cachescope.analysis.history.entry_times import NEVER, EntryTimes
from cachescope.analysis.history.history import History
from cachescope.frames.directory_rows import EntryRow


class _Stored(NamedTuple):
    entry: EntryRow
    begin: int
    """The earliest time at which it can have been stored."""
    end: int
    """The latest."""
    until: int
    """The first recorded lookup of its key represents it from then on; if that missed, it wrote it."""


class StoredCandidates:
    """The entries with hash details, by cache and direction. Lookups are named by their index in time order."""

    def __init__(self, history: History, times: EntryTimes) -> None:
        self._history = history
        self._of_kind: dict[tuple[str, str | None], list[_Stored]] = defaultdict(list)
        self._of_graph: dict[tuple[str, str | None, int | None], list[_Stored]] = defaultdict(list)
        for entry in history.entries:
            if entry.detail_set is not None:
                until = -1 if history.is_of_a_miss(entry) else next(iter(history.lookups_of(entry)), NEVER)
                kind = entry.cache, history.details.direction(entry.detail_set)
                stored = _Stored(entry, *times.interval(entry), until)
                self._of_kind[kind].append(stored)
                self._of_graph[*kind, history.keys.graph(entry.detail_set)].append(stored)

    def with_kind(self, at: int) -> list[EntryRow]:
        """All entries of the cache and direction of a lookup."""
        return [stored.entry for stored in self._with_kind(at)]

    def of_kind(self, at: int) -> list[EntryRow]:
        """The candidates of the cache and direction of a lookup."""
        return [stored.entry for stored in self._with_kind(at) if self._is_there(stored, at)]

    def of_graph(self, at: int) -> list[EntryRow]:
        """The candidates of the graph of a lookup."""
        return [stored.entry for stored in self._with_graph(at) if self._is_there(stored, at)]

    def may_be_of_graph(self, at: int) -> bool:
        """Whether an entry of a lookup's graph may have existed, and nothing shows whether it did."""
        time = self._history.lookups[at].time
        return any(
            stored.until >= at and (time is None or stored.begin <= time < stored.end)
            for stored in self._with_graph(at)
        )

    def _with_kind(self, at: int) -> Sequence[_Stored]:
        row = self._history.lookups[at]
        return self._of_kind.get((row.cache, row.direction), ())

    def _with_graph(self, at: int) -> Sequence[_Stored]:
        row = self._history.lookups[at]
        return self._of_graph.get((row.cache, row.direction, self._history.graph[at]), ())

    def _is_there(self, stored: _Stored, at: int) -> bool:
        time = self._history.lookups[at].time
        return time is not None and stored.end <= time and stored.until >= at
