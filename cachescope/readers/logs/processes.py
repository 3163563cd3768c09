"""One run per process, even if a trace and text logs describe the same process.

A trace and a text log of one process share pid and clock. Two containers may share a pid, so a lookup in both logs
also has to fall on the same moment.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Final

from cachescope.frames.recorded_rows import OF_ALL_LOGS, LookupRow
from cachescope.grouping import by_key
from cachescope.readers.logs.log_prefix import moment_ns, on_from
from cachescope.readers.logs.lookup_order import put_in_order
from cachescope.readers.logs.trace_compiles import tell_of_compiles
from cachescope.readers.reading import Process
from cachescope.terms import AOTAUTOGRAD, VLLM

_SLACK_US: Final = 60_000_000
_SAME_MOMENT_NS: Final = 250_000_000
# A process writes to its trace until it ends: its lookups in a text log are hardly outside the trace's time.
_SLACK_OF_TRACE_US: Final = 1_000_000
# What one log may tell of a lookup and another may not.
_NOT_FILLED: Final = ("time", "cache_key", *OF_ALL_LOGS)
_FILLED: Final = [f.name for f in fields(LookupRow) if f.default is None and f.name not in _NOT_FILLED]
# What a run has from whichever of its logs tells it first.
_OF_EITHER: Final = (
    "rank", "pid", "cache_dir", "gpus", "kernel_lookups", "command", "environment", "commit", "label", "filled_dir",
    "exit_status", "own_exit_status", "compiled",
)  # fmt: skip


def end_time_ns(process: Process) -> int | None:
    """Last record, nanoseconds since the epoch."""
    first, last, start = process.clock_first_us, process.clock_last_us, process.start_time
    return None if start is None or first is None or last is None else moment_ns(last, first, start)


def join_processes(processes: list[Process]) -> list[Process]:
    """Join the logs of each process into the first of them; runs are in time order, those without times last.

    Traces come first because they know the year. A lookup in several logs is counted once.
    """
    known = _Known()
    traces = [process for process in processes if process.kind == "trace"]
    of_pid = by_key((trace.pid, trace) for trace in traces)
    of_vllm = [process for process in processes if process.kind == VLLM]
    others = (process for process in processes if process.kind not in ("trace", VLLM))
    parts = (part for one in others for part in parts_by_trace(one, of_pid[one.pid]))
    for process in (*traces, *parts, *of_vllm):
        runs = known.runs_like(process)
        is_sure = len(of_pid[process.pid]) < 2
        apart = [_distance_ns(run, process, is_sure=is_sure) for run in runs]
        distances = [(distance, at) for at, distance in enumerate(apart) if distance is not None]
        if not distances:
            known.add(process)
        else:
            # Ranks in containers share pids and race for the same keys: the nearest moment decides.
            known.join(runs[min(distances)[1]], process)
    return sorted(known.runs, key=lambda r: (r.start_time is None, r.start_time or 0, r.rank or 0))


def parts_by_trace(process: Process, traces: Sequence[Process]) -> list[Process]:
    """Split a process of a text log into the parts that traces of its pid distinguish.

    Traces count only if they were written one after the other, and if each records one of the lookups at the same
    moment: ranks that run at the same time may look alike.
    """
    if len(traces) < 2 or process.pid is None:
        return [process]
    may_be = [one for one in traces if one.rank in (None, process.rank) and one.start_time is not None]
    spans = sorted(
        (trace.clock_first_us or 0, trace.clock_last_us or 0)
        for trace in may_be
        if any(one <= _SAME_MOMENT_NS for _, apart in _shared(trace, process) for one in apart)
    )
    if len(spans) < 2 or any(one[1] > other[0] for one, other in pairwise(spans)):
        return [process]
    parts: dict[int, list[LookupRow]] = {}
    at = 0
    for lookup in process.lookups:
        clock = process.clock_us(lookup.time)
        if clock is not None:
            slack = _SLACK_OF_TRACE_US
            inside = [n for n, (first, last) in enumerate(spans) if first - slack <= clock <= last + slack]
            at = inside[0] if inside else at
        parts.setdefault(at, []).append(lookup)
    return [_part(process, lookups) for lookups in parts.values()]


def _part(process: Process, lookups: list[LookupRow]) -> Process:
    if len(lookups) == len(process.lookups):
        return process
    clocks = [clock for lookup in lookups if (clock := process.clock_us(lookup.time)) is not None]
    times = [lookup.time for lookup in lookups if lookup.time is not None]
    part = replace(process, lookups=lookups, start_time=min(times, default=process.start_time))
    part.clock_first_us = min(clocks, default=process.clock_first_us)
    part.clock_last_us = max(clocks, default=process.clock_last_us)
    return part


class _Known:
    """The runs so far, by pid and rank: of thousands of ranks, only a few can match a log."""

    def __init__(self) -> None:
        self.runs: list[Process] = []
        self._places: dict[int | None, dict[int | None, list[int]]] = defaultdict(lambda: defaultdict(list))

    def add(self, run: Process) -> None:
        run.sources, run.kinds = (run.source,), {run.kind}
        self._places[run.pid][run.rank].append(len(self.runs))
        self.runs.append(run)

    def runs_like(self, process: Process) -> list[Process]:
        """The runs whose pid and rank do not contradict the process, in their order."""
        pids = list(self._places) if process.pid is None else [process.pid, None]
        by_rank = [self._places[pid] for pid in pids if pid in self._places]
        ranks = None if process.rank is None else (process.rank, None)
        found = [at for places in by_rank for rank in ranks or list(places) for at in places.get(rank, ())]
        return [self.runs[at] for at in sorted(found)]

    def join(self, run: Process, other: Process) -> None:
        """Add to a run what another log contains, such as the pid or the rank."""
        before = self._places[run.pid][run.rank]
        at = next(at for at in before if self.runs[at] is run)
        if other.kind == "trace":
            self.runs[at] = _longer_copy(run, other)
        else:
            _join(run, other)
        before.remove(at)
        self._places[self.runs[at].pid][self.runs[at].rank].append(at)


def _has_lines_of(run: Process, vllm: Process) -> bool:
    """Whether a run is the process of vLLM that wrote the same log under the same pid at the same time."""
    is_one = vllm.pid is not None and run.pid == vllm.pid and vllm.source in run.sources
    return is_one and VLLM not in run.kinds and _overlap(run, vllm)


def _distance_ns(run: Process, other: Process, *, is_sure: bool) -> int | None:
    """The smallest time between a run's and a log's record of one lookup; None if they are different processes.

    `is_sure` is False if several traces have the pid.
    """
    if other.kind == VLLM:
        return 0 if _has_lines_of(run, other) else None
    if other.source in run.sources:
        return None
    if _is_of_compiles(run) or _is_of_compiles(other):
        return 0 if run.pid is not None and run.pid == other.pid and _overlap(run, other) else None
    same_keys = _keys(run.lookups) == _keys(other.lookups)
    if other.kind == "trace":
        return 0 if _is_copy(run, other) else None
    if run.pid is None or other.pid is None:
        # A short log has neither pid nor time: the same keys in the same order must suffice, even if one log is cut.
        is_one = _is_part(run.lookups, other.lookups) or _is_part(other.lookups, run.lookups)
        return 0 if (same_keys or is_one) and other.kind not in run.kinds else None
    if not _overlap(run, other) or not (is_sure or _may_be_compiles_of_one(run.lookups, other.lookups)):
        return None
    return _moments_apart_ns(run, other)


def _is_of_compiles(process: Process) -> bool:
    """Whether a text log tells of compiles alone, as with ``TORCH_LOGS=recompiles``: it has no lookup by which another log of the process is known."""
    return process.kind == "text" and bool(process.compiled) and not process.lookups


def _is_copy(run: Process, trace: Process) -> bool:
    """Whether two traces are of one process: it writes one, but a copy may be older, or cut."""
    if (run.clock_first_us, run.start_time) != (trace.clock_first_us, trace.start_time):
        return False
    if run.start_time is None:
        return _keys(run.lookups) == _keys(trace.lookups)
    some, others = (
        {(one.cache, one.cache_key, one.outcome, one.logged_time) for one in lookups}
        for lookups in (run.lookups, trace.lookups)
    )
    return some <= others or others <= some


def _keys(lookups: list[LookupRow]) -> list[tuple[str, str | None, str]]:
    return [(lookup.cache, lookup.cache_key, lookup.outcome) for lookup in lookups]


def _is_part(part: list[LookupRow], whole: list[LookupRow]) -> bool:
    """Whether `whole` contains all lookups of `part` in their order; an unknown outcome matches any."""
    rest = iter(whole)
    return bool(part) and all(any(_may_be_one(one, other) for other in rest) for one in part)


def _may_be_one(one: LookupRow, other: LookupRow) -> bool:
    is_seen = "unknown" not in (one.outcome, other.outcome)
    is_same = not is_seen or one.outcome == other.outcome
    return (one.cache, one.cache_key) == (other.cache, other.cache_key) and is_same


def _may_be_compiles_of_one(some: list[LookupRow], others: list[LookupRow]) -> bool:
    """Whether a key of `some` is among `others`, or no compile of `some` looked up a different key there."""
    of_compile: dict[tuple[str, str | None], set[str | None]] = defaultdict(set)
    for lookup in others:
        of_compile[lookup.cache, lookup.compile_id].add(lookup.cache_key)
    found = [(lookup.cache_key, of_compile.get((lookup.cache, lookup.compile_id))) for lookup in some]
    shared = [key in keys for key, keys in found if key is not None and keys is not None]
    return any(shared) or not shared


def _overlap(a: Process, b: Process) -> bool:
    if a.clock_first_us is None or a.clock_last_us is None:
        return False
    if b.clock_first_us is None or b.clock_last_us is None:
        return False
    # One of them may have begun past New Year.
    began = on_from(b.clock_first_us, a.clock_first_us)
    ended = began + on_from(b.clock_last_us, b.clock_first_us) - b.clock_first_us
    a_ended = on_from(a.clock_last_us, a.clock_first_us)
    return a.clock_first_us - _SLACK_US <= ended and began - _SLACK_US <= a_ended


def _shift_ns(to: Process, of: Process) -> int:
    """What to add to the times of one log to match the other: both print the same clock."""
    if to.start_time is None or to.clock_first_us is None:
        return 0
    if of.start_time is None or of.clock_first_us is None:
        return 0
    return moment_ns(of.clock_first_us, to.clock_first_us, to.start_time) - of.start_time


def _shared(run: Process, other: Process) -> Iterator[tuple[LookupRow, list[int]]]:
    """The lookups of a log that a run has as well, each with the times between their moments."""
    shift = _shift_ns(run, other)
    recorded = ((one, time) for one in run.lookups for time in _moments(one))
    times = by_key(((one.cache, one.cache_key), time) for one, time in recorded)
    for lookup in other.lookups:
        if known := times.get((lookup.cache, lookup.cache_key)):
            yield lookup, [abs(at + shift - time) for at in _moments(lookup) for time in known]


def _moments_apart_ns(run: Process, other: Process) -> int | None:
    shift, shared = _shift_ns(run, other), [*_shared(run, other)]
    if not shared:
        if _began_in(run, _ended_by_exception(run, other), shift) or _were_cut_short(run, other):
            return _SAME_MOMENT_NS
        return _SAME_MOMENT_NS if _may_tell_of_other_moments(run, other, shift) else None
    nearest = min((one for _, apart in shared for one in apart), default=_SAME_MOMENT_NS)
    if nearest <= _SAME_MOMENT_NS:
        return nearest
    # A trace records the end of an AOTAutograd hit; this log has lost that line.
    is_line_lost = _began_in(run, [x for x, _ in shared if x.outcome == "unknown"], shift)
    return _SAME_MOMENT_NS if is_line_lost else None


def _ended_by_exception(run: Process, other: Process) -> list[LookupRow]:
    """Lookups of a text log that the run's trace records as bypasses, without their key: see `_bypass_of`."""
    bypassed = {one.compile_id for one in run.lookups if (one.cache, one.outcome) == (AOTAUTOGRAD, "bypass")}
    unknown = [one for one in other.lookups if (one.cache, one.outcome) == (AOTAUTOGRAD, "unknown")]
    return [one for one in unknown if one.compile_id in bypassed]


def _were_cut_short(run: Process, other: Process) -> bool:
    """Whether all lookups of a text log fall into compiles that a trace records without such a lookup.

    torch records a graph after its compile, and nothing if the compile failed or was interrupted.
    """
    if run.kind != "trace" or not other.lookups:
        return False
    recorded = {(one.cache, one.compile_id) for one in run.lookups}
    return all(
        (at_us := other.clock_us(lookup.time)) is not None
        and (lookup.cache, lookup.compile_id) not in recorded
        and any(
            one.compile_id == lookup.compile_id
            and one.began_us is not None
            and one.began_us <= at_us <= (one.ended_us or run.clock_last_us or 0)
            for one in run.compiles
        )
        for lookup in other.lookups
    )


def _may_tell_of_other_moments(run: Process, other: Process, shift: int) -> bool:
    """Whether a log that shares no lookup with a run may still belong to it: a trace records all lookups of its time."""
    if not run.lookups or not other.lookups:
        return True
    if run.kind != "trace" or end_time_ns(run) is None:
        return False
    return not _began_in(run, [lookup for lookup in other.lookups if lookup.cache_key is not None], shift)


def _began_in(run: Process, lookups: list[LookupRow], shift: int) -> bool:
    """Whether one of these lookups of another log falls into the time that the run's trace covers."""
    start, end = run.start_time, end_time_ns(run)
    if run.kind != "trace" or start is None or end is None:
        return False
    return any(lookup.time is not None and start <= lookup.time + shift <= end for lookup in lookups)


def _longer_copy(run: Process, copy: Process) -> Process:
    """The longer of two traces of one process: it has all that is in the other. Its source comes first."""
    rank = run.rank if run.rank is not None else copy.rank
    if _size(copy) > _size(run):
        copy.sources, copy.kinds = (copy.source, *run.sources), run.kinds
        run = copy
    else:
        run.sources += (copy.source,)
    run.rank = rank
    return run


def _size(trace: Process) -> tuple[int, int, bool]:
    """How much of its process a trace has."""
    first, last = trace.clock_first_us, trace.clock_last_us
    ended_us = 0 if first is None or last is None else on_from(last, first)
    return len(trace.lookups), ended_us, not trace.is_cut


def _join(run: Process, other: Process) -> None:
    if _is_of_compiles(other) and "trace" in run.kinds:
        # The trace has them all.
        return
    if other.source not in run.sources:
        run.sources += (other.source,)
    run.kinds.add(other.kind)
    for name in _OF_EITHER:
        if getattr(run, name) in (None, "", (), []):
            setattr(run, name, getattr(other, name))
    if run.command_start_time is None:
        run.command_start_time, run.command_end_time = other.command_start_time, other.command_end_time
    run.is_cut |= other.is_cut
    shift = _shift_ns(run, other)
    for lookup in other.lookups:
        if lookup.time is not None:
            lookup.time += shift
    added = list(_not_in(run.lookups, other.lookups))
    tell_of_compiles(run, added)
    run.lookups = put_in_order(run.lookups + added) if added else run.lookups
    run.looked_up = run.looked_up or bool(other.lookups)


def _not_in(known: Sequence[LookupRow], others: Sequence[LookupRow]) -> Iterator[LookupRow]:
    """Fill what one log knows of lookups from another one, in which some are lost; yield those that only the other one has."""
    # A log whose format is short has no compile ids.
    have_ids = all(any(row.compile_id for row in rows) for rows in (known, others))

    def name(row: LookupRow, key: str | None) -> tuple[str, str | None, str | None]:
        return row.cache, key, row.compile_id if have_ids else None

    same_of: dict[object, deque[LookupRow]] = defaultdict(deque)
    waiting: dict[object, deque[LookupRow]] = defaultdict(deque)
    for rows, of_name in ((known, same_of), (others, waiting)):
        for row in rows:
            of_name[name(row, row.cache_key)].append(row)
    for lookup in others:
        same, later = same_of[name(lookup, lookup.cache_key)], waiting[name(lookup, lookup.cache_key)]
        later.popleft()
        while len(same) > 1 and _apart_ns(same[1], lookup) < _apart_ns(same[0], lookup):
            same.popleft()
        is_of_later = 0 < len(same) <= len(later) and _apart_ns(same[0], later[0]) < _apart_ns(
            same[0], lookup
        )
        if same and not is_of_later:
            _fill(same.popleft(), lookup)
        elif (bypass := _bypass_of(lookup, same_of[name(lookup, None)])) is not None:
            _fill(bypass, lookup)
        else:
            yield lookup


def _bypass_of(lookup: LookupRow, bypasses: deque[LookupRow]) -> LookupRow | None:
    """Remove and return the bypass that records a lookup without an outcome in the text log; None if there is none.

    If an exception ends an AOTAutograd lookup, torch forgets the key and records a bypass. The text log
    has the key: autograd_cache.py, `AOTAutogradCache.try_load`, 2.10 to 2.15.
    """
    if lookup.cache != AOTAUTOGRAD or lookup.outcome != "unknown":
        return None
    for at, bypass in enumerate(bypasses):
        if (bypass.outcome, bypass.compile_id) == ("bypass", lookup.compile_id):
            del bypasses[at]
            return bypass
    return None


def _apart_ns(one: LookupRow, other: LookupRow) -> int:
    """The smallest time between two logs' records of a lookup."""
    return min((abs(t - o) for t in _moments(one) for o in _moments(other)), default=0)


def _moments(lookup: LookupRow) -> list[int]:
    return [moment for moment in (lookup.time, lookup.logged_time) if moment is not None]


def _fill(lookup: LookupRow, other: LookupRow) -> None:
    """Fill the gaps of a lookup from another log."""
    for name in _FILLED:
        if getattr(lookup, name) is None:
            setattr(lookup, name, getattr(other, name))
    is_coarse = lookup.outcome == "full_miss" and lookup.status_detailed is None
    if lookup.outcome == "unknown" or (is_coarse and other.outcome != "unknown"):
        lookup.outcome = other.outcome
    lookup.is_details_cut |= other.is_details_cut
    # A text log has the start of a lookup, a trace its end.
    if other.time is not None:
        lookup.time = min(other.time, lookup.time or other.time)
