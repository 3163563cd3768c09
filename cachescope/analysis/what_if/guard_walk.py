"""The lookups of one what-if key in one directory, one after the other, where guards or removals matter.

Whether the guards of an entry hold for a lookup is known where the lookup compiled the same guards itself, and
where the entry has none; else it is unknown, for a log does not hold the sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cachescope.analysis.what_if.cells import HIT, MISS, UNKNOWN, Cell, Outcomes, Recorded, Stored


@dataclass(frozen=True, slots=True)
class _Candidate:
    entry: Stored
    cell: Cell
    may_have_guards: bool


def walk_group(recorded: Recorded, cells: Sequence[Cell], after: Outcomes, nested: set[int]) -> None:
    """Decide the misses of some cells, in time order; the outcomes are written into `after`.

    Parameters
    ----------
    recorded : Recorded
    cells : sequence of Cell
        The cells that share a what-if key and a directory.
    after : array
        Outcomes by position; what AOTAutograd hits brought along is there already.
    nested : set of int
        Positions that hit through an AOTAutograd entry, and so stored nothing.
    """
    candidates = [_Candidate(e, cell, cell.has_guards) for cell in cells for e in cell.entries]
    own = {candidate.entry.source: candidate for candidate in candidates if candidate.entry.source >= 0}
    misses = sorted(
        ((at, cell) for cell in cells for at in cell.lookups if recorded.outcome[at] == MISS),
        key=lambda pair: pair[0],
    )
    for at, cell in misses:
        if at in nested:
            continue
        after[at] = MISS
        for candidate in candidates:
            # The entries of its own key did not fit: that was recorded.
            if candidate.cell is cell or not candidate.entry.since <= at < candidate.entry.gone:
                continue
            source = candidate.entry.source
            if source >= 0 and after[source] == HIT:
                continue
            is_sure = _fits(candidate, own.get(at)) and (source < 0 or after[source] == MISS)
            after[at] = HIT if is_sure else UNKNOWN
            if is_sure:
                break


def _fits(candidate: _Candidate, own: _Candidate | None) -> bool:
    """Whether the guards of an entry are known to hold for a lookup that compiled an entry of its own."""
    entry = candidate.entry
    if not entry.has_known_guards and candidate.may_have_guards:
        return False
    if entry.guards is None:
        return True
    return own is not None and own.entry.has_known_guards and own.entry.guards == entry.guards
