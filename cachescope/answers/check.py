"""What was read, checked against bars: what was wanted, what was found, and whether that is enough.

What is unknown does not meet a bar: a log without lookups, or without times, never passes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.rates import rates
from cachescope.analysis.verdicts.since_baseline import ChangedSince
from cachescope.answers.names import is_named_by_fields, lookups_of_cause
from cachescope.answers.recording import Recording
from cachescope.answers.summary import counts_text
from cachescope.frames.answer_rows import CauseRow, RateRow
from cachescope.frames.checks import Bar
from cachescope.readers.reading import WHOLE_SOURCE
from cachescope.table import Table
from cachescope.verdict_kinds import SameCause, kind_of, same_cause
from cachescope.wording import duration, listed, plural

if TYPE_CHECKING:
    import pandas as pd

_CHANGES_NAMED: Final = 4
_BARS: Final = (("min_hit_rate", "share"), ("max_time_lost", "ns"), ("no_new_cause", "causes"))


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """What was read, checked against bars.

    Attributes
    ----------
    bars : tuple of Bar
        One for each bar, in the order hit rate, time lost, new causes.
    headline : str
        Lookups, hits and misses in one line.
    causes : dict
        By the number of each cause of a failed bar: the cause in one line.
    problems : int
        Records that could not be read; what they held is not in the check.
    is_cold : bool
        Whether first lookups are among the causes of a failed bar.
    unread : tuple of str
        Sources, of what is checked and of the baseline, of which nothing could be read: each with what is wrong with it.
    """

    bars: tuple[Bar, ...]
    headline: str
    causes: dict[int, str]
    problems: int
    is_cold: bool = False
    unread: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every source was read and every bar is met."""
        return not self.unread and all(bar.passed for bar in self.bars)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per bar; see ``describe("checks")``."""
        return Table(Bar, [*self.bars]).frame

    @classmethod
    def of(
        cls,
        read: Recording,
        min_hit_rate: float | None,
        max_time_lost_ns: int | None,
        baseline: Recording | None,
    ) -> Self:
        """Hold what was read against bars; see `Scope.check`."""
        _refuse_no_bars(min_hit_rate, max_time_lost_ns, baseline)
        facts = read.facts
        lines = {cause.cause: _cause_line(read, cause) for cause in facts.causes}
        unread = unread_sources(read)
        problems = sum(row.count for row in facts.problems) - len(unread)
        unread += () if baseline is None else unread_sources(baseline)
        nothing = _why_nothing_was_checked(read)
        if nothing is not None:
            wanted = min_hit_rate, max_time_lost_ns, None if baseline is None else 0
            return cls(tuple(unchecked(wanted, nothing)), counts_text(read), {}, problems, unread=unread)
        rate = rates(facts.lookups.values())
        bars = []
        if min_hit_rate is not None:
            bars.append(hit_rate_bar(min_hit_rate, rate, facts.causes))
        if max_time_lost_ns is not None:
            bars.append(time_lost_bar(max_time_lost_ns, rate, facts.causes))
        if baseline is not None:
            known = {cause_name(cause) for cause in baseline.facts.causes}
            changed = _new_changes(read, baseline, known)
            bars.append(new_cause_bar(facts.causes, known, rate, (since.cause for since in changed)))
            for since in changed:
                lines[since.cause] += f"; against the baseline {_changes_text(since.changes)} changed"
        against = {cause for bar in bars for cause in bar.causes}
        shown = {cause: line for cause, line in lines.items() if cause in against}
        is_cold = any(kind_of(row).may_be_first and row.cause in against for row in facts.causes)
        return cls(tuple(bars), counts_text(read), shown, problems, is_cold, unread)


def unread_sources(read: Recording) -> tuple[str, ...]:
    """Each source of which nothing could be read, with what is wrong with it."""
    return tuple(f"{row.source}: {row.message}" for row in read.facts.problems if row.where == WHOLE_SOURCE)


def _refuse_no_bars(least: float | None, most: int | None, baseline: Recording | None) -> None:
    if least is None and most is None and baseline is None:
        raise ValueError("check() needs a bar: min_hit_rate, max_time_lost_ns or baseline")
    if least is not None and not 0 <= least <= 1:
        raise ValueError(f"min_hit_rate is a share from 0 to 1, not {least}")
    if most is not None and (most < 0 or not math.isfinite(most)):
        raise ValueError(f"max_time_lost_ns is a time, not {most}")


def _why_nothing_was_checked(read: Recording) -> str | None:
    """Why no bar can be met: no lookup, or a process that compiled, and of which none is recorded."""
    facts = read.facts
    if not facts.lookups:
        return f"nothing to check: {counts_text(read)}"
    blind = [row.run for row in facts.runs.values() if row.looked_up is False]
    if blind:
        runs = f"run {', '.join(map(str, blind[:8]))}"
        return (
            f"{runs} compiled, and no lookup of it is recorded: its caches were off, its backend is not inductor, or what it "
            "loaded needs no lookup; what that cost is not known"
        )
    return None


def _new_changes(read: Recording, baseline: Recording, known: Collection[SameCause]) -> list[ChangedSince]:
    by_fields = {fields for _, fields, kind in known if not kind}
    return [since for since in read.changed_since(baseline) if tuple(sorted(since.fields)) not in by_fields]


def _changes_text(changes: Iterable[FieldChange]) -> str:
    return listed([f"{change.field} {change.summary}" for change in changes], _CHANGES_NAMED)


def _cause_line(read: Recording, cause: CauseRow) -> str:
    """One cause in one line: what changed from what to what, in how many misses and runs, and what it cost."""
    roots = read.facts.roots_of(cause.cause)
    changes = read.changes(roots[0].lookup) if roots and is_named_by_fields(cause) else ()
    what = _changes_text(changes) if changes else cause.summary
    counts = f"{lookups_of_cause(cause)} in {plural(len(cause.runs), 'run')}"
    lost = "" if cause.time_lost_ns is None else f", {duration(cause.time_lost_ns)} lost"
    return f"{what}: {counts}{lost}"


def cause_name(cause: CauseRow) -> SameCause:
    """What identifies a cause in another scope: its verdict, fields and kind, whatever its number."""
    return same_cause(cause, cause.fields)


def hit_rate_bar(least: float, rate: RateRow, causes: Sequence[CauseRow]) -> Bar:
    """Whether enough lookups hit, by count."""
    found = rate.hits / rate.lookups
    passed = found >= least
    reason = f"{rate.hits} of {rate.lookups} lookups hit"
    if rate.unknown:
        reason += f"; {_unseen(rate)}, which counts as none"
    return Bar("min_hit_rate", least, found, "share", passed, reason, () if passed else _ids(causes))


def time_lost_bar(most: int, rate: RateRow, causes: Sequence[CauseRow]) -> Bar:
    """Whether the compile time lost to misses is small enough."""
    missed = rate.lookups - rate.hits - rate.unknown
    reason = f"{missed} of {rate.lookups} lookups did not hit"
    lost = rate.time_lost_ns or 0
    found: int | None = lost
    if rate.unknown and lost <= most:
        found, reason = None, f"{_unseen(rate)}, and what that took is not known"
    elif rate.time_lost_ns is None and missed:
        found, reason = None, f"{reason}, and only traces (TORCH_TRACE) have their times"
    passed = found is not None and found <= most
    against = causes if found is None else [cause for cause in causes if cause.time_lost_ns]
    return Bar("max_time_lost", most, found, "ns", passed, reason, () if passed else _ids(against))


def new_cause_bar(
    causes: Sequence[CauseRow], known: Collection[SameCause], rate: RateRow, hidden: Iterable[int] = ()
) -> Bar:
    """Whether every cause was there before."""
    hidden = set(hidden)
    new = [cause for cause in causes if cause_name(cause) not in known or cause.cause in hidden]
    reason = f"{len(new)} of {len(causes)} causes are new against the baseline"
    if rate.unknown and not new:
        reason = f"{_unseen(rate)}, and so may have a new cause"
        return Bar("no_new_cause", 0, None, "causes", False, reason, ())
    return Bar("no_new_cause", 0, len(new), "causes", not new, reason, _ids(new))


def _unseen(rate: RateRow) -> str:
    """The text on unseen outcomes, which never help to meet a bar."""
    lookups = "1 lookup" if rate.unknown == 1 else f"{rate.unknown} lookups"
    return f"the outcome of {lookups} was not seen"


def unchecked(wanted: Iterable[float | None], reason: str) -> Iterator[Bar]:
    """The bars that something is wanted of, if there is nothing to check: none is met."""
    for (bar, unit), least in zip(_BARS, wanted, strict=True):
        if least is not None:
            yield Bar(bar, least, None, unit, False, reason)


def _ids(causes: Iterable[CauseRow]) -> tuple[int, ...]:
    return tuple(cause.cause for cause in causes)
