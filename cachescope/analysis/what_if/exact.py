"""Decides the misses of groups that are not plain: each by what its group needs."""

from __future__ import annotations

import numpy as np

from cachescope.analysis.what_if.entries import Entries
from cachescope.analysis.what_if.guard_groups import Misses, decide_groups
from cachescope.analysis.what_if.guard_walk import walk
from cachescope.analysis.what_if.members import Members
from cachescope.analysis.what_if.recorded import NEVER, Outcomes, Positions


def decide(misses: Misses, entries: Entries, group: Positions) -> Outcomes:
    """The outcome of each miss."""
    count = int(max(misses.group.max(initial=-1), group.max(initial=-1))) + 1
    was_removed = np.zeros(count, dtype=bool)
    was_removed[group[entries.gone < NEVER]] = True
    is_closed, of_closed = ~was_removed[misses.group], ~was_removed[group]
    found = np.empty(len(misses.at), dtype=np.int8)
    found[is_closed] = decide_groups(misses.take(is_closed), entries.take(of_closed), group[of_closed])
    in_time = np.argsort(misses.at)
    misses_of = Members(in_time, misses.group[in_time], count)
    entries_of = Members(np.arange(len(group)), group, count)
    for number in np.flatnonzero(was_removed):
        mine, _ = misses_of.of(np.array([number]))
        theirs, _ = entries_of.of(np.array([number]))
        found[mine] = walk(misses.take(mine), entries.take(theirs))
    return found
