"""Replays the recorded lookups, in time order, under other keys: which would have found an entry.

An entry exists from the moment its compile ended, in the directory it was written to. A miss that becomes a hit
stores nothing. Bypassed and disabled lookups stay so, and recorded hits stay hits.

`report/page/replay.js` does the same in a browser, over the integers of `browser_replay`; `tests/report/test_replay.py` holds it to this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from operator import itemgetter
from typing import Final, Literal

from cachescope.analysis.history.history import History
from cachescope.analysis.rates import rates
from cachescope.analysis.what_if.cells import (
    HIT,
    MISS,
    NEVER,
    NO_GUARDS,
    NOT_KNOWN,
    UNKNOWN,
    Cell,
    Cells,
    Outcomes,
    ReplayColumns,
)
from cachescope.analysis.what_if.keys import KeyTable
from cachescope.frames.answer_rows import RateRow
from cachescope.grouping import by_key
from cachescope.keys.key_fields import Removed
from cachescope.terms import AOTAUTOGRAD, FXGRAPH

_ANY: Final = -2

WhyNot = Literal["guards", "gone", "concurrent", "pending", "not stored", "nothing"]


class Directory:
    """The entries that some cells have at one time, under keys that differed when they were recorded and count as one.

    Lookups of these keys are played into it in time order. Guards are numbers. Whether the guards of an entry hold is known if
    the entry has none, or if the lookup compiled the same guards itself. In all other cases it depends on sizes, which no log has.
    """

    def __init__(self, cells: Iterable[Cell], after: Mapping[int, int] | Outcomes) -> None:
        self._after = after
        # What is still to come, the next one last; and what goes, the next one first.
        coming = [(entry.since, cell.key, entry) for cell in cells for entry in cell.entries]
        self._coming = sorted(coming, key=itemgetter(0), reverse=True)
        self._going: list[tuple[int, int, int]] = []
        # How many entries there are: by guards, and by guards and key.
        self._count: Counter[tuple[int, int | None]] = Counter()
        self.has_lost = False  # whether an entry is gone

    def would_find(self, key: int, at: int, guards: int) -> int:
        """What a lookup that missed its own key finds among the entries of the others: `HIT`, `MISS` or `UNKNOWN`.

        It is made `at` a time not before any lookup made earlier, and compiled the `guards` itself.
        """
        self._move_to(at)
        if self._has_other(key, NO_GUARDS) or (guards != NOT_KNOWN and self._has_other(key, guards)):
            return HIT
        return UNKNOWN if self._has_other(key, _ANY) else MISS

    def holds_any(self, at: int) -> bool:
        """Whether there is an entry of any of the keys at a time."""
        self._move_to(at)
        return self._count[_ANY, None] > 0

    def _move_to(self, at: int) -> None:
        while self._coming and self._coming[-1][0] <= at:
            _, key, entry = self._coming.pop()
            by = MISS if entry.source < 0 else self._after[entry.source]
            if by == HIT:
                continue
            # What a lookup that may have hit would have stored may not exist.
            guards = entry.guards_code if by == MISS else NOT_KNOWN
            self._change(key, guards, 1)
            if entry.gone < NEVER:
                heappush(self._going, (entry.gone, key, guards))
        while self._going and self._going[0][0] <= at:
            _, key, guards = heappop(self._going)
            self._change(key, guards, -1)
            self.has_lost = True

    def _has_other(self, key: int, guards: int) -> bool:
        return self._count[guards, None] > self._count[guards, key]

    def _change(self, key: int, guards: int, more: int) -> None:
        for kind in (_ANY,) if guards == NOT_KNOWN else (_ANY, guards):
            self._count[kind, None] += more
            self._count[kind, key] += more


class Replay:
    """Everything that does not depend on a schema, which keeps a replay quick; lookups are named by their positions."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.columns = columns = ReplayColumns(history)
        self.table = KeyTable(history.keys, columns.keys)
        self.cells = Cells(columns, self.table.is_symbolic)
        self.misses = [at for at, outcome in enumerate(columns.outcome) if outcome == MISS]
        # The misses of graphs whose AOTAutograd lookup missed too, with that lookup.
        self.graphs = {
            at: above
            for at in self.misses
            if (above := history.aot[at]) is not None
            and columns.outcome[above] == MISS
            and history.lookups[at].cache != AOTAUTOGRAD
        }
        # The misses that may have hit anything: their key has no details.
        self.unknown = self._that_may_have_hit()
        # The compile time of each lookup, -1 where there is none. Only FX lookups have one: an AOTAutograd hit contains theirs.
        self.taken = [
            -1
            if row.time_taken_ns is None or row.cache != FXGRAPH or row.outcome == "hit"
            else row.time_taken_ns
            for row in history.lookups
        ]

    @cached_property
    def before(self) -> RateRow:
        """The hit rates as recorded."""
        return rates(self.history.lookups)

    def total(self, chosen: Iterable[int]) -> int | None:
        """The compile time of some lookups; None if none is recorded."""
        times = [time for at in chosen if (time := self.taken[at]) >= 0]
        return sum(times) if times else None

    def cell_of(self, at: int) -> Cell:
        """The cell of a lookup that hit or missed."""
        cell = self.cells.of_lookup[at]
        assert cell is not None
        return cell

    def is_aot(self, cell: Cell) -> bool:
        """Whether a cell is of AOTAutograd."""
        return self.columns.keys[cell.key].cache == AOTAUTOGRAD

    def _that_may_have_hit(self) -> list[int]:
        """The misses whose key has no details: under other keys, they may have found any entry that existed."""
        keys = self.columns.keys
        first: dict[tuple[str, int], int] = {}
        for cell in self.cells.every:
            home = keys[cell.key].cache, cell.directory
            first[home] = min([first.get(home, NEVER), *(entry.since for entry in cell.entries)])
        blind = (
            (at, self.cell_of(at)) for at in self.misses if keys[self.cell_of(at).key].detail_set is None
        )
        return [at for at, cell in blind if first[keys[cell.key].cache, cell.directory] <= at]


class Replayed:
    """All lookups replayed without what is removed of their keys."""

    def __init__(self, replay: Replay, removed: Removed) -> None:
        self.replay = replay
        self.removed = removed
        self._joined = replay.table.joined(removed) if removed else []

    @cached_property
    def equal(self) -> dict[int, list[int]]:
        """By each key that becomes equal to others: all of them, itself among them."""
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
        after = self.replay.columns.outcome.copy()
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
        before, after = self.replay.columns.outcome, self.after
        some = self.replay.misses if among is None else among
        return [at for at in some if after[at] == HIT and before[at] == MISS]

    def undecided(self, among: Iterable[int] | None = None) -> list[int]:
        """The misses that may have become hits, of all lookups or of some."""
        some = self.replay.misses if among is None else among
        return [at for at in some if self.after[at] == UNKNOWN]


def play(group: list[Cell], after: Outcomes) -> None:
    """Play some cells into one directory, and decide their misses; those that hit through an AOTAutograd entry do already."""
    if all(cell.is_plain for cell in group):
        # Nothing goes: without guards the first entry serves whoever looks from then on, and it is not one's own that one missed.
        since = first_entry(group, after)
        for cell in group:
            for at in cell.misses:
                if at >= since:
                    after[at] = HIT
        return
    directory = Directory(group, after)
    compiled = {entry.source: entry.guards_code for cell in group for entry in cell.entries}
    for at, key in sorted((at, cell.key) for cell in group for at in cell.misses):
        if after[at] != HIT:
            after[at] = directory.would_find(key, at, compiled.get(at, NOT_KNOWN))


def first_entry(cells: Iterable[Cell], after: Outcomes) -> int:
    """Since when some cells have an entry after a replay."""
    first = NEVER
    for cell in cells:
        for entry in cell.entries:
            if entry.since < first and (entry.source < 0 or after[entry.source] == MISS):
                first = entry.since
    return first


def still_missed(replayed: Replayed, group: Sequence[Cell]) -> Iterator[tuple[int, WhyNot, bool]]:
    """Each miss of some cells that stays one, why, and whether another run was compiling its very key."""
    replay, after = replayed.replay, replayed.after
    lookups, stored_since = replay.history.lookups, replay.columns.stored_since
    misses = {at: cell.key for cell in group for at in cell.misses}
    # What a lookup that may have hit would have stored is left out.
    directory = Directory(group, {at: MISS if after[at] == MISS else HIT for at in misses})
    # How many compiles go on, by key and run, None for any of them; when each ends; and whether one stored nothing.
    compiling: Counter[tuple[int | None, int | None]] = Counter()
    ends: list[tuple[int, int, int]] = []
    was_kept_back = False
    for at in sorted(at for at in misses if after[at] == MISS):
        while ends and ends[0][0] <= at:
            compiling.subtract(_counted(*heappop(ends)[1:]))
        key, run = misses[at], lookups[at].run
        why: WhyNot = "not stored" if was_kept_back else "nothing"
        if directory.holds_any(at):
            why = "guards"
        elif directory.has_lost:
            why = "gone"
        elif compiling[None, None]:
            why = "concurrent" if compiling[None, None] > compiling[None, run] else "pending"
        yield at, why, compiling[key, None] > compiling[key, run]
        if (since := stored_since[at]) < NEVER:
            heappush(ends, (since, key, run))
            compiling.update(_counted(key, run))
        else:
            was_kept_back = True


def _counted(key: int, run: int) -> list[tuple[int | None, int | None]]:
    """What a compile of a key by a run is counted as."""
    return [(None, None), (None, run), (key, None), (key, run)]
