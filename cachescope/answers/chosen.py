"""Some of the lookups that were read, such as those of a span of time. Their verdicts come from all lookups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from cachescope.analysis.rates import grouped, known_sum, outcome_as_if_made, rates
from cachescope.answers.recording import Recording
from cachescope.errors import NotFoundError
from cachescope.frames.answer_rows import CauseRow, MissRow, RateRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.table import Table

if TYPE_CHECKING:
    import pandas as pd

Span = tuple[int, int]
"""The first and the last moment, in nanoseconds since 1970."""


def is_within(time: int | None, span: Span) -> bool:
    """Whether a time is within a span; a missing one is not."""
    return time is not None and span[0] <= time <= span[1]


class Chosen:
    """Some of the lookups that were read, or all of them.

    Counts are of these lookups. Nothing is judged again: a miss keeps its baseline, even if that is not among them.
    """

    def __init__(self, read: Recording, numbers: Collection[int] | None = None) -> None:
        self.read = read
        self.is_all = numbers is None
        self._numbers = None if numbers is None else frozenset(numbers)

    @classmethod
    def within(cls, read: Recording, span: Span) -> Self:
        """The lookups within a span of time, without those whose time is not recorded."""
        return cls(read, [row.lookup for row in read.facts.lookups.values() if is_within(row.time, span)])

    @classmethod
    def of_runs(cls, read: Recording, runs: Collection[int]) -> Self:
        """The lookups of some runs."""
        return cls(read, [row.lookup for row in read.facts.lookups.values() if row.run in runs])

    @cached_property
    def rows(self) -> Sequence[LookupRow]:
        """The lookups, in their order."""
        lookups = self.read.facts.lookups
        return list(lookups.values() if self._numbers is None else map(lookups.get, sorted(self._numbers)))  # type: ignore[arg-type]

    @cached_property
    def lookups(self) -> pd.DataFrame:
        """Their rows of the frame ``lookups``."""
        return self.rows_of_each(self.read.shown.frame)

    def rows_of_each(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Their rows in a frame whose rows have the number of a lookup."""
        return frame if self._numbers is None else frame[frame["lookup"].isin(self._numbers)]

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, lookup: object) -> bool:
        return lookup in (self.read.facts.lookups if self._numbers is None else self._numbers)

    def hit_rates(self, by: Sequence[str]) -> pd.DataFrame:
        """Their hit rates by count and by compile time, for groups of them; see `Read.hit_rates`."""
        lookups, runs = self.read.settled.frame, self.read.facts.runs
        if "rank" in by:
            lookups = lookups.merge(self.read.tables.runs.frame[["run", "rank"]], on="run", how="left")
        if unknown := [name for name in by if name not in lookups.columns]:
            raise NotFoundError(
                f"no column {unknown[0]!r} in lookups; there are {', '.join(lookups.columns)}"
            )

        def group_of(row: LookupRow) -> tuple[object, ...]:
            own = {"rank": runs[row.run].rank, "outcome": outcome_as_if_made(row)}
            return tuple(own[name] if name in own else getattr(row, name) for name in by)

        rows_of_group = grouped(self.rows, group_of) if by else {(): self.rows}
        frame = Table(RateRow, list(map(rates, rows_of_group.values()))).frame
        # The values as the frame has them, where times are not numbers.
        for at, name in enumerate(by):
            first = [rows[0].lookup for rows in rows_of_group.values()]
            frame.insert(at, name, lookups[name].take(first).reset_index(drop=True))
        return frame

    @cached_property
    def misses(self) -> list[int]:
        """The lookups among them that missed, in their order."""
        return sorted(lookup for lookup in self.read.facts.misses if lookup in self)

    @cached_property
    def causes(self) -> Sequence[CauseRow]:
        """The causes with their counts among these lookups, the costliest first."""
        causes = self.read.explained.rows
        if self.is_all:
            return causes
        return sorted(self._counted(causes), key=lambda one: (-(one.time_lost_ns or 0), -one.misses))

    def misses_of(self, cause: int) -> Sequence[MissRow]:
        """Their misses of one cause, in the order of the lookups."""
        misses = self.read.facts.misses_of(cause)
        return misses if self.is_all else [miss for miss in misses if miss.lookup in self]

    def roots_of(self, cause: int) -> Sequence[MissRow]:
        """Its misses among these that do not follow from another one; all of them if each does."""
        misses = self.misses_of(cause)
        return [miss for miss in misses if miss.root] or misses

    def _counted(self, causes: Sequence[CauseRow]) -> Iterator[CauseRow]:
        """Each cause among these lookups, with its counts."""
        facts = self.read.facts
        for cause in causes:
            misses = self.misses_of(cause.cause)
            if not misses:
                continue
            rows = [facts.lookups[miss.lookup] for miss in misses]
            runs = sorted({row.run for row in rows})
            yield replace(
                cause,
                misses=len(misses),
                roots=sum(miss.root for miss in misses),
                runs=tuple(runs),
                ranks=tuple(sorted({rank for run in runs if (rank := facts.runs[run].rank) is not None})),
                time_lost_ns=known_sum(row.time_taken_ns for row in rows),
            )
