"""The bars of a check: what was wanted, what was found, and whether that is enough.

What is unknown does not meet a bar: a log without lookups, or without times, never passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from cachescope.frames.answer_rows import CauseRow, RateRow
from cachescope.frames.checks import Bar
from cachescope.verdict_kinds import SameCause, same_cause

CauseName = SameCause


def cause_name(cause: CauseRow) -> CauseName:
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
    lost = rate.time_lost_ns
    if rate.unknown and (lost or 0) <= most:
        reason = f"{_unseen(rate)}, and what that took is not known"
        return Bar("max_time_lost", most, None, "ns", False, reason, _ids(causes))
    if lost is None and missed:
        reason = (
            f"{missed} of {rate.lookups} lookups did not hit, and only traces (TORCH_TRACE) have their times"
        )
        return Bar("max_time_lost", most, None, "ns", False, reason, _ids(causes))
    passed = (lost or 0) <= most
    reason = f"{missed} of {rate.lookups} lookups did not hit"
    costly = [cause for cause in causes if cause.time_lost_ns]
    return Bar("max_time_lost", most, lost or 0, "ns", passed, reason, () if passed else _ids(costly))


def new_cause_bar(
    causes: Sequence[CauseRow], known: Collection[CauseName], rate: RateRow, hidden: Iterable[int] = ()
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


def unchecked(bars: Iterable[tuple[str, float, str]], reason: str) -> list[Bar]:
    """The bars if there is nothing to check: none is met."""
    return [Bar(bar, wanted, None, unit, False, reason) for bar, wanted, unit in bars]


def _ids(causes: Iterable[CauseRow]) -> tuple[int, ...]:
    return tuple(cause.cause for cause in causes)
