"""Splits a text log of one pid if traces show that several processes wrote it: in containers every process is pid 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from cachescope.readers.reading import Lookup, Process

_SAME_MOMENT_US = 250_000
# A process writes to its trace until it ends: its lookups in a text log are hardly outside the trace's time.
_SLACK_US = 1_000_000


def parts_by_trace(process: Process, traces: Sequence[Process]) -> list[Process]:
    """Split a process of a text log into the parts that traces of its pid distinguish.

    Traces count only if they were written one after the other, and if each records one of the lookups at the same
    moment: ranks that run at the same time may look alike.
    """
    if len(traces) < 2 or process.pid is None:
        return [process]
    may_be = [trace for trace in traces if trace.rank in (None, process.rank)]
    spans = sorted(_span(trace) for trace in may_be if _belongs_to(trace, process))
    if len(spans) < 2 or any(one[1] > other[0] for one, other in pairwise(spans)):
        return [process]
    parts: dict[int, list[Lookup]] = {}
    at = 0
    for lookup in process.lookups:
        clock = _clock(process, lookup)
        if clock is not None:
            inside = [
                n for n, (first, last) in enumerate(spans) if first - _SLACK_US <= clock <= last + _SLACK_US
            ]
            at = inside[0] if inside else at
        parts.setdefault(at, []).append(lookup)
    return [_part(process, lookups) for lookups in parts.values()]


def _span(trace: Process) -> tuple[int, int]:
    return trace.clock_first_us or 0, trace.clock_last_us or 0


def _clock(process: Process, lookup: Lookup) -> int | None:
    """When a lookup was made, on the clock that both logs of a process print."""
    if lookup.time_ns is None or process.start_time_ns is None or process.clock_first_us is None:
        return None
    return process.clock_first_us + (lookup.time_ns - process.start_time_ns) // 1000


def _belongs_to(trace: Process, process: Process) -> bool:
    moments: dict[tuple[str, str | None], list[int]] = {}
    for lookup in trace.lookups:
        for moment in (_clock(trace, lookup), _logged(trace, lookup)):
            if moment is not None:
                moments.setdefault((lookup.cache, lookup.cache_key), []).append(moment)
    return any(
        abs(mine - moment) <= _SAME_MOMENT_US
        for lookup in process.lookups
        for mine in (_clock(process, lookup), _logged(process, lookup))
        if mine is not None
        for moment in moments.get((lookup.cache, lookup.cache_key), ())
    )


def _logged(process: Process, lookup: Lookup) -> int | None:
    return None if lookup.logged_ns is None else _clock(process, replace(lookup, time_ns=lookup.logged_ns))


def _part(process: Process, lookups: list[Lookup]) -> Process:
    if len(lookups) == len(process.lookups):
        return process
    clocks = [clock for lookup in lookups if (clock := _clock(process, lookup)) is not None]
    times = [lookup.time_ns for lookup in lookups if lookup.time_ns is not None]
    return replace(
        process,
        lookups=lookups,
        clock_first_us=min(clocks, default=process.clock_first_us),
        clock_last_us=max(clocks, default=process.clock_last_us),
        start_time_ns=min(times, default=process.start_time_ns),
    )
