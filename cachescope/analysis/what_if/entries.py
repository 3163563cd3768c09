"""The entries of all cells over time, as columns."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cachescope.analysis.what_if.cells import Cells
from cachescope.analysis.what_if.members import Members
from cachescope.analysis.what_if.recorded import NEVER, Flags, Positions, Recorded

NOT_KNOWN: Final = -1
NO_GUARDS: Final = 0


class Entries(NamedTuple):
    """Entries, by column."""

    cell: Positions
    since: Positions  # from which position each exists, and to which
    gone: Positions
    source: Positions  # the position of the miss that stored it; -1 if no recorded miss did
    guards: Positions  # A number for the guards that must hold; `NO_GUARDS`, or `NOT_KNOWN`

    def take(self, places: Positions | Flags) -> Entries:
        """Some of them."""
        return Entries(*(column[places] for column in self))


class EntriesOfCells:
    """All entries, by cell.

    Attributes
    ----------
    guards_of_miss : array of int
        For each lookup, the guards of what it stored; `NOT_KNOWN` if it stored nothing.
    """

    def __init__(self, recorded: Recorded, cells: Cells) -> None:
        listed = [_walked(cells), *_not_walked(recorded, cells)]
        self._all = Entries(*map(np.concatenate, zip(*listed, strict=True)))
        self._members = Members(np.arange(len(self._all.cell)), self._all.cell, len(cells))
        is_stored = self._all.source >= 0
        self.guards_of_miss: Positions = np.full(len(recorded.outcome), NOT_KNOWN, dtype=np.int64)
        self.guards_of_miss[self._all.source[is_stored]] = self._all.guards[is_stored]

    def of(self, cells: Positions) -> tuple[Entries, Positions]:
        """The entries of some cells; and for each, which of `cells` it is of."""
        places, which = self._members.of(cells)
        return self._all.take(places), which


def _walked(cells: Cells) -> Entries:
    number: dict[str | None, int] = {None: NO_GUARDS}
    rows = [
        (
            cell,
            entry.since,
            entry.gone,
            entry.source,
            number.setdefault(entry.guards, len(number))
            if entry.has_known_guards or not cells.has_guards[cell]
            else NOT_KNOWN,
        )
        for cell, entries in cells.stored.items()
        for entry in entries
    ]
    return Entries(*np.array(rows, dtype=np.int64).reshape(-1, 5).T)


def _not_walked(recorded: Recorded, cells: Cells) -> tuple[Entries, Entries]:
    """The entries of plain cells: what misses stored, and what existed before."""
    was_walked = np.zeros(len(cells) + 1, dtype=bool)
    was_walked[list(cells.stored)] = True
    stores = np.flatnonzero(recorded.storing & ~was_walked[cells.of_lookup])
    early = np.flatnonzero((cells.early < NEVER) & ~was_walked[:-1])
    return (
        _without_guards(cells.of_lookup[stores], recorded.since[stores], stores),
        _without_guards(early, cells.early[early], np.full(len(early), -1, dtype=np.int64)),
    )


def _without_guards(cell: Positions, since: Positions, source: Positions) -> Entries:
    return Entries(cell, since, np.full(len(cell), NEVER), source, np.full(len(cell), NO_GUARDS))
