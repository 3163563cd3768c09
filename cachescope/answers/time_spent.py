"""Where the time of compiling went, process by process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from cachescope.analysis.phases.readings import Readings, readings_of_runs
from cachescope.answers.names import run_name
from cachescope.answers.read import Read
from cachescope.columns import rows_of
from cachescope.frames.recorded_rows import ProblemRow

_TRACING: Final = "bytecode_tracing"
_FRAME_COMPILE: Final = "entire_frame_compile"


@dataclass(frozen=True, slots=True)
class RunTime:
    """The time of one process.

    Attributes
    ----------
    run : int
        Its number.
    name : str
        What it is called in a line.
    phases : dict
        The self time of each phase, in nanoseconds, the longest first; the values add up to ``readings.total_ns``.
    readings : Readings
        What hits could save of it, what stays, and what its hits saved.
    has_tracing : bool
        False if its torch compiled frames, and wrote no event for Dynamo's tracing.
    """

    run: int
    name: str
    phases: dict[str, int]
    readings: Readings
    has_tracing: bool


@dataclass(frozen=True, slots=True, eq=False)
class TimeSpent:
    """Where the time of compiling went.

    Attributes
    ----------
    runs : tuple of RunTime
        The processes that have events.
    without : tuple of str
        The names of the others.
    problems : tuple of dict
        Rows of problems: of reading, and of reading events.
    """

    runs: tuple[RunTime, ...]
    without: tuple[str, ...]
    problems: tuple[ProblemRow, ...]

    @classmethod
    def of(cls, read: Read) -> Self:
        """Of everything that was read."""
        phases = read.phases
        readings = readings_of_runs(phases, read.lookups)
        sums = phases.groupby(["run", "phase"])["self_time_ns"].sum()
        events = phases.groupby("run")["event"].agg(set)
        names = {run: run_name(row) for run, row in read.facts.runs.items()}
        return cls(
            runs=tuple(
                RunTime(
                    run,
                    names[run],
                    {str(name): int(ns) for name, ns in sums[run].sort_values(ascending=False).items()},
                    readings[run],
                    has_tracing=_TRACING in events[run] or _FRAME_COMPILE not in events[run],
                )
                for run in sorted(readings)
            ),
            without=tuple(name for run, name in names.items() if run not in readings),
            problems=(*read.facts.problems, *rows_of(read.phase_problems, ProblemRow)),
        )
