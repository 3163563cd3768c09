"""Where compile time went, process by process, what the slowest of several spent longer on, and which collectives of ranks differ."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from cachescope.analysis.phases.frame import Readings, readings_of_runs, self_times
from cachescope.analysis.phases.names import ENTIRE_FRAME, WAITING_FOR_RANKS
from cachescope.analysis.rates import known_sum
from cachescope.answers.difference import runs_below
from cachescope.answers.facts import Facts
from cachescope.answers.names import place_name, run_name, runs_name
from cachescope.answers.recording import Recording
from cachescope.answers.starts import Start, starts_of
from cachescope.answers.vllm import Started, starts_of_vllm
from cachescope.frames.compile_rows import CompileRow
from cachescope.frames.recorded_rows import ProblemRow, RunRow
from cachescope.grouping import by_key
from cachescope.notebook_cells import code_file
from cachescope.wording import short_names

_TRACING: Final = "bytecode_tracing"
_BACKWARD: Final = "backward"
# Not a collective; each rank's scheduler decides where it goes.
_WAITS: Final = re.compile(r"\bwait_tensor\b")

_Where = tuple[bool, str, str, int | None, str, int]


@dataclass(frozen=True, slots=True)
class Besides:
    """The time outside of compiles, which no event covers."""

    # From the start of the command to the first record of the log; None if `cachescope record` did not record
    # it.
    before_ns: int | None = None
    # Between the first and the last record, outside of all events; None if the log has no times.
    between_ns: int | None = None
    # From the last record to the end of the command; None as for `before_ns`, or if it still runs.
    after_ns: int | None = None

    @classmethod
    def of_run(cls, row: RunRow, total_ns: int) -> Self:
        """Of a process whose events cover so much time."""
        if row.start_time is None or row.end_time is None:
            return cls()
        return cls(
            _passed(row.command_start_time, row.start_time),
            _passed(row.start_time + total_ns, row.end_time),
            _passed(row.end_time, row.command_end_time),
        )


def _passed(since: int | None, until: int | None) -> int | None:
    """The time from one moment to another; none passed where clocks that differ a little have them the other way round."""
    return None if since is None or until is None else max(0, until - since)


@dataclass(frozen=True, slots=True)
class RunTime:
    """The time of one process."""

    run: int  # its number
    rank: int | None  # its rank in a distributed job
    name: str  # what it is called in a line
    # The self time of each phase, in nanoseconds, the longest first; the values add up to
    # ``readings.total_ns``.
    phases: dict[str, int]
    readings: Readings  # what hits could save of it, what stays, and what its hits saved
    besides: Besides  # what passed besides
    has_tracing: bool  # false if its torch compiled frames, and wrote no event for Dynamo's tracing
    # Whether these are the times of a pre-flight, which says nothing of those of a real run.
    is_preflight: bool = False
    has_lookups: bool = True  # whether a lookup of it is recorded: otherwise nothing says what it could find
    of: int = 1  # how many processes are added up
    machine: str = ""  # its cores and limits; empty if not recorded
    # The path that it represents beside others; None if every process represents itself.
    path: str | None = None
    of_path: int = 1  # how many processes of the path have events: it is the slowest of them

    @property
    def could_save_ns(self) -> int | None:
        """What hits could still save; None of a pre-flight, which compiled nothing, and where no lookup is recorded."""
        return self.readings.could_save_ns if self.has_lookups and not self.is_preflight else None

    @property
    def stays_ns(self) -> int | None:
        """What stays even if everything hits; None as for `could_save_ns`."""
        return None if self.could_save_ns is None else self.readings.stays_ns


@dataclass(frozen=True, slots=True)
class Contrast:
    """The slowest of several processes beside another one."""

    slower: RunTime  # the one that took longest
    other: RunTime  # the one that took least
    of: int  # how many there are
    longer_ns: int  # how much longer the slower one took
    # How much longer it took in each phase, the largest first, those where it took less below zero; they add
    # up to `longer_ns`.
    phases: dict[str, int]
    is_of_start: bool = False  # whether they are the ranks of one start among several processes

    @classmethod
    def of_members(cls, members: Sequence[RunTime], starts: Iterable[Start] = ()) -> Self | None:
        """Of the slowest and the quickest; None where there are not two. Ranks of another start began from another cache."""
        if len(members) < 2:
            return None
        ordered = sorted(members, key=lambda one: one.readings.total_ns)
        of_start = next((start.runs for start in starts if ordered[-1].run in start.runs), ())
        mates = [one for one in ordered if one.run in of_start and one.path is None]
        is_of_start = 1 < len(mates) < len(members)
        other, slower = mates[0] if is_of_start else ordered[0], ordered[-1]
        longer = phase_differences(other.phases, slower.phases)
        of = len(mates) if is_of_start else len(members)
        return cls(slower, other, of, sum(longer.values()), longer, is_of_start)


@dataclass(frozen=True, slots=True)
class RanksWaited:
    """How long ranks waited for each other, as far as events show it."""

    # By run, the time in the events in which ranks agree; a run without such an event is not in it.
    waited_ns: dict[int, int]
    # The one that waited far less than another, so that the others waited for it: who comes last does not
    # wait. None unless each rank is one process, and all have such an event.
    last: RunTime | None

    @classmethod
    def of_runs(cls, runs: Iterable[RunTime]) -> Self | None:
        """Of the processes that have a rank; None unless there are two ranks."""
        ranked = [one for one in runs if one.rank is not None]
        if len({one.rank for one in ranked}) < 2:
            return None
        waited = {one.run: one.phases[WAITING_FOR_RANKS] for one in ranked if WAITING_FOR_RANKS in one.phases}
        # If a job ran twice, ranks of one run would be compared with those of another.
        is_one_job = len({one.rank for one in ranked}) == len(ranked) == len(waited)
        if not is_one_job or 2 * min(waited.values()) > max(waited.values()):
            return cls(waited, None)
        return cls(waited, min(ranked, key=lambda one: waited[one.run]))


def phase_differences(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """How much longer each phase took after than before, the largest first.

    Examples
    --------
    >>> phase_differences({"loading": 5, "guards": 1}, {"guards": 4})
    {'guards': 3, 'loading': -5}
    """
    names = dict.fromkeys([*after, *before])
    longer = {name: after.get(name, 0) - before.get(name, 0) for name in names}
    return dict(sorted(longer.items(), key=lambda item: -item[1]))


def members_of(read: Recording, runs: Sequence[RunTime], paths: Sequence[str]) -> tuple[RunTime, ...]:
    """What is compared: the slowest process of each path if several paths have processes with events, otherwise every process."""
    timed = {one.run: one for one in runs}
    sides = []
    for path in dict.fromkeys(paths) if len(paths) > 1 else ():
        below = [timed[run] for run in runs_below(read, path) if run in timed]
        if below:
            slowest = max(below, key=lambda one: one.readings.total_ns)
            sides.append(replace(slowest, path=path, of_path=len(below)))
    apart = len({one.run for one in sides}) == len(sides) > 1
    return tuple(sides if apart else runs)


def _alike(runs: Sequence[RunTime], facts: Facts) -> Iterator[RunTime]:
    """Processes of one command for which hits could save something, or nothing, as one; those that could save most first."""
    groups = by_key(
        ((facts.runs[one.run].label, one.is_preflight, one.has_lookups, one.could_save_ns and True), one)
        for one in runs
    )
    sums = []
    for mine in groups.values():
        parts = zip(*(one.readings for one in mine), strict=True)
        sums.append((mine, Readings(*map(known_sum, parts))))  # type: ignore[arg-type]
    for mine, together in sorted(sums, key=lambda group: (-group[1].could_save_ns, -group[1].total_ns)):
        if len(mine) == 1:
            yield from mine
            continue
        name, traced = runs_name(facts, [one.run for one in mine]), all(one.has_tracing for one in mine)
        yield replace(
            mine[0],
            name=f"{name} together",
            phases=dict(sum((Counter(one.phases) for one in mine), Counter[str]())),
            readings=together,
            besides=Besides(),
            has_tracing=traced,
            of=len(mine),
        )


@dataclass(frozen=True, slots=True, eq=False)
class TimeSpent:
    """Where the time of compiling went."""

    runs: tuple[RunTime, ...]  # the processes that have events
    alike: tuple[RunTime, ...]  # the same, those of one command that went alike added up
    without: tuple[str, ...]  # the names of the others
    members: tuple[RunTime, ...]  # what is compared: paths, if several were given; otherwise all processes
    contrast: Contrast | None  # the slowest of them beside the quickest; None where there are not two
    ranks: RanksWaited | None  # how long ranks waited for each other; None where there are not two
    apart: tuple[CollectivesApart, ...]  # functions that ranks compiled with different collectives
    problems: tuple[ProblemRow, ...]  # rows of problems: of reading, and of reading events
    starts: tuple[Started, ...] = ()  # what vLLM's own logs say

    @classmethod
    def of(cls, read: Recording, paths: Sequence[str] = ()) -> Self:
        """Of everything that was read; `paths` are compared with each other if there are several."""
        phases, rows = read.phases_read[0].rows, read.facts.runs
        readings = readings_of_runs(phases, read.facts.lookups.values())
        looked_up = {row.run for row in read.facts.lookups.values()}
        of_run = by_key((phase.run, phase) for phase in phases)
        events = {run: {phase.event for phase in mine} for run, mine in of_run.items()}
        runs = tuple(
            RunTime(
                run,
                rows[run].rank,
                run_name(read.facts, run),
                self_times(of_run[run]),
                readings[run],
                Besides.of_run(rows[run], readings[run].total_ns),
                has_tracing=_TRACING in events[run] or ENTIRE_FRAME not in events[run],
                is_preflight=rows[run].is_preflight,
                has_lookups=run in looked_up,
                machine=read.facts.machines.get(run, ""),
            )
            for run in sorted(readings)
        )
        members = members_of(read, runs, paths)
        return cls(
            runs=runs,
            alike=tuple(_alike(runs, read.facts)),
            without=tuple(run_name(read.facts, run) for run in rows if run not in readings),
            members=members,
            contrast=Contrast.of_members(members, starts_of(read)),
            ranks=RanksWaited.of_runs(runs),
            apart=collectives_apart(read),
            problems=(*read.tables.problems.rows, *read.phases_read[1]),
            starts=starts_of_vllm(read),
        )


@dataclass(frozen=True, slots=True)
class CollectivesApart:
    """One compile of one function that ranks made with different collectives."""

    place: str  # ``forward (model.py:88)``
    compile_id: str
    is_backward: bool  # whether it is the backward graph, compiled by itself
    # The collectives in their order, as torch names them, and the ranks that compiled it with these.
    of_ranks: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]


# A schedule is compared only where it is known to be whole: torch/_inductor/debug.py, `log_collective_schedule`, writes that of
# each graph with collectives that Inductor compiles, and nothing of graphs from a cache. Ranks may differ rightly, as the stages
# of a pipeline do.
def collectives_apart(read: Recording) -> tuple[CollectivesApart, ...]:
    """Of all ranks that were read; nothing unless there are two, and each is one process."""
    ranks = {run: row.rank for run, row in read.facts.runs.items() if row.rank is not None}
    if len(ranks) < 2 or len(set(ranks.values())) < len(ranks):
        # If a job ran twice, ranks of one run would be compared with those of another.
        return ()
    compiles = read.compiles_read[0].rows
    records = _runs_that_record(read, compiles)
    found: dict[_Where, dict[int, CompileRow]] = defaultdict(dict)
    for row in compiles:
        if row.run in ranks and row.run in records and _is_whole(row) and (where := _where(row)) is not None:
            found[where][ranks[row.run]] = row
    files = short_names(row.file for row in compiles if row.file is not None)
    every = (_apart(of_rank, files) for of_rank in found.values())
    return tuple(one for one in every if one is not None)


def _runs_that_record(read: Recording, compiles: Sequence[CompileRow]) -> set[int]:
    """The processes whose torch records collectives: it did, or another process did with the same version."""
    runs = read.facts.runs
    some = {row.run for row in compiles if row.collectives}
    versions = {runs[run].torch_version for run in some} - {None}
    return some | {run for run, row in runs.items() if row.torch_version in versions}


def _is_whole(row: CompileRow) -> bool:
    """Whether Inductor compiled all of it: nothing came from a cache, and it ended well."""
    return row.error is None and row.time_taken_ns is not None and bool(row.lookups) and row.hits == 0


def _where(row: CompileRow) -> _Where | None:
    file = code_file(row.file)
    if row.function is None or file is None or not row.segment:
        return None
    return row.kind == _BACKWARD, row.function, file, row.line, row.compile_id, row.segment


def _apart(of_rank: dict[int, CompileRow], files: dict[str, str]) -> CollectivesApart | None:
    ranks = by_key(
        (tuple(name for name in row.collectives if not _WAITS.search(name)), rank)
        for rank, row in sorted(of_rank.items())
    )
    if len(ranks) < 2:
        return None
    row = next(iter(of_rank.values()))
    of_ranks = tuple((names, tuple(some)) for names, some in ranks.items())
    return CollectivesApart(place_name(row, files) or "", row.compile_id, row.kind == _BACKWARD, of_ranks)
