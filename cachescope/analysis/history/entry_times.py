"""Whether an entry was stored before a lookup, as far as its modification time can show.

A modification time proves nothing by itself. Archives, image layers and many file systems keep whole seconds,
copies get the time of the copy, reproducible images one fixed time, and the clock of a file server may be minutes
off. Values in a remote cache have no time at all. But a process always writes an entry after it missed the key. So the
entries whose miss was recorded show how far to trust the times of a directory: as they are, shifted by a constant, or not at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from cachescope.analysis.history.history import History, set_of
from cachescope.frames.directory_rows import EntryRow
from cachescope.grouping import by_key
from cachescope.keys.paths import is_in_remote_cache
from cachescope.readers.logs.notes import LookupNote
from cachescope.terms import FXGRAPH

NEVER: Final = 2**63 - 1
LONG_AGO: Final = -(2**63)
_SECOND_NS: Final = 1_000_000_000
LATE_NS: Final = 5 * _SECOND_NS
"""The time between the end of a compile in the logs and the modification time of its file."""
# Shifts between two clocks that agree this closely count as one shift.
_SPREAD_NS: Final = 3 * _SECOND_NS
# Archives that keep two seconds are the coarsest.
_RESOLUTIONS_NS: Final = (2 * _SECOND_NS, _SECOND_NS)
_MOST_TRIED: Final = 64
_SINCE_WHEN: Final = "nothing shows since when it is stored"
_OF_A_COPY: Final = "its time is later, but it may be a copy, which has the time of the copy"
_WHETHER_LOADED: Final = "no log shows whether the run had loaded it"


_Clock = tuple[int, int | None, bool]
"""The resolution of the times of one directory; what to add to them, None if they do not show when an entry was stored; and whether
recorded misses wrote entries at those times, or a run searched it and nothing speaks against them. Otherwise it may be a copy."""


class EntryTimes:
    """The times of entries, checked against the recorded misses that wrote them."""

    def __init__(self, history: History) -> None:
        of_root = by_key((entry.root, entry) for entry in history.entries)
        self._clocks = {root: _clock(found, history) for root, found in of_root.items()}
        self._are_predicted = all(row.prediction is not None for row in history.lookups)
        self._in_remote_caches = _in_remote_caches(history) if self._are_predicted else frozenset[str]()

    def interval(self, entry: EntryRow) -> tuple[int, int]:
        """The earliest and latest time an entry can have been stored, nanoseconds since the epoch; any time if unknown."""
        if is_in_remote_cache(entry.path):
            is_found = entry.cache in self._in_remote_caches
        else:
            # It is in a mega-cache, which a program that is only predicted would load.
            is_found = entry.modified_time is None and self._are_predicted
        if is_found:
            return LONG_AGO, LONG_AGO
        resolution, shift, is_in_step = self._clocks[entry.root]
        if shift is None or entry.modified_time is None:
            return LONG_AGO, NEVER
        begin = entry.modified_time + shift
        # A copy has the time of the copy: it was filled before that.
        return begin if is_in_step else LONG_AGO, begin + resolution


class _Stored(NamedTuple):
    entry: EntryRow
    begin: int  # the earliest time at which it can have been stored
    end: int  # the latest
    until: int  # the first recorded lookup of its key represents it from then on; if that missed, it wrote it


class Doubt(NamedTuple):
    """A key of the graph of a lookup that may have been there."""

    place: str  # a directory or a bundle
    fields: tuple[str, ...]  # in which the key differs
    why: str  # why it is not known whether it was there


class StoredCandidates:
    """The entries with hash details, by cache and direction: those that a lookup may be compared with.

    They were stored before it under another key, and no recorded lookup represents them. Lookups are named by their index in time order.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self.times = EntryTimes(history)
        # By cache and direction, and by these and the graph.
        self._stored: dict[tuple[str | int | None, ...], list[_Stored]] = defaultdict(list)
        # What bundles hold that no run looked up, by graph.
        self._in_bundles: dict[int | None, list[tuple[str, int]]] = defaultdict(list)
        # By their inputs. Then the keys that each run looked up.
        self._of_inputs: dict[tuple[int, ...], list[_Stored]] = defaultdict(list)
        self._looked_up = {(row.run, row.cache, row.cache_key) for row in history.lookups}
        for entry in history.entries:
            if entry.detail_set is not None:
                until = -1 if history.is_of_a_miss(entry) else next(iter(history.lookups_of(entry)), NEVER)
                kind = entry.cache, history.details.direction(entry.detail_set)
                stored = _Stored(entry, *self.times.interval(entry), until)
                self._stored[kind].append(stored)
                self._stored[*kind, history.keys.graph(entry.detail_set)].append(stored)
                self._of_inputs[tuple(history.details.inputs(entry.detail_set))].append(stored)
        for bundle in history.bundles:
            for key, detail_set in zip(bundle.fx_keys, bundle.fx_detail_sets, strict=False):
                graph = history.keys.graph(detail_set)
                if graph is not None and (FXGRAPH, key) not in history.key_numbers:
                    self._in_bundles[graph].append((bundle.path, detail_set))

    def with_kind(self, at: int) -> list[EntryRow]:
        """All entries of the cache and direction of a lookup."""
        row = self._history.lookups[at]
        return [stored.entry for stored in self._stored.get((row.cache, row.direction), ())]

    def of_kind(self, at: int) -> list[EntryRow]:
        """The candidates of the cache and direction of a lookup."""
        row = self._history.lookups[at]
        return self._there(at, self._stored.get((row.cache, row.direction), ()))

    def of_graph(self, at: int) -> list[EntryRow]:
        """The candidates of the graph of a lookup."""
        return self._there(at, self._with_graph(at))

    def doubt(self, at: int) -> Doubt | None:
        """The nearest key of a lookup's graph that may have been there, if nothing shows whether it was."""
        row, keys = self._history.lookups[at], self._history.keys
        found = [
            (one.entry.root, set_of(one.entry), _SINCE_WHEN if one.end == NEVER else _OF_A_COPY)
            for one in self._with_graph(at)
            if one.until >= at
            and one.entry.cache_key != row.cache_key
            and (row.time is None or one.begin <= row.time < one.end)
        ]
        if row.cache == FXGRAPH:
            bundled = self._in_bundles.get(self._history.graph[at], ())
            found += [(path, detail_set, _WHETHER_LOADED) for path, detail_set in bundled]
        if not found:
            return None
        own = set_of(row)
        place, nearest, why = min(found[-_MOST_TRIED:], key=lambda one: keys.fields(one[1], own))
        return Doubt(place, keys.change(nearest, own).names, why)

    def may_take_inputs_of(self, at: int) -> bool:
        """Whether there may have been an entry whose graph takes the inputs of this lookup's graph, and which its run has not looked up."""
        row, details = self._history.lookups[at], self._history.details
        own = () if row.cache != FXGRAPH or row.detail_set is None else tuple(details.inputs(row.detail_set))
        return bool(own) and any(
            one.until >= at
            and (row.run, row.cache, one.entry.cache_key) not in self._looked_up
            and (row.time is None or one.begin <= row.time)
            for one in self._of_inputs.get(own, ())
        )

    def _with_graph(self, at: int) -> Sequence[_Stored]:
        row = self._history.lookups[at]
        return self._stored.get((row.cache, row.direction, self._history.graph[at]), ())

    def _there(self, at: int, found: Sequence[_Stored]) -> list[EntryRow]:
        time, key = self._history.lookups[at].time, self._history.lookups[at].cache_key
        there = (one for one in found if time is not None and one.end <= time and one.until >= at)
        return [one.entry for one in there if one.entry.cache_key != key]


def _in_remote_caches(history: History) -> frozenset[str]:
    """The caches that predicted programs ask remotely. They find the entries that were read."""
    notes = by_key((row.cache, LookupNote.of_json(row.preflight_note or "{}")) for row in history.lookups)
    return frozenset(cache for cache, noted in notes.items() if all(note.is_remote for note in noted))


def resolution_ns(entries: Sequence[EntryRow]) -> int | None:
    """The resolution of the entry times of one directory; None if all of them have one fixed time."""
    times = [entry.modified_time for entry in entries if entry.modified_time is not None]
    if len(times) > 1 and len(set(times)) == 1:
        return None
    return next((one for one in _RESOLUTIONS_NS if not any(time % one for time in times)), 1)


def _clock(entries: Sequence[EntryRow], history: History) -> _Clock:
    resolution = resolution_ns(entries)
    if resolution is None:
        return 1, None, False
    # How long before its miss, and before the end of the compile or of its process, an entry seems to have been written.
    before_miss, before_end = [], []
    # How long before the end of the one compile that can have written it an entry seems to have been written, and when.
    shifts = []
    for entry in entries:
        # If several processes missed one key, such as racing ranks, it is not known which of them wrote it.
        wrote = [at for at in history.writers_of(entry) if history.lookups[at].time is not None]
        written = entry.modified_time
        # The time of a damaged one may be when it was damaged.
        if not wrote or written is None or entry.status != "ok" or history.is_of_another_compile(entry):
            continue
        first, last = (history.lookups[at] for at in (wrote[0], wrote[-1]))
        end, has_ended = history.timeline.end[wrote[-1]] or 0, history.timeline.has_ended(wrote[-1])
        at_latest = end if has_ended else history.run_of[last.run].end_time or 0
        before_miss.append((first.time or 0) - written - resolution)
        before_end.append(max(at_latest, (last.time or 0) + (entry.time_taken_ns or 0)) - written)
        if has_ended and len(wrote) == 1:
            shifts.append((end - written, written))
    if all(ns <= 0 for ns in before_miss) and all(ns >= -LATE_NS for ns in before_end):
        return resolution, 0, bool(before_end) or history.is_searched(entries[0].root)
    # A copy is made at once, whenever its entries were stored: it is no clock that is off.
    shifts.sort()
    spread, times = _SPREAD_NS + resolution, [written for _, written in shifts] or [0]
    is_one_shift = max(times) - min(times) > spread >= shifts[-1][0] - shifts[0][0]
    return resolution, shifts[(len(shifts) - 1) // 2][0] if is_one_shift else None, True
