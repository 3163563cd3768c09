"""The frame ``phases``: the traces of all runs read for their events, swept and named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pandas as pd

from cachescope.analysis.phases.names import phase_of
from cachescope.analysis.phases.sweep import Place, Spent, Sweep
from cachescope.columns import frame_of
from cachescope.frames.phases import PhaseRow
from cachescope.readers.json_record import MOST_NS_OF_A_DURATION
from cachescope.readers.logs.trace_events import TraceEvents
from cachescope.readers.logs.traces_again import read_traces
from cachescope.readers.reading import Problem
from cachescope.readers.stamps import Stamps

NOT_NAMED: Final = "not named: "
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
        Size and time of their files when they were read: see `read_traces`.
    """
    read, problems = read_traces(runs, stamped, "its phases", _spent)
    return PhasesRead(frame_of((row for run, spent in read for row in _rows(run, spent)), PhaseRow), problems)


def _spent(path: str, size: int | None) -> tuple[Mapping[Place, Spent], list[Problem]]:
    events, sweep = TraceEvents(path, size), Sweep()
    sweep.run(events)
    return sweep.spent, events.problems


def _rows(run: int, spent: Mapping[Place, Spent]) -> Iterator[PhaseRow]:
    for place, one in spent.items():
        phase = _named(place.event)
        yield PhaseRow(
            run=run,
            compile_id=place.compile_id,
            segment=place.segment,
            phase=f"{NOT_NAMED}{place.event}" if phase is None else phase.name,
            event=place.event,
            count=one.count,
            unended=one.unended,
            # Far beyond any compile: a hostile trace. What was saved would not be read again.
            time_ns=min(one.time_ns, MOST_NS_OF_A_DURATION),
            self_time_ns=min(one.self_time_ns, MOST_NS_OF_A_DURATION),
            is_skipped_by_hit=None if phase is None else phase.is_skipped_by_hit,
        )
