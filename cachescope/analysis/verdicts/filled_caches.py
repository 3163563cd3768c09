"""Whether a run's cache held something before a lookup: a graph that is new then is no cold start."""

from __future__ import annotations

from cachescope.analysis.history.history import History
from cachescope.terms import VLLM


def filled_since(history: History) -> dict[int, int]:
    """For each run that found in torch's caches what another process had stored: the lookup from which on that is known.

    Only a run's own hits show it. What others stored may lie on another machine, also under the same path.
    """
    lookups, end = history.lookups, history.timeline.end
    began: dict[int, int] = {}
    before: dict[int, int] = {}
    found: dict[int, int] = {}
    for at, (row, key) in enumerate(zip(lookups, history.key, strict=True)):
        began.setdefault(row.run, at)
        if key is None or row.cache == VLLM:
            continue
        earlier = before.get(key)
        before[key] = at
        if row.outcome != "hit":
            continue
        if earlier is None:
            found.setdefault(row.run, at)
        elif lookups[earlier].run != row.run:
            ended, begin = end[earlier], lookups[began[row.run]].time
            if ended is not None and begin is not None and ended < begin:
                # It was there when the run began.
                found[row.run] = -1
    return found
