"""The starts that two sides are picked from: a process, or the ranks of a job; and which two are compared by default."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cachescope.analysis.history.history import program_of
from cachescope.analysis.rates import grouped, rates
from cachescope.analysis.verdicts.ranks import rank_differences
from cachescope.answers.difference import runs_below
from cachescope.answers.recording import Recording
from cachescope.errors import CachescopeError
from cachescope.frames.answer_rows import RankDifference, RateRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.table import Table

_UNKNOWN: Final = -1
# Jobs that may run beside each other.
_AT_ONCE: Final = 64

Sides = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class OneRun:
    """A process that looked something up."""

    row: RunRow
    program: str | None  # the script or module that was run; None if the command is unknown
    functions: frozenset[tuple[str, str]]  # what it compiled, as far as it is known
    lookups: Sequence[LookupRow]

    @property
    def folder(self) -> str:
        """The folder of its log."""
        return os.path.dirname(self.row.source)


@dataclass(frozen=True, slots=True)
class Start:
    """A process, or the ranks of a job that ran at the same time, in the order of ranks."""

    members: tuple[OneRun, ...]

    @property
    def runs(self) -> tuple[int, ...]:
        """Its runs."""
        return tuple(one.row.run for one in self.members)

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """Its ranks."""
        return tuple(one.row.rank for one in self.members)

    @property
    def start_time(self) -> int | None:
        """When the first of them began."""
        return min((time for one in self.members if (time := one.row.start_time) is not None), default=None)

    @property
    def end_time(self) -> int | None:
        """When the last of them ended."""
        return max((one.row.end_time for one in self.members if one.row.end_time is not None), default=None)

    @property
    def rate(self) -> RateRow:
        """How the lookups of all of them went."""
        return rates(row for one in self.members for row in one.lookups)

    def is_of_program_of(self, other: Start) -> bool:
        """Whether another start was of the same program and ranks, as far as is known."""
        one, another = self.members[0], other.members[0]
        if self.ranks != other.ranks:
            return False
        if one.program is not None and another.program is not None:
            return os.path.basename(one.program) == os.path.basename(another.program)
        # Text logs name no functions.
        return not one.functions or not another.functions or bool(one.functions & another.functions)


def starts_of(read: Recording) -> tuple[Start, ...]:
    """What was started, in the order of time; only what looked something up."""
    by_time = sorted(
        _runs(read),
        key=lambda one: (_UNKNOWN if one.row.start_time is None else one.row.start_time, one.row.run),
    )
    # First in each folder: two jobs may run at once. Nodes, or ranks, may have a folder each.
    starts = _jobs(_jobs([[one] for one in by_time], within=True), within=False)
    return tuple(Start(tuple(sorted(members, key=lambda one: one.row.rank or 0))) for members in starts)


def differing_ranks(read: Recording) -> Table[RankDifference]:
    """The fields in which some ranks of a job differ from the majority."""
    runs = read.tables.runs.rows
    if len({run.rank for run in runs if run.rank is not None}) < 2:
        return Table(RankDifference, [])
    starts = [start.runs for start in starts_of(read) if len(start.runs) > 1]
    job_of = {run: number for number, members in enumerate(starts) for run in members}
    return Table(RankDifference, rank_differences(read.settled.rows, runs, read.tables.hash_details, job_of))


def _jobs(parts: Iterable[list[OneRun]], *, within: bool) -> list[list[OneRun]]:
    """Processes in the order of time, those of one job together: those within one folder, or those of the nearest folders."""
    found, ranked = list[list[OneRun]](), list[list[OneRun]]()
    for part in parts:
        mates = [job for job in ranked[-_AT_ONCE:] if _is_of_job(part, job, within=within)]
        if mates:
            near = [len(os.path.commonprefix([part[0].folder, job[0].folder])) for job in mates]  # noqa: RUF071
            mates[near.index(max(near))].extend(part)
            continue
        found.append([*part])
        if part[0].row.rank is not None:
            ranked.append(found[-1])
    return found


def _runs(read: Recording) -> Iterator[OneRun]:
    facts = read.facts
    programs = {run.run: program_of(run) for run in read.history.runs}
    for (run,), lookups in grouped(facts.lookups.values(), lambda row: (row.run,)).items():
        functions = ((one.function, one.file) for one in lookups)
        known = frozenset((name, file) for name, file in functions if name is not None and file is not None)
        yield OneRun(facts.runs[run], programs[run], known, lookups)


def _is_of_job(part: Sequence[OneRun], job: Sequence[OneRun], *, within: bool) -> bool:
    """Whether processes are other ranks of a job: of one program, and begun before the others ended."""
    one, first = part[0], job[0]
    if one.row.rank is None or one.row.start_time is None:
        return False
    if one.program != first.program or (within and one.folder != first.folder):
        return False
    ranks = {other.row.rank for other in job}
    ends = [other.row.end_time for other in job if other.row.end_time is not None]
    return ranks.isdisjoint(row.row.rank for row in part) and one.row.start_time < max(ends, default=_UNKNOWN)


def first_sides(read: Recording, starts: Sequence[Start]) -> Sides | None:
    """What is compared before anything is picked; None where there are not two runs.

    The last start, and the previous one of the same program and ranks. If there is none: of the ranks of one job the
    two that differ most, else the last two starts.
    """
    if not starts:
        return None
    last = starts[-1]
    before = [one for one in starts[:-1] if one.is_of_program_of(last) and _has_ended(one, last)]
    if before:
        return before[-1].runs, last.runs
    if len(last.members) > 1:
        one, other = ranks_apart(read, last.members)
        return (one.row.run,), (other.row.run,)
    return (starts[-2].runs, last.runs) if len(starts) > 1 else None


def ranks_apart(read: Recording, ranks: Sequence[OneRun]) -> tuple[OneRun, OneRun]:
    """Two ranks: one with the most keys that most of the others have too, and one with the fewest; then by hit rate."""
    own = _keys_of_few(read, [one.row.run for one in ranks])
    rate = {one.row.run: rates(one.lookups).hit_rate or 0 for one in ranks}
    ordered = sorted(ranks, key=lambda one: (own[one.row.run], -rate[one.row.run], one.row.rank or 0))
    return ordered[0], ordered[-1]


def _keys_of_few(read: Recording, runs: Sequence[int]) -> Counter[int]:
    """How many keys each run has that no more than half of the runs have at the same place of the program."""
    at_place: dict[Hashable, set[int]] = defaultdict(set)
    with_key: dict[tuple[Hashable, str | None], set[int]] = defaultdict(set)
    for row in read.facts.lookups.values():
        if row.run in runs:
            place = row.cache, row.compile_id, row.direction
            at_place[place].add(row.run)
            with_key[place, row.cache_key].add(row.run)
    return Counter(
        run for (place, _), own in with_key.items() if 2 * len(own) <= len(at_place[place]) for run in own
    )


def sides_below(read: Recording, before: Iterable[str], after: Iterable[str]) -> Sides:
    """The runs of two recordings that were read together, by their sources."""
    looked_up = {row.run for row in read.facts.lookups.values()}
    sides = [
        {run for source in sources for run in runs_below(read, source)} & looked_up
        for sources in (before, after)
    ]
    if not all(sides):
        raise CachescopeError("one of the two recordings has no run that looked anything up")
    if sides[0] & sides[1]:
        raise CachescopeError("both recordings have the same runs")
    one, other = (tuple(sorted(side)) for side in sides)
    return one, other


def _has_ended(one: Start, later: Start) -> bool:
    return False if one.end_time is None or later.start_time is None else one.end_time <= later.start_time
