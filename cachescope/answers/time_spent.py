"""Where the time of compiling went, process by process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from cachescope.analysis.phases.readings import readings_of_runs
from cachescope.answers.names import run_name
from cachescope.answers.rank_collectives import CollectivesApart, collectives_apart
from cachescope.answers.read import Read
from cachescope.answers.run_time import Besides, RunTime
from cachescope.answers.time_contrast import Contrast, Member, RanksWaited, members_of
from cachescope.columns import rows_of
from cachescope.frames.phases import PhaseRow
from cachescope.frames.recorded_rows import LookupRow, ProblemRow

_TRACING: Final = "bytecode_tracing"
_FRAME_COMPILE: Final = "entire_frame_compile"


@dataclass(frozen=True, slots=True, eq=False)
class TimeSpent:
    """Where the time of compiling went."""

    runs: tuple[RunTime, ...]  # the processes that have events
    without: tuple[str, ...]  # the names of the others
    members: tuple[Member, ...]  # what is compared: paths, if several were given; otherwise all processes
    contrast: Contrast | None  # the slowest of them beside the quickest; None where there are not two
    ranks: RanksWaited | None  # how long ranks waited for each other; None where there are not two
    apart: tuple[CollectivesApart, ...]  # functions that ranks compiled with different collectives
    problems: tuple[ProblemRow, ...]  # rows of problems: of reading, and of reading events

    @classmethod
    def of(cls, read: Read, paths: Sequence[str] = ()) -> Self:
        """Of everything that was read; `paths` are compared with each other if there are several."""
        phases = read.phases
        readings = readings_of_runs(rows_of(phases, PhaseRow), rows_of(read.lookups, LookupRow))
        sums = phases.groupby(["run", "phase"])["self_time_ns"].sum()
        events = phases.groupby("run")["event"].agg(set)
        rows = read.facts.runs
        runs = tuple(
            RunTime(
                run,
                rows[run].rank,
                run_name(rows[run]),
                {str(name): int(ns) for name, ns in sums[run].sort_values(ascending=False).items()},
                readings[run],
                Besides.of_run(rows[run], readings[run].total_ns),
                has_tracing=_TRACING in events[run] or _FRAME_COMPILE not in events[run],
                is_preflight=bool(rows[run].is_preflight),
            )
            for run in sorted(readings)
        )
        members = members_of(read, runs, paths)
        return cls(
            runs=runs,
            without=tuple(run_name(row) for run, row in rows.items() if run not in readings),
            members=members,
            contrast=Contrast.of_members(members),
            ranks=RanksWaited.of_runs(runs),
            apart=collectives_apart(read),
            problems=(*read.facts.problems, *rows_of(read.phase_problems, ProblemRow)),
        )
