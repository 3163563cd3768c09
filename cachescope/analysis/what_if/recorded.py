"""The recorded lookups as arrays that every replay works on, and their keys.

Time is counted in *positions*: the place of a lookup among all lookups in time order.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from cachescope.analysis.history.history import History
from cachescope.analysis.what_if.columns import MISSING, LookupColumns
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
    lookups : LookupColumns
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
        self.lookups = lookups = LookupColumns(history)
        self.key = lookups.key
        self.key_of_entry, self.keys = _keys(history)
        self.outcome: Outcomes = np.full(len(lookups), OTHER, dtype=np.int8)
        is_replayed = (self.key >= 0) & ~lookups.is_of_vllm
        self.outcome[lookups.is_hit & is_replayed] = HIT
        self.outcome[lookups.is_miss & is_replayed] = MISS
        self.storing: Flags = self.outcome == MISS
        self.storing[list(history.timeline.not_stored)] = False
        self._times = _filled_times(lookups)
        self.since: Positions = self._since(
            np.array([MISSING if end is None else end for end in history.timeline.end], dtype=np.int64)
        )

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


def _filled_times(lookups: LookupColumns) -> Positions:
    """The time of every lookup; a lookup without one gets the time of the lookup before it."""
    is_known = lookups.time != MISSING
    latest = np.maximum.accumulate(np.where(is_known, np.arange(len(lookups)), -1))
    return np.append(lookups.time, 0)[latest]


def _keys(history: History) -> tuple[list[int], Keys]:
    """The key of every entry, and all keys with the first details that any source has for them."""
    number = dict(history.key_numbers)
    names = [key for _, key in number]
    sets, home = [], []
    homes: dict[Home, int] = {}
    for (cache, _), indexes in zip(history.key_numbers, history.of_key, strict=True):
        described = (row for at in indexes if (row := history.lookups[at]).detail_set is not None)
        first = next(described, None)
        sets.append(-1 if first is None or first.detail_set is None else first.detail_set)
        home.append(homes.setdefault((cache, None if first is None else first.direction), len(homes)))
    key_of_entry = []
    for entry in history.entries:
        assert entry.cache_key is not None
        key = number.setdefault((entry.cache, entry.cache_key), len(names))
        key_of_entry.append(key)
        if key == len(names):
            names.append(entry.cache_key)
            sets.append(-1)
            home.append(homes.setdefault((entry.cache, None), len(homes)))
        if entry.detail_set is not None and sets[key] < 0:
            sets[key] = entry.detail_set
            direction = history.details.direction(entry.detail_set)
            home[key] = homes.setdefault((entry.cache, direction), len(homes))
    keys = Keys(list(homes), np.array(home, np.int64), np.array(sets, np.int64), names.__getitem__)
    return key_of_entry, keys
