"""Replays the recorded lookups, in time order, under other keys: which would have found an entry.

An entry exists from the moment its compile ended, in the directory it was written to. A miss that becomes a hit
stores nothing. Bypassed and disabled lookups stay so, and recorded hits stay hits.

`report/page/replay.js` does the same in a browser, over the integers of `codes`; `tests/report/test_replay.py` holds it to this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from cachescope.analysis.history.directory import NEVER, NOT_KNOWN, Directory
from cachescope.analysis.history.history import History
from cachescope.analysis.what_if.cells import Cell, Cells
from cachescope.analysis.what_if.keys import KeyTable
from cachescope.analysis.what_if.recorded import HIT, MISS, UNKNOWN, Outcomes, Recorded
from cachescope.grouping import by_key
from cachescope.keys.key_fields import Removed
from cachescope.terms import AOTAUTOGRAD

_OUTCOMES = {"hit": HIT, "miss": MISS, "unknown": UNKNOWN}


class Replay:
    """Everything that does not depend on a schema, which keeps `outcomes` quick.

    Attributes
    ----------
    history, recorded, table, cells
        What a replay works on.
    misses : list of int
        The positions of the recorded misses.
    graphs : dict
        The misses of graphs whose AOTAutograd lookup missed too, with that lookup.
    unknown : list of int
        The misses that may have hit anything: their key has no details.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.recorded = recorded = Recorded(history)
        self.table = KeyTable(history.details, recorded.keys)
        self.cells = Cells(recorded, self.table.is_symbolic)
        self.misses = [at for at, outcome in enumerate(recorded.outcome) if outcome == MISS]
        self.graphs = {
            at: above
            for at in self.misses
            if (above := history.aot[at]) is not None
            and recorded.outcome[above] == MISS
            and history.lookups[at].cache != AOTAUTOGRAD
        }
        self.unknown = self._that_may_have_hit()

    def cell_of(self, at: int) -> Cell:
        """The cell of a lookup that hit or missed."""
        cell = self.cells.of_lookup[at]
        assert cell is not None
        return cell

    def is_aot(self, cell: Cell) -> bool:
        """Whether a cell is of AOTAutograd."""
        return self.recorded.keys[cell.key].cache == AOTAUTOGRAD

    def _that_may_have_hit(self) -> list[int]:
        """The misses whose key has no details: under other keys, they may have found any entry that existed."""
        keys = self.recorded.keys
        first: dict[tuple[str, int], int] = {}
        for cell in self.cells.every:
            home = keys[cell.key].cache, cell.directory
            stored = (self.recorded.stored_since[at] for at in cell.misses)
            first[home] = min(first.get(home, NEVER), cell.early, *stored)
        found = []
        for at in self.misses:
            cell = self.cell_of(at)
            key = keys[cell.key]
            if key.detail_set is None and first[key.cache, cell.directory] <= at:
                found.append(at)
        return found

    def outcomes(self, removed: Removed, groups: Sequence[list[Cell]] | None = None) -> Outcomes:
        """The outcome of every lookup, in time order, without what is removed from the keys.

        Parameters
        ----------
        removed : Removed
        groups : sequence of list of Cell, optional
            What becomes equal by that, if it is known already; see `groups`.
        """
        after = self.recorded.outcome.copy()
        if groups is None:
            groups = self.groups(self.table.joined(removed))
        # Recorded hits stay hits: only misses are decided, those of AOTAutograd first.
        for group in groups:
            if self.is_aot(group[0]):
                play(group, after)
        # If an AOTAutograd entry is found, its graphs are found through it.
        for at, above in self.graphs.items():
            if after[above] == HIT:
                after[at] = HIT
        for group in groups:
            if not self.is_aot(group[0]):
                play(group, after)
        if removed:
            for at in self.unknown:
                if after[at] == MISS:
                    after[at] = UNKNOWN
        return after

    def groups(self, joined: Iterable[list[int]]) -> list[list[Cell]]:
        """The cells that share a what-if key and a directory with others."""
        found = by_key(
            ((keys[0], cell.directory), cell)
            for keys in joined
            for key in keys
            for cell in self.cells.of_key.get(key, ())
        )
        return [cells for cells in found.values() if len(cells) > 1]


def play(group: list[Cell], after: Outcomes) -> None:
    """Play some cells into one directory, and decide their misses; those that hit through an AOTAutograd entry do already."""
    directory = Directory()
    events = sorted(chain.from_iterable(cell.events for cell in group))
    for position, is_lookup, key, guards, gone, source in events:
        if is_lookup:
            if after[position] != HIT:
                after[position] = _OUTCOMES[directory.would_find(key, position, guards)]
            continue
        by = MISS if source < 0 else after[source]
        if by != HIT:
            # What a lookup that may have hit would have stored may not exist.
            directory.store(key, guards if by == MISS else NOT_KNOWN, gone)
