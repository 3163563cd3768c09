"""Walks the lookups of one what-if key in one directory in order, when guards or removals matter.

Whether the guards of an entry hold for a lookup is known if the lookup compiled the same guards itself, and
if the entry has none. Otherwise it is unknown, because a log does not contain the sizes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cachescope.analysis.what_if.cells import HIT, MISS, UNKNOWN, Cell, Outcomes, Recorded, Stored

_Candidate = tuple[Stored, Cell]


def walk_group(recorded: Recorded, cells: Sequence[Cell], after: Outcomes, nested: set[int]) -> None:
    """Decide the misses of some cells, in time order; the outcomes are written into `after`.

    Parameters
    ----------
    recorded : Recorded
    cells : sequence of Cell
        The cells that share a what-if key and a directory.
    after : array
        Outcomes by position; what AOTAutograd hits imply is already in it.
    nested : set of int
        Positions that hit through an AOTAutograd entry, and so stored nothing.
    """
    candidates = sorted(((e, cell) for cell in cells for e in cell.entries), key=lambda one: one[0].since)
    own = {entry.source: entry for entry, _ in candidates if entry.source >= 0}
    # By the guards that must hold: None if there are none.
    told: dict[str | None, list[_Candidate]] = defaultdict(list)
    for entry, cell in candidates:
        if entry.has_known_guards or not cell.has_guards:
            told[entry.guards].append((entry, cell))
    misses = sorted(
        ((at, cell) for cell in cells for at in cell.lookups if recorded.outcome[at] == MISS),
        key=lambda pair: pair[0],
    )
    for at, cell in misses:
        if at in nested:
            continue
        fitting = [told[None]]
        if at in own and own[at].has_known_guards and own[at].guards is not None:
            fitting.append(told[own[at].guards])
        after[at] = _outcome(candidates, fitting, at, cell, after)


def _outcome(
    candidates: Sequence[_Candidate],
    fitting: Sequence[Sequence[_Candidate]],
    at: int,
    cell: Cell,
    after: Outcomes,
) -> int:
    """What a lookup finds among entries in time order, some with guards that are known to hold."""
    # The entries of its own key did not fit: that was recorded.
    for some in fitting:
        for entry, theirs in some:
            if entry.since > at:
                break
            if theirs is not cell and at < entry.gone and (entry.source < 0 or after[entry.source] == MISS):
                return HIT
    for entry, theirs in candidates:
        if entry.since > at:
            break
        if theirs is not cell and at < entry.gone and (entry.source < 0 or after[entry.source] != HIT):
            return UNKNOWN
    return MISS
