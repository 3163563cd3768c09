"""Compares runs with other runs: which of their lookups hit on one side only, what differs between their keys, and the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.phases.frame import self_times
from cachescope.analysis.rates import grouped, rates
from cachescope.answers.aligned_lookups import CHANGES, Aligned, Change, aligned_lookups
from cachescope.answers.chosen import Chosen
from cachescope.answers.difference import folded
from cachescope.answers.names import runs_name
from cachescope.answers.recording import Recording
from cachescope.answers.time_spent import phase_differences
from cachescope.errors import NotFoundError
from cachescope.frames.answer_rows import RateRow
from cachescope.frames.compared import ComparedLookup
from cachescope.frames.compile_rows import PhaseRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.rows import like
from cachescope.table import Table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One side: its runs, and how their lookups went."""

    name: str  # what they are called in a line
    runs: tuple[int, ...]  # the runs
    rate: RateRow  # hit rates of all its lookups
    by_cache: dict[str, RateRow]  # the same for each cache
    machines: tuple[str, ...] = ()  # the cores and limits of each run, empty where not recorded

    @classmethod
    def of(cls, read: Recording, lookups: Iterable[LookupRow], runs: Sequence[int]) -> Self:
        """Of some runs, from what all looked up."""
        name = runs_name(read.facts, runs)
        mine = [row for row in lookups if row.run in runs]
        by_cache = grouped(mine, lambda row: (row.cache,))
        return cls(
            name,
            tuple(runs),
            rates(mine),
            {cache: rates(rows) for (cache,), rows in by_cache.items()},
            tuple(read.facts.machines.get(run, "") for run in runs),
        )


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Some runs compared with others."""

    before: ComparedSide  # the sides
    after: ComparedSide
    # Every lookup of both, in the order of the later side; those of the earlier side alone come last.
    aligned: tuple[Aligned, ...]
    is_ordered: bool  # whether the earlier side is known to have ended before the later one began
    by_rank: bool  # whether each rank was compared with the same rank of the other side

    @property
    def counts(self) -> dict[Change, int]:
        """How many aligned lookups there are of each change."""
        count = Counter(one.change for one in self.aligned)
        return {change: count[change] for change in CHANGES}

    @property
    def differences(self) -> tuple[tuple[tuple[FieldChange, ...], tuple[Aligned, ...]], ...]:
        """What differs between keys: equal differences folded, with those that have it, the most frequent first."""
        return folded(
            (one.changes, one) for one in self.aligned if one.changes is not None and one.by == "graph"
        )

    @property
    def rows(self) -> list[ComparedLookup]:
        """One row per aligned lookup; see ``describe("compared_lookups")``."""
        return [*map(_row, self.aligned)]

    @property
    def frame(self) -> pd.DataFrame:
        """The same as a frame."""
        return Table(ComparedLookup, self.rows).frame

    def among(self, chosen: Chosen) -> ComparedRuns:
        """The aligned lookups of which one at least is chosen, on either side; what else is counted is of these."""
        if chosen.is_all:
            return self
        kept = tuple(
            one for one in self.aligned if any(row.lookup in chosen for row in (*one.before, *one.after))
        )
        lookups = chosen.read.facts.lookups
        numbers = {row.lookup for one in kept for row in (*one.before, *one.after)}
        mine = [lookups[number] for number in sorted(numbers)]
        before, after = (ComparedSide.of(chosen.read, mine, side.runs) for side in (self.before, self.after))
        return replace(self, before=before, after=after, aligned=kept)

    @classmethod
    def of(cls, read: Recording, before: Sequence[int], after: Sequence[int]) -> Self:
        """Hold runs against others.

        Ranks are compared with the same ranks where both sides have the same; other runs all with all.
        """
        runs = read.facts.runs
        for run in (*before, *after):
            if run not in runs:
                raise NotFoundError(f"no run {run}; there are runs 0 to {len(runs) - 1}")
        pairs = _ranks(read, before, after)
        ends = [runs[run].end_time for run in before]
        begins = [runs[run].start_time for run in after]
        one, other = (ComparedSide.of(read, read.facts.lookups.values(), side) for side in (before, after))
        return cls(
            one,
            other,
            tuple(aligned_lookups(read, pairs or [(before, after)])),
            is_ordered=all(
                end is not None and begin is not None and end <= begin for end in ends for begin in begins
            ),
            by_rank=bool(pairs),
        )


def _ranks(
    read: Recording, before: Sequence[int], after: Sequence[int]
) -> list[tuple[Sequence[int], Sequence[int]]]:
    """The run of each rank on both sides; none unless both sides have the same ranks, each once."""
    one, other = ({read.facts.runs[run].rank: run for run in side} for side in (before, after))
    if None in one or one.keys() != other.keys() or not len(one) == len(before) == len(after) > 1:
        return []
    return [([one[rank]], [other[rank]]) for rank in one]


def _row(one: Aligned) -> ComparedLookup:
    row = one.one
    return like(
        ComparedLookup,
        row,
        change=one.change,
        by=one.by or None,
        before=tuple(row.lookup for row in one.before),
        after=tuple(row.lookup for row in one.after),
        hits_before=one.hits[0],
        hits_after=one.hits[1],
        fields=None if one.changes is None else tuple(change.field for change in one.changes),
    )


@dataclass(frozen=True, slots=True)
class SideTime:
    """The time of one side."""

    runs: int  # how many of its runs have events
    phases: dict[str, int]  # self time of each phase in nanoseconds, the mean of these runs

    @property
    def total_ns(self) -> int:
        """What they add up to."""
        return sum(self.phases.values())

    @classmethod
    def of(cls, phases: Sequence[PhaseRow], runs: Sequence[int]) -> Self | None:
        """Of some runs; None where none of them has events."""
        mine = [row for row in phases if row.run in runs]
        count = len({row.run for row in mine})
        if not count:
            return None
        return cls(count, {name: round(ns / count) for name, ns in self_times(mine).items()})


@dataclass(frozen=True, slots=True)
class ComparedTimes:
    """Phases side by side."""

    before: SideTime | None  # the sides; None where no run of one has events
    after: SideTime | None
    # How much longer each phase took after than before, the largest first; empty unless both sides have
    # events.
    longer: dict[str, int]

    @classmethod
    def of(cls, read: Recording, before: Sequence[int], after: Sequence[int]) -> Self:
        """Of some runs and others."""
        phases = read.phases_read[0].rows
        one, other = (SideTime.of(phases, runs) for runs in (before, after))
        longer = {} if one is None or other is None else phase_differences(one.phases, other.phases)
        return cls(one, other, longer)
