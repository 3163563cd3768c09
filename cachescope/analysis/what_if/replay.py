"""Replays the recorded lookups, in time order, under other keys: which would have found an entry.

An entry exists from the moment its compile ended, in the directory it was written to. A miss that becomes a hit
stores nothing. Bypassed and disabled lookups stay so, and recorded hits stay hits.

`report/page/replay.js` does the same in a browser, over the integers of `browser_replay`; `tests/report/test_replay.py` holds it to this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from cachescope.analysis.history.directory import HIT, MISS, UNKNOWN, Directory, Event, Found
from cachescope.analysis.history.history import History
from cachescope.analysis.history.timeline import NEVER
from cachescope.analysis.rates import known_sum, rates
from cachescope.analysis.what_if.cells import Cell, Cells
from cachescope.analysis.what_if.keys import KeyTable
from cachescope.frames.answer_rows import RateRow
from cachescope.grouping import by_key
from cachescope.keys.key_schema import Removed
from cachescope.terms import AOTAUTOGRAD, FXGRAPH

Outcomes = list[int]


class Replay:
    """Everything that does not depend on a schema, so that a replay is quick. Lookups are named by their positions."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.cells = Cells(history)
        self.table = KeyTable(history.keys, self.cells.keys)
        self.misses = [at for at, outcome in enumerate(self.cells.outcome) if outcome == MISS]
        # The misses of graphs whose AOTAutograd lookup missed too, with that lookup.
        self.graphs = {
            at: above
            for at in self.misses
            if (above := history.aot[at]) is not None
            and self.cells.outcome[above] == MISS
            and history.lookups[at].cache != AOTAUTOGRAD
        }
        # Misses that may have hit any entry, since their keys have no details.
        self.unknown = self._that_may_have_hit()
        # The compile time of each lookup. Only FX lookups have one: an AOTAutograd hit contains theirs.
        self.taken = [
            row.time_taken_ns if row.cache == FXGRAPH and row.outcome != "hit" else None
            for row in history.lookups
        ]

    @cached_property
    def before(self) -> RateRow:
        """The hit rates as recorded."""
        return rates(self.history.lookups)

    def total(self, chosen: Iterable[int]) -> int | None:
        """The compile time of some lookups; None if none is recorded."""
        return known_sum(self.taken[at] for at in chosen)

    def cell_of(self, at: int) -> Cell:
        """The cell of a lookup that hit or missed."""
        cell = self.cells.of_lookup[at]
        assert cell is not None
        return cell

    def is_aot(self, cell: Cell) -> bool:
        """Whether a cell is of the AOTAutograd cache."""
        return self.cells.keys[cell.key].cache == AOTAUTOGRAD

    def _that_may_have_hit(self) -> list[int]:
        """The misses whose key has no details: under other keys, they may have found any entry that existed."""
        keys = self.cells.keys
        first: dict[tuple[str, int], int] = {}
        for cell in self.cells.every:
            home = keys[cell.key].cache, cell.directory
            first[home] = min([first.get(home, NEVER), *(entry.since for entry in cell.entries)])
        blind = (
            (at, self.cell_of(at)) for at in self.misses if keys[self.cell_of(at).key].detail_set is None
        )
        return [at for at, cell in blind if first[keys[cell.key].cache, cell.directory] <= at]


class Replayed:
    """All lookups, replayed without what is removed from their keys."""

    def __init__(self, replay: Replay, removed: Removed) -> None:
        self.replay = replay
        self.removed = removed
        self._joined = replay.table.joined(removed) if removed else []

    @cached_property
    def equal(self) -> dict[int, list[int]]:
        """For each key that becomes equal to others: all of these, including itself."""
        return {key: keys for keys in self._joined for key in keys}

    @cached_property
    def groups(self) -> list[list[Cell]]:
        """The cells that share a what-if key and a directory with others."""
        found: list[list[Cell]] = []
        for keys in self._joined:
            cells = [cell for key in keys for cell in self.replay.cells.of_key.get(key, ())]
            is_split = len({cell.directory for cell in cells}) > 1
            found += by_key((cell.directory, cell) for cell in cells).values() if is_split else [cells]
        return [cells for cells in found if len(cells) > 1]

    @cached_property
    def after(self) -> Outcomes:
        """The outcome of every lookup, in time order."""
        after = self.replay.cells.outcome.copy()
        # Recorded hits stay hits: only misses are decided, those of AOTAutograd first.
        for group in self.groups:
            if self.replay.is_aot(group[0]):
                play(group, after)
        # If an AOTAutograd entry is found, its graphs are found through it.
        for at, above in self.replay.graphs.items():
            if after[above] == HIT:
                after[at] = HIT
        for group in self.groups:
            if not self.replay.is_aot(group[0]):
                play(group, after)
        if self.removed:
            for at in self.replay.unknown:
                if after[at] == MISS:
                    after[at] = UNKNOWN
        return after

    def turned(self, among: Iterable[int] | None = None) -> list[int]:
        """The misses that became hits, of all lookups or of some."""
        before, after = self.replay.cells.outcome, self.after
        some = self.replay.misses if among is None else among
        return [at for at in some if after[at] == HIT and before[at] == MISS]

    def undecided(self, among: Iterable[int] | None = None) -> list[int]:
        """The misses that may have become hits, of all lookups or of some."""
        some = self.replay.misses if among is None else among
        return [at for at in some if self.after[at] == UNKNOWN]


def play(group: Sequence[Cell], after: Outcomes) -> None:
    """Play some cells into one directory, and decide their misses, except those that already hit through an AOTAutograd entry."""
    directory = Directory((event for cell in group for event in cell.events), after)
    compiled = {entry.source: entry.guards for cell in group for entry in cell.entries}
    for at, key in sorted((at, cell.key) for cell in group for at in cell.misses):
        if after[at] != HIT:
            found = directory.would_find(key, at, compiled.get(at))
            after[at] = HIT if found == "found" else UNKNOWN if found == "not known" else MISS


def first_entry(cells: Iterable[Cell], after: Outcomes) -> int:
    """The position from which some cells are known to have an entry after a replay."""
    first = NEVER
    for cell in cells:
        for entry in cell.entries:
            if entry.since < first and (entry.source < 0 or after[entry.source] == MISS):
                first = min(first, entry.sure)
    return first


def still_missed(replayed: Replayed, group: Sequence[Cell]) -> Iterator[tuple[int, Found, bool]]:
    """Each miss of some cells that remains one, why, and whether another run was compiling the same key."""
    after, stored_since = replayed.after, replayed.replay.cells.stored_since
    misses = {at: cell.key for cell in group for at in cell.misses}
    missed = {at: replayed.replay.history.lookups[at].run for at in sorted(misses) if after[at] == MISS}
    events = [event for cell in group for event in cell.events]
    for at, run in missed.items():
        is_stored = stored_since[at] < NEVER
        events.append(Event(at + 1, misses[at], at, int(is_stored), run=run))
        if is_stored:
            events.append(Event(stored_since[at], misses[at], at, -1, run=run))
    # A lookup that may have hit is taken to store nothing.
    directory = Directory(events, {at: MISS if at in missed else HIT for at in misses})
    for at, run in missed.items():
        why = directory.would_find(misses[at], at, run=run)
        yield at, why, directory.is_compiled_by_another(run, misses[at])
