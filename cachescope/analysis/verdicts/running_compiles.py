"""Which compiles of other processes were still running when a lookup was made: it could not find what they would store."""

from __future__ import annotations

from cachescope.analysis.history.history import History, is_miss


def was_running(history: History, one: int, at: int) -> bool:
    """Whether another process had not finished the compile after a miss when a lookup was made."""
    before, row = history.lookups[one], history.lookups[at]
    if before.run == row.run or row.time is None or not is_miss(before):
        return False
    end = history.timeline.end[one]
    return end is not None and end > row.time


def is_seen_running(history: History, one: int, at: int) -> bool:
    """Whether it is recorded that a compile went on after a lookup; an end that is not recorded is estimated elsewhere."""
    time, last_seen = history.lookups[at].time, history.timeline.last_seen[one]
    return time is not None and last_seen is not None and last_seen > time
