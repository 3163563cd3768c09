"""The recorded lookups as arrays that every replay works on, and their keys.

Time is counted in *positions*: the place of a lookup among all lookups in time order.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import MISSING, Lookups
from cachescope.analysis.what_if.key_sets import Home
from cachescope.analysis.what_if.keys import Keys

NEVER: Final = 2**31 - 1
HIT: Final = 0
MISS: Final = 1
UNKNOWN: Final = 2
"""Not an outcome of torch: a replay reports it if nothing decides."""
OTHER: Final = 3
"""Bypassed, disabled, or of vLLM: no replay changes it."""

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]
Outcomes = npt.NDArray[np.int8]


class Recorded:
    """The lookups in time order, by column.

    Attributes
    ----------
    lookups : Lookups
    outcome : array of int8
        `HIT`, `MISS` or `OTHER`.
    storing : array of bool
        Which missed and stored their result, as far as is known.
    since : array of int
        From which position the result of each miss exists.
    key : array of int
        The place of the key of each lookup in `keys`; -1 for a lookup without a key.
    key_of_entry : list of int
        The same for each entry of the history.
    keys : Keys
    """

    def __init__(self, history: History) -> None:
        self.lookups = lookups = history.lookups
        self.key, self.key_of_entry, self.keys = _keys(history)
        self.outcome: Outcomes = np.full(len(lookups), OTHER, dtype=np.int8)
        is_replayed = (self.key >= 0) & ~lookups.is_of_vllm
        self.outcome[lookups.is_hit & is_replayed] = HIT
        self.outcome[lookups.is_miss & is_replayed] = MISS
        self.storing: Flags = (self.outcome == MISS) & history.stored
        self._times = _filled_times(lookups)
        self.since: Positions = self._since(history.end)

    def position_of(self, time: int | None) -> int:
        """The first lookup made after a time; 0 if the time is unknown."""
        return 0 if time is None else int(np.searchsorted(self._times, time, side="right"))

    def _since(self, ends: Positions) -> Positions:
        at = np.arange(len(self.lookups), dtype=np.int64)
        known = np.where(self.storing & (ends != MISSING), ends, -1)
        since = np.searchsorted(self._times, known, side="right")
        # In one compile the graph of an AOTAutograd entry is looked up again after the entry failed.
        aot = self.lookups.aot
        is_graph = aot >= 0
        last_of_aot = np.full(len(at), -1, dtype=np.int64)
        np.maximum.at(last_of_aot, aot[is_graph], at[is_graph])
        last = at.copy()
        last[is_graph] = last_of_aot[aot[is_graph]]
        return np.maximum(since, last + 1)


def _filled_times(lookups: Lookups) -> Positions:
    """The time of every lookup; a lookup without one gets the time of the lookup before it."""
    is_known = lookups.time != MISSING
    latest = np.maximum.accumulate(np.where(is_known, np.arange(len(lookups)), -1))
    return np.append(lookups.time, 0)[latest]


def _keys(history: History) -> tuple[Positions, list[int], Keys]:
    """The key of every lookup and of every entry, and all keys with the first details that any source has for them."""
    lookups, entries = history.lookups, history.entries
    count = int(lookups.key.max(initial=-1)) + 1
    first = _first_of_keys(lookups, lookups.key >= 0, count)
    described = _first_of_keys(lookups, (lookups.key >= 0) & (lookups.detail_set >= 0), count)
    sets: list[int] = np.append(lookups.detail_set, -1)[described].tolist()
    directions = np.append(lookups.direction.codes, -1)[described]
    homes, home = _homes(lookups, lookups.cache.codes[first], directions)
    number = _numbers_of(lookups, {(entry.cache, entry.cache_key) for entry in entries})
    names: list[str] = []
    key_of_entry = []
    for entry in entries:
        key = number.setdefault((entry.cache, entry.cache_key), count + len(names))
        key_of_entry.append(key)
        if key == count + len(names):
            names.append(entry.cache_key)
            sets.append(-1)
            home.append(homes.setdefault((entry.cache, None), len(homes)))
        if entry.detail_set is not None and sets[key] < 0:
            sets[key] = entry.detail_set
            home[key] = homes.setdefault((entry.cache, entry.direction), len(homes))

    def name_of(key: int) -> str:
        return names[key - count] if key >= count else lookups.cache_key[int(first[key])] or ""

    keys = Keys(list(homes), np.array(home, np.int64), np.array(sets, np.int64), name_of)
    return lookups.key, key_of_entry, keys


def _first_of_keys(lookups: Lookups, chosen: Flags, count: int) -> Positions:
    """The position of the first lookup of each key, of those that are chosen; -1 if there is none."""
    at = np.flatnonzero(chosen)[::-1]
    first = np.full(count, -1, dtype=np.int64)
    first[lookups.key[at]] = at
    return first


def _homes(
    lookups: Lookups, caches: npt.NDArray[np.int32], directions: npt.NDArray[np.int32]
) -> tuple[dict[Home, int], list[int]]:
    """Every cache with a direction, numbered, and the number of each key."""
    directions_and_none = len(lookups.direction.distinct) + 1
    both = caches.astype(np.int64) * directions_and_none + directions + 1
    homes: dict[Home, int] = {}
    number = {}
    for pair in np.unique(both).tolist():
        cache, direction = divmod(pair, directions_and_none)
        home = lookups.cache.text(cache) or "", lookups.direction.text(direction - 1)
        number[pair] = homes.setdefault(home, len(homes))
    return homes, [number[pair] for pair in both.tolist()]


def _numbers_of(lookups: Lookups, names: set[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The keys of the lookups that have some names."""
    wanted = {cache_key for _, cache_key in names}
    codes = [code for code, text in enumerate(lookups.cache_key.distinct) if text in wanted] if wanted else []
    at = np.flatnonzero(np.isin(lookups.cache_key.codes, codes))
    keys, first = np.unique(lookups.key[at], return_index=True)
    return {
        (lookups.cache[place] or "", lookups.cache_key[place] or ""): key
        for key, place in zip(keys.tolist(), at[first].tolist(), strict=True)
    }
