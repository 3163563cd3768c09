"""Checks what was read against bars: what was wanted, what was found, and whether it is enough.

What is unknown does not meet a bar: a log without lookups, or without times, never passes. Against a stored base, all of both
sides counts. Hit rates are shares of all lookups, and seconds are per start, so the sides may differ in runs and ranks.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.rates import rates
from cachescope.analysis.verdicts.misses import SameCause, same_cause
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import Costs, cost_of_fields
from cachescope.answers.names import is_named_by_fields, lookups_of_cause
from cachescope.answers.recording import Recording
from cachescope.answers.starts import starts_of
from cachescope.answers.summary import counts_text
from cachescope.frames.answer_rows import CauseRow, RateRow
from cachescope.frames.checks import Bar
from cachescope.readers.reading import WHOLE_SOURCE
from cachescope.table import Table, copied
from cachescope.terms import VLLM
from cachescope.verdict_kinds import kind_of
from cachescope.wording import duration, listed, numbered, percent, plural, rank_names

# Compiles take longer on some days than on others: avoidable time that exceeds the base's by this share still passes.
_TOLERANCE: Final = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """What was read, checked against bars.

    Attributes
    ----------
    bars : tuple of Bar
        One for each bar, in the order hit rate, time lost; against a base new causes, hit rate, avoidable seconds.
    headline : str
        Lookups, hits and misses in one line.
    causes : dict
        By the number of each cause of a failed bar: the cause in one line.
    problems : int
        Records that could not be read; what they held is not in the check.
    is_cold : bool
        Whether first lookups are among the causes of a failed bar.
    unread : tuple of str
        Sources, of what is checked and of the base, of which nothing could be read: each with what is wrong with it.
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

    frame = copied(lambda one: Table(Bar, [*one.bars]), """One row per bar; see ``describe("checks")``.""")

    @classmethod
    def of(
        cls, read: Recording, min_hit_rate: float | None, max_time_lost_ns: int | None, base: Recording | None
    ) -> Self:
        """Check what was read against bars; see `Scope.check`."""
        _refuse_no_bars(min_hit_rate, max_time_lost_ns, base)
        facts = read.facts
        lines = {cause.cause: _cause_line(read, cause) for cause in read.explained.rows}
        unread = unread_sources(read)
        problems = sum(row.count for row in read.tables.problems.rows) - len(unread)
        unread += () if base is None else unread_sources(base)
        rate = rates(facts.lookups.values())
        bars = []
        if min_hit_rate is not None:
            bars.append(hit_rate_bar(min_hit_rate, rate, read.explained.rows))
        if max_time_lost_ns is not None:
            bars.append(time_lost_bar(max_time_lost_ns, rate, read.explained.rows))
        if base is not None:
            known = {same_cause(cause, cause.fields) for cause in base.explained.rows}
            by_fields = {fields for _, fields, kind in known if not kind}
            every = read.changed_since(base)
            changed = [since for since in every if tuple(sorted(since.fields)) not in by_fields]
            bars.append(new_cause_bar(read.explained.rows, known, rate, {since.cause for since in changed}))
            for since in changed:
                lines[since.cause] += f"; against the base {_changes_text(since.changes)} changed"
            bars += [_base_hit_rate_bar(read, base), _base_avoidable_bar(read, base)]
        nothing = _why_nothing_was_checked(read)
        if nothing is not None:
            bars = [replace(bar, found=None, passed=False, reason=nothing, causes=()) for bar in bars]
        against = {cause for bar in bars for cause in bar.causes}
        shown = {cause: line for cause, line in lines.items() if cause in against}
        is_cold = any(kind_of(row).may_be_first and row.cause in against for row in read.explained.rows)
        return cls(tuple(bars), counts_text(read), shown, problems, is_cold, unread)


def unread_sources(read: Recording) -> tuple[str, ...]:
    """Each source that could not be read at all, with the reason."""
    unread = (row for row in read.tables.problems.rows if row.where == WHOLE_SOURCE)
    return tuple(f"{row.source}: {row.message}" for row in unread)


def _refuse_no_bars(least: float | None, most: int | None, base: Recording | None) -> None:
    if least is None and most is None and base is None:
        raise ValueError("check() needs a bar: min_hit_rate, max_time_lost_ns or against")
    if least is not None and not 0 <= least <= 1:
        raise ValueError(f"min_hit_rate is a share from 0 to 1, not {least}")
    if most is not None and (most < 0 or not math.isfinite(most)):
        raise ValueError(f"max_time_lost_ns is a time, not {most}")


def _why_nothing_was_checked(read: Recording) -> str | None:
    """Why no bar can be met: there is no lookup, or a process compiled and none of its lookups is recorded."""
    facts = read.facts
    if not facts.lookups:
        return f"nothing to check: {counts_text(read)}"
    blind = [row.run for row in facts.runs.values() if row.looked_up is False]
    if blind:
        return f"{numbered('run', blind)} compiled without a recorded lookup: caches were off, the backend is not inductor, or what was loaded needs no lookup; what that cost is not known"
    return None


def _changes_text(changes: Iterable[FieldChange]) -> str:
    return listed([f"{change.field} {change.summary}" for change in changes], 4)


def _cause_line(read: Recording, cause: CauseRow) -> str:
    """One cause in one line: what changed, from what to what, in how many misses and runs, and the cost."""
    roots = read.facts.roots_of(cause.cause)
    changes = read.changes(roots[0].lookup) if roots and is_named_by_fields(cause) else ()
    what = _changes_text(changes) if changes else cause.summary
    counts = f"{lookups_of_cause(cause)} in {plural(len(cause.runs), 'run')}"
    lost = "" if cause.time_lost_ns is None else f", {duration(cause.time_lost_ns)} lost"
    return f"{what}: {counts}{lost}"


def hit_rate_bar(least: float, rate: RateRow, causes: Sequence[CauseRow]) -> Bar:
    """Whether enough lookups hit, by count."""
    found = rate.hits / max(rate.lookups, 1)
    passed = found >= least
    reason = f"{rate.hits} of {plural(rate.lookups, 'lookup')} hit"
    if rate.unknown:
        reason += f"; {_unseen(rate)}, which counts as none"
    return Bar("min_hit_rate", least, found, "share", passed, reason, () if passed else _ids(causes))


def time_lost_bar(most: int, rate: RateRow, causes: Sequence[CauseRow]) -> Bar:
    """Whether the compile time lost to misses is small enough."""
    missed = rate.lookups - rate.hits - rate.unknown
    reason = f"{missed} of {plural(rate.lookups, 'lookup')} did not hit"
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
    causes: Sequence[CauseRow], known: Collection[SameCause], rate: RateRow, hidden: Collection[int] = ()
) -> Bar:
    """Whether the base has every cause."""
    new = [cause for cause in causes if same_cause(cause, cause.fields) not in known or cause.cause in hidden]
    reason = f"{len(new)} of {plural(len(causes), 'cause')} new against the base"
    if rate.unknown and not new:
        reason = f"{_unseen(rate)}, and so may have a new cause"
        return Bar("no_new_cause", 0, None, "causes", False, reason, ())
    return Bar("no_new_cause", 0, len(new), "causes", not new, reason, _ids(new))


def _unseen(rate: RateRow) -> str:
    """The text on unseen outcomes, which never help to meet a bar."""
    return f"the outcome of {plural(rate.unknown, 'lookup')} was not seen"


def _base_hit_rate_bar(read: Recording, base: Recording) -> Bar:
    """Whether as many lookups hit as in the base, by count."""
    rate, before = rates(read.facts.lookups.values()), rates(base.facts.lookups.values())
    unknown = _why_nothing_was_checked(base)
    if unknown is not None or before.hit_rate is None:
        reason = f"not recorded in the base: {unknown or _unseen(before)}"
        return Bar("base_hit_rate", None, None, "share", False, reason)
    bar = hit_rate_bar(before.hit_rate, rate, read.explained.rows)
    here, there = map(_ranks, (read, base))
    here, there = (here, there) if here != there else ("", "")
    reason = f"{bar.reason}{here}; in the base {before.hits} of {before.lookups - before.unknown}{there}"
    return replace(bar, bar="base_hit_rate", reason=reason)


def _ranks(read: Recording) -> str:
    ranks = sorted({row.rank for row in read.facts.runs.values() if row.rank is not None})
    return f" on ranks {rank_names(ranks)}" if ranks else " without ranks"


def _base_avoidable_bar(read: Recording, base: Recording) -> Bar:
    """Whether the avoidable time of a start is no longer than in the base, within the tolerance."""
    costs, before = (Costs.of(Chosen(one), _found_in(base, one)) for one in (read, base))
    found, in_base = _avoidable_ns(read, costs), _avoidable_ns(base, before)
    wanted, reason = None, "a start; not recorded in the base"
    if in_base is not None:
        wanted = round(in_base * (1 + _TOLERANCE))
        reason = f"a start; in the base {duration(in_base)}, and {percent(_TOLERANCE)} more is allowed"
    if (rate := rates(read.facts.lookups.values())).unknown:
        found, reason = None, f"{_unseen(rate)}, and what that took is not known"
    elif found is None:
        reason = "not recorded: only traces (TORCH_TRACE) have times, those of Inductor's compiles that ended"
    is_met = found == 0 or (found is not None and wanted is not None and found <= wanted)
    against = () if is_met else _ids(cause for cause, _ in costs.avoidable)
    return Bar("base_avoidable", wanted, found, "ns", is_met, reason, against)


def _found_in(base: Recording, read: Recording) -> set[int]:
    """The misses of what the base found under the same key, or under one that a setting has changed since."""
    hits = [row for row in base.lookup_rows if row.outcome == "hit"]
    keys, facts = {(row.cache, row.cache_key) for row in hits}, read.facts
    missed = map(facts.lookups.__getitem__, facts.misses)
    found = {row.lookup for row in missed if (row.cache, row.cache_key) in keys}
    for since in read.changed_since(base, hits):
        if facts.lookups[since.lookups[0]].cache != VLLM and cost_of_fields(since.fields) == "avoidable":
            below = (row.lookup for root in since.lookups for row in facts.followers_of(facts.misses[root]))
            found.update(since.lookups, below)
    return found


def _avoidable_ns(read: Recording, costs: Costs) -> int | None:
    """The mean avoidable time of a start; None if not all of it is recorded."""
    starts = sum(not start.members[0].row.is_preflight for start in starts_of(read))
    return None if not starts or costs.avoidable_untimed else sum(costs.avoidable_in.values()) // starts


def _ids(causes: Iterable[CauseRow]) -> tuple[int, ...]:
    return tuple(cause.cause for cause in causes)
