"""Which of several processes took longest, and what it spent longer on than another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from cachescope.analysis.phases.names import WAITING_FOR_RANKS
from cachescope.answers.read import Read
from cachescope.answers.run_time import RunTime
from cachescope.answers.sides import runs_below


@dataclass(frozen=True, slots=True)
class Member:
    """A process that is compared with others: for a path with several processes, the slowest."""

    path: str | None  # the path that it represents; None if every process represents itself
    of: int  # how many processes of the path have events
    time: RunTime  # the process


@dataclass(frozen=True, slots=True)
class Contrast:
    """The slowest of several processes beside another one."""

    slower: Member  # the one that took longest
    other: Member  # the one that took least
    of: int  # how many there are
    longer_ns: int  # how much longer the slower one took
    # How much longer it took in each phase, the largest first, those where it took less below zero; they add
    # up to `longer_ns`.
    phases: dict[str, int]

    @classmethod
    def of_members(cls, members: Sequence[Member]) -> Self | None:
        """Of the slowest and the quickest; None where there are not two."""
        if len(members) < 2:
            return None
        ordered = sorted(members, key=lambda one: one.time.readings.total_ns)
        other, slower = ordered[0], ordered[-1]
        longer = phase_differences(other.time.phases, slower.time.phases)
        return cls(slower, other, len(members), sum(longer.values()), longer)


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


def members_of(read: Read, runs: Sequence[RunTime], paths: Sequence[str]) -> tuple[Member, ...]:
    """What is compared: the slowest process of each path if several paths have processes with events, otherwise every process."""
    timed = {one.run: one for one in runs}
    sides = []
    for path in dict.fromkeys(paths) if len(paths) > 1 else ():
        below = [timed[run] for run in runs_below(read, path) if run in timed]
        if below:
            sides.append(Member(path, len(below), max(below, key=_total)))
    apart = len({member.time.run for member in sides}) == len(sides) > 1
    return tuple(sides) if apart else tuple(Member(None, 1, one) for one in runs)


def _total(one: RunTime) -> int:
    return one.readings.total_ns
