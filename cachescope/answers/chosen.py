"""Some of the lookups that were read, such as those of a span of time: why they missed was judged among all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.rates import hit_rates
from cachescope.answers.read import Read
from cachescope.frames.answer_rows import CauseRow, MissRow

Span = tuple[int, int]
"""The first and the last moment, in nanoseconds since 1970."""
Flags = npt.NDArray[np.bool_]


class Chosen:
    """Some of the lookups that were read, or all of them.

    What is counted is counted among these. Nothing is judged again: a miss that has its baseline elsewhere keeps it.

    Parameters
    ----------
    read : Read
    are_chosen : array of bool, optional
        For each row of ``lookups``; without it, all of them are chosen.
    """

    def __init__(self, read: Read, are_chosen: Flags | None = None) -> None:
        self.read = read
        self.is_all = are_chosen is None
        self._are_chosen = are_chosen

    @classmethod
    def within(cls, read: Read, span: Span) -> Self:
        """The lookups of a span of time; one without a time is in none."""
        return cls(read, within(read.lookups["time"], span))

    @classmethod
    def of_runs(cls, read: Read, runs: Collection[int]) -> Self:
        """The lookups of some runs."""
        return cls(read, read.lookups["run"].isin(runs).to_numpy(dtype=bool))

    @cached_property
    def lookups(self) -> pd.DataFrame:
        """Their rows of the frame ``lookups``."""
        return self.rows_of_each(self.read.lookups)

    def rows_of_each(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Their rows of a frame that has a row for each lookup, in the order of ``lookups``."""
        return frame if self._are_chosen is None else frame[self._are_chosen]

    def __len__(self) -> int:
        return len(self.lookups)

    def are_among(self, lookups: pd.Series[Any]) -> Flags:
        """Which of some lookups, by their numbers, are chosen."""
        if self.is_all:
            return np.ones(len(lookups), dtype=bool)
        found: Flags = lookups.isin(self.lookups["lookup"]).to_numpy(dtype=bool)
        return found

    def __contains__(self, lookup: object) -> bool:
        return lookup in self._numbers

    def hit_rates(self, by: Sequence[str] = ()) -> pd.DataFrame:
        """Their hit rates; see ``describe("hit_rates")``."""
        return hit_rates(self.lookups, by)

    @cached_property
    def misses(self) -> list[int]:
        """The lookups among them that missed, in their order."""
        frame = self.read.facts.misses.frame
        numbers: list[int] = np.sort(frame["lookup"].to_numpy(dtype=np.int64)[self._of_misses]).tolist()
        return numbers

    @cached_property
    def causes(self) -> Sequence[CauseRow]:
        """The causes, counted where they struck these lookups: the costliest first."""
        causes = self.read.facts.causes
        if self.is_all:
            return causes
        counted = self._counted()
        of_number = {cause.cause: cause for cause in causes}
        mine = [replace(of_number[number], **counts) for number, counts in counted.items()]
        return sorted(mine, key=lambda one: (-(one.time_lost_ns or 0), -one.misses))

    def misses_of(self, cause: int) -> Sequence[MissRow]:
        """Their misses of one cause, in the order of the lookups."""
        return self.read.facts.misses_of(cause, self._of_misses)

    def roots_of(self, cause: int) -> Sequence[MissRow]:
        """Those of them that do not follow from another one."""
        return self.read.facts.roots_of(cause, self._of_misses)

    @cached_property
    def _numbers(self) -> frozenset[int]:
        return frozenset(self.lookups["lookup"].tolist())

    @cached_property
    def _of_misses(self) -> Flags:
        """Which misses are of these lookups."""
        missed = self.read.facts.missed
        return np.ones(len(missed), dtype=bool) if self._are_chosen is None else self._are_chosen[missed]

    def _counted(self) -> dict[int, dict[str, Any]]:
        """What is counted of each cause that struck, in the order of causes."""
        facts = self.read.facts
        misses = facts.misses.frame[["cause", "root"]][self._of_misses].reset_index(drop=True)
        missed = facts.missed[self._of_misses]
        for name in ("run", "time_taken_ns"):
            misses[name] = self.read.lookups[name].array[missed]
        of_cause = misses.groupby("cause", sort=True)
        lost = of_cause["time_taken_ns"].sum(min_count=1)
        runs: dict[int, list[int]] = defaultdict(list)
        for cause, run in misses[["cause", "run"]].drop_duplicates().itertuples(index=False):
            runs[cause].append(run)
        return {
            cause: {
                "misses": count,
                "roots": roots,
                "runs": tuple(sorted(runs[cause])),
                "ranks": tuple(
                    sorted({rank for run in runs[cause] if (rank := facts.runs[run].rank) is not None})
                ),
                "time_lost_ns": None if pd.isna(lost[cause]) else int(lost[cause]),
            }
            for cause, count, roots in zip(
                lost.index.tolist(), of_cause.size().tolist(), of_cause["root"].sum().tolist(), strict=True
            )
        }


def within(times: pd.Series[Any], span: Span) -> Flags:
    """Which times are between two moments; a missing one is not."""
    first, last = (pd.Timestamp(moment, tz="UTC") for moment in span)
    found: Flags = times.between(first, last).to_numpy(dtype=bool)
    return found
