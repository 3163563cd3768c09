"""What each process did when, in the trace event format, which ui.perfetto.dev, chrome://tracing and speedscope open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cachescope.analysis.phases.names import inferred_phase, phase_of
from cachescope.answers.names import cache_name, place_name, run_name
from cachescope.answers.recording import Recording
from cachescope.frames.recorded_rows import LookupRow, ProblemRow
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.readers.logs.second_pass import TraceEvent, TraceEvents, read_traces


class Slice(NamedTuple):
    """Something that took its time."""

    start_ns: int
    end_ns: int
    name: str
    kind: str
    more: JsonObject


def trace_object(read: Recording) -> JsonObject:
    """The events of all runs as the format has them; what cannot be read of a trace is among the problems of `time`.

    A process is a run, in the order of ranks. It has a row of lookups, from the question to the answer or to the end of the compile, and
    one of torch's events with their phases; where threads overlap it has several, for viewers need slices of a row to nest.
    """
    runs = read.facts.runs
    lookups = by_key(
        (row.run, _of_lookup(read, row)) for row in read.facts.lookups.values() if row.time is not None
    )
    events, _ = read_traces(runs.values(), read.tables.stamps, "its events", _slices)
    rows = [(run, "cache lookups", row) for run, slices in lookups.items() for row in nested(slices)]
    rows += [(run, "torch", row) for run, slices in events for row in nested(slices)]
    began = min((one.start_ns for _, _, row in rows for one in row), default=0)
    made: list[JsonObject] = []
    for run in dict.fromkeys(run for run, _, _ in rows):
        rank = runs[run].rank
        made += [
            _named("process_name", run, 1, {"name": run_name(read.facts, run)}),
            _named("process_sort_index", run, 1, {"sort_index": run if rank is None else rank}),
        ]
    for thread, (run, name, row) in enumerate(rows, 1):
        made.append(_named("thread_name", run, thread, {"name": name}))
        made += (
            {
                "ph": "X", "pid": _process(run), "tid": thread, "name": one.name, "cat": one.kind,
                # Microseconds, as the format has it.
                "ts": (one.start_ns - began) / 1000, "dur": (one.end_ns - one.start_ns) / 1000, "args": one.more,
            }
            for one in row
        )  # fmt: skip
    return {"displayTimeUnit": "ms", "traceEvents": made}


def _process(run: int) -> int:
    # Perfetto takes 0, of a process or of a thread, for the idle one.
    return run + 1


def _named(what: str, run: int, thread: int, more: JsonObject) -> JsonObject:
    return {"ph": "M", "pid": _process(run), "tid": thread, "name": what, "args": more}


def _of_lookup(read: Recording, row: LookupRow) -> Slice:
    assert row.time is not None
    miss = read.facts.misses.get(row.lookup)
    more: JsonObject = {
        "lookup": row.lookup, "key": row.cache_key, "compile": row.compile_id, "function": place_name(row, read.facts.files),
        "reason": None if miss is None else miss.reason,
    }  # fmt: skip
    end = row.time if row.end_time is None else max(row.end_time, row.time)
    return Slice(row.time, end, f"{cache_name(row)} {row.outcome}", row.cache, more)


def _slices(path: str, size: int | None) -> tuple[list[Slice], list[ProblemRow]]:
    events = TraceEvents(path, size)
    return list(_closed(events)), events.problems


def _closed(events: Iterable[TraceEvent]) -> Iterator[Slice]:
    """Each event from its begin to its end; one that the trace has no end of, until the last one."""
    opened: dict[str, list[tuple[TraceEvent, str]]] = defaultdict(list)
    above: list[str] = []
    now = 0
    for event in events:
        now = max(now, event.time_ns)
        if event.is_begin:
            opened[event.name].append((event, inferred_phase(event.name, above[-1] if above else "")))
            above.append(event.name)
        elif opened[event.name]:
            yield _slice(*opened[event.name].pop(), event.time_ns)
            del above[len(above) - 1 - above[::-1].index(event.name)]
    for left in opened.values():
        yield from (_slice(*one, now) for one in left)


def _slice(event: TraceEvent, inferred: str, end_ns: int) -> Slice:
    phase = phase_of(event.name, inferred)
    kind = "not named" if phase is None else phase.name
    more: JsonObject = {"compile": event.compile_id, "phase": kind}
    return Slice(event.time_ns, max(end_ns, event.time_ns), event.name, kind, more)


def nested(slices: Iterable[Slice]) -> list[list[Slice]]:
    """The slices in as few rows as it takes for those of a row to nest: threads of one process overlap.

    Examples
    --------
    >>> one, two, three = (Slice(*ends, "", "", {}) for ends in ((0, 4), (1, 3), (2, 5)))
    >>> nested([three, one, two]) == [[one, two], [three]]
    True
    """
    rows: list[list[Slice]] = []
    ends: list[list[int]] = []  # of what is open in each row
    for one in sorted(slices, key=lambda one: (one.start_ns, -one.end_ns)):
        for opened in ends:
            while opened and opened[-1] <= one.start_ns:
                opened.pop()
        fits = (at for at, opened in enumerate(ends) if not opened or one.end_ns <= opened[-1])
        at = next(fits, len(rows))
        if at == len(rows):
            rows.append([])
            ends.append([])
        rows[at].append(one)
        ends[at].append(one.end_ns)
    return rows
