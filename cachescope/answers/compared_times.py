"""Where the time of compiling went, of some runs beside others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import pandas as pd

from cachescope.answers.read import Read
from cachescope.answers.time_contrast import phase_differences


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
    def of(cls, phases: pd.DataFrame, runs: Sequence[int]) -> Self | None:
        """Of some runs; None where none of them has events."""
        mine = phases[phases["run"].isin(runs)]
        count = int(mine["run"].nunique())
        if not count:
            return None
        sums = mine.groupby("phase")["self_time_ns"].sum()
        return cls(count, {str(name): round(ns / count) for name, ns in sums.items()})


@dataclass(frozen=True, slots=True)
class ComparedTimes:
    """Phases side by side."""

    before: SideTime | None  # the sides; None where no run of one has events
    after: SideTime | None
    # How much longer each phase took after than before, the largest first; empty unless both sides have
    # events.
    longer: dict[str, int]

    @classmethod
    def of(cls, read: Read, before: Sequence[int], after: Sequence[int]) -> Self:
        """Of some runs and others."""
        phases = read.phases
        one, other = (SideTime.of(phases, runs) for runs in (before, after))
        longer = {} if one is None or other is None else phase_differences(one.phases, other.phases)
        return cls(one, other, longer)
