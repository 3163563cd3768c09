"""What was stored when, by whom, and under which guards: worked out once and shared.

Verdicts, replays and predictions all start from one `History`. Lookups are named by their place in time order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd

from cachescope.analysis.history.inferred_guard_misses import inferred_guard_misses
from cachescope.analysis.history.lookups import Flags, Lookups
from cachescope.analysis.history.places_by_group import NONE, Numbers, paired
from cachescope.analysis.history.rows import EntryRow, LookupRow, RunRow, entry_rows, run_rows
from cachescope.analysis.history.timeline import Timeline
from cachescope.details import HashDetails


class History:
    """What happened, in time order.

    Parameters
    ----------
    lookups : Lookups
        In time order.
    entries : sequence of EntryRow
    runs : sequence of RunRow
    timeline : Timeline, optional
        When compiles ended and what they stored, if that is known already.

    Attributes
    ----------
    lookups, entries, runs
        As given.
    inferred : tuple of int
        The ids of lookups of a text log that can only have been guard misses; their outcome in `lookups` says so.
    """

    def __init__(
        self,
        lookups: Lookups,
        entries: Sequence[EntryRow] = (),
        runs: Sequence[RunRow] = (),
        timeline: Timeline | None = None,
        inferred: tuple[int, ...] = (),
    ) -> None:
        self.lookups = lookups
        self.entries = entries
        self.runs = runs
        self.timeline = Timeline(lookups, runs) if timeline is None else timeline
        self.inferred = inferred

    @classmethod
    def of(
        cls, lookups: pd.DataFrame, entries: pd.DataFrame, runs: pd.DataFrame, details: HashDetails
    ) -> Self:
        """The history of the frames as they were read, with the guard misses that follow from all of them together."""
        recorded = Lookups.of_frame(lookups, details)
        stored, processes = entry_rows(entries, details), run_rows(runs)
        timeline = Timeline(recorded, processes)
        found = inferred_guard_misses(recorded, stored, timeline, details)
        settled = recorded.with_outcome("guard_miss", found) if found else recorded
        return cls(settled, stored, processes, timeline, tuple(recorded.lookup[found].tolist()))

    @classmethod
    def of_rows(
        cls,
        lookups: Sequence[LookupRow],
        entries: Sequence[EntryRow] = (),
        runs: Sequence[RunRow] = (),
    ) -> Self:
        """The history of rows; the lookups are in time order."""
        return cls(Lookups.of_rows(lookups), entries, runs)

    @cached_property
    def rank(self) -> Numbers:
        """The rank of the run of each lookup; -1 if it is not known."""
        rank_of = {run.run: NONE if run.rank is None else run.rank for run in self.runs}
        runs, which = np.unique(self.lookups.run, return_inverse=True)
        ranks: Numbers = np.array([rank_of.get(run, NONE) for run in runs.tolist()], dtype=np.int64)
        return ranks[which]

    def graphs_of(self, aot: int) -> Numbers:
        """The FX lookups made under an AOTAutograd lookup."""
        return self.timeline.graphs_of(aot)

    @property
    def end(self) -> Numbers:
        """When the compile after each lookup ended; `MISSING` if no log has times."""
        return self.timeline.end

    @cached_property
    def stored(self) -> Flags:
        """Which lookups missed and stored a result, as far as is known."""
        found: Flags = self.lookups.is_miss & self.timeline.stores
        return found

    def guards_before(self, at: int) -> list[str]:
        """The guards that earlier lookups of its key show, each once."""
        return [text for place, text in self._guards_of_key.get(int(self.lookups.key[at]), ()) if place < at]

    @cached_property
    def _guards_of_key(self) -> Mapping[int, list[tuple[int, str]]]:
        """The guards that the lookups of each key show, with the place of the first lookup that shows them."""
        lookups = self.lookups
        is_shown = lookups.guards_expr.is_known & lookups.outcome.are("hit", "guard_miss")
        places = np.flatnonzero(is_shown & (lookups.key != NONE))
        pairs = paired(lookups.key[places], lookups.guards_expr.codes[places].astype(np.int64))
        found: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for at in places[np.sort(np.unique(pairs, return_index=True)[1])].tolist():
            found[int(lookups.key[at])].append((at, lookups.guards_expr[at] or ""))
        return found

    @cached_property
    def latest_of_key(self) -> Numbers:
        """The place of the latest earlier lookup of the key of each; -1 for the first of a key, and without a key."""
        key = self.lookups.key
        order = np.argsort(key, kind="stable")
        is_same = key[order][1:] == key[order][:-1]
        found = np.full(len(key), NONE, dtype=np.int64)
        found[order[1:][is_same]] = order[:-1][is_same]
        found[key == NONE] = NONE
        return found

    def lookups_of(self, entry: EntryRow) -> Sequence[int]:
        """The lookups of the key of an entry."""
        return self._lookups_of_entries.get((entry.cache, entry.cache_key), ())

    @cached_property
    def _lookups_of_entries(self) -> Mapping[tuple[str | None, str | None], list[int]]:
        lookups = self.lookups
        codes = lookups.cache_key.codes_of({entry.cache_key for entry in self.entries})
        found: dict[tuple[str | None, str | None], list[int]] = defaultdict(list)
        for at in np.flatnonzero(np.isin(lookups.cache_key.codes, list(codes.values()))).tolist():
            found[lookups.cache[at], lookups.cache_key[at]].append(at)
        return found
