"""The frame ``phases``: the traces of all runs read for their events, swept and named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pandas as pd

from cachescope.analysis.phases.names import phase_of
from cachescope.analysis.phases.sweep import Place, Spent, Sweep
from cachescope.columns import records
from cachescope.errors import SourceError
from cachescope.frames.phases import PHASES
from cachescope.frames.recorded import PROBLEMS
from cachescope.readers.checked_file import well_formed
from cachescope.readers.json_record import MOST_NS_OF_A_DURATION
from cachescope.readers.logs.byte_source import Pieces, open_bytes, read_head
from cachescope.readers.logs.remote import is_address
from cachescope.readers.logs.trace_events import TraceEvents
from cachescope.readers.logs.trace_log import looks_like_trace_log
from cachescope.readers.reading import Problem
from cachescope.readers.stamps import Stamps, file_stamps

CHANGED: Final = "changed"
"""The kind of the problem of a trace that is another one than was read."""
NOT_NAMED: Final = "not named: "
# A job's log may begin with pages of other output before torch's first line.
_HEAD_BYTES: Final = 4 << 20
_named = lru_cache(4096)(phase_of)


@dataclass(frozen=True, slots=True, eq=False)
class PhasesRead:
    """What the events of traces tell.

    Attributes
    ----------
    phases : DataFrame
        See ``describe("phases")``.
    problems : DataFrame
        Events and traces that could not be read for it.
    """

    phases: pd.DataFrame
    problems: pd.DataFrame


def read_phases(runs: pd.DataFrame, stamped: Stamps) -> PhasesRead:
    """Read the traces of runs once more, for their events.

    Parameters
    ----------
    runs : DataFrame
        The frame runs.
    stamped : dict
        Size and time of their files when they were read. Of a trace that has grown since, only as much is read
        as there was then; one that changed otherwise is a problem.
    """
    problems: list[Problem] = []
    rows: list[dict[str, Any]] = []
    for run in records(runs, ("run", "sources", "pid")):
        said: list[Problem] = []
        for source in run["sources"]:
            # A process writes one trace; another one of the same run is a copy.
            if (spent := _spent(source, run["pid"], stamped, said)) is not None:
                rows += _rows(run["run"], spent)
                break
        problems += said
    return PhasesRead(
        PHASES.build(rows),
        PROBLEMS.build(
            {
                "source": well_formed(one.source),
                "where": one.where,
                "kind": one.kind,
                "message": well_formed(one.message),
            }
            for one in problems
        ),
    )


def _spent(
    source: str, pid: int | None, stamped: Stamps, problems: list[Problem]
) -> Mapping[Place, Spent] | None:
    """What the events of one source tell; None if it is no trace, or not the one that was read."""
    size = None
    try:
        if not is_address(source):
            before, now = stamped.get(source), file_stamps([source]).get(source)
            if now is None:
                raise SourceError(source, "is gone since it was read: its phases are not known", "missing")
            if before is not None and now != before:
                if now[0] <= before[0] or not _is_plain(source):
                    raise _changed(source)
                size = before[0]
        if not looks_like_trace_log(read_head(source, _HEAD_BYTES)):
            return None
        events, sweep = TraceEvents(source, size), Sweep()
        sweep.run(events)
        if None not in (pid, events.pid) and pid != events.pid:
            raise _changed(source)
    except SourceError as error:
        problems.append(Problem(source, "", error.kind, error.message))
        return None
    problems += events.problems
    return sweep.spent


def _changed(source: str) -> SourceError:
    return SourceError(source, "has changed since it was read: its phases are not known", CHANGED)


def _is_plain(source: str) -> bool:
    with open_bytes(source) as stream:
        return Pieces(stream).is_plain


def _rows(run: int, spent: Mapping[Place, Spent]) -> Iterator[dict[str, Any]]:
    for place, one in spent.items():
        phase = _named(place.event)
        yield {
            "run": run,
            "compile_id": place.compile_id,
            "segment": place.segment,
            "phase": f"{NOT_NAMED}{place.event}" if phase is None else phase.name,
            "event": place.event,
            "count": one.count,
            "unended": one.unended,
            # Far beyond any compile: a hostile trace. What was saved would not be read again.
            "time_ns": min(one.time_ns, MOST_NS_OF_A_DURATION),
            "self_time_ns": min(one.self_time_ns, MOST_NS_OF_A_DURATION),
            "is_skipped_by_hit": None if phase is None else phase.is_skipped_by_hit,
        }
