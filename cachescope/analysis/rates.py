"""Hit rates by count and by compile time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from cachescope.frames.answer_rows import RateRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.terms import FXGRAPH, MISSED, PREDICTED, VLLM

_MADE: Final = {would: "full_miss" if would == "would_miss" else was for was, would in PREDICTED.items()}


def outcome_as_if_made(row: LookupRow) -> str:
    """The outcome of a lookup, in the word of a real one where it is predicted."""
    made = _MADE.get(row.outcome)
    if made is None:
        return row.outcome
    return "guard_miss" if row.status_detailed == "guard_miss" else made


def rates(lookups: Iterable[LookupRow]) -> RateRow:
    """The hit rates of some lookups.

    Lookups whose outcome was not seen are counted separately, and are in no rate.

    Compile time is that of the FX graphs (an AOTAutograd hit contains the FX hits of its graphs, whose
    times would count twice). Where torch recorded none, the compile time in vLLM's log counts as lost, too.
    ``time_hit_rate`` is missing if there is no FX lookup with a time, and also if there are FX hits of which none has a
    time, or others of which none has one: what is not recorded is not zero.
    """
    count = hits = misses = bypasses = unknown = 0
    has_hit = has_compile = False
    saved: int | None = None
    lost: int | None = None
    lost_with_vllm: int | None = None
    for row in lookups:
        count += 1
        outcome = row.outcome if row.prediction is None else outcome_as_if_made(row)
        is_hit, is_fx, taken = outcome == "hit", row.cache == FXGRAPH, row.time_taken_ns
        hits += is_hit
        misses += outcome in MISSED
        bypasses += outcome in ("bypass", "disabled")
        unknown += outcome == "unknown"
        if is_fx and is_hit:
            has_hit = True
            if row.time_saved_ns is not None:
                saved = (saved or 0) + row.time_saved_ns
        elif is_fx:
            has_compile = has_compile or outcome != "unknown"
            if taken is not None:
                lost = (lost or 0) + taken
        if not is_hit and taken is not None and (is_fx or row.cache == VLLM):
            lost_with_vllm = (lost_with_vllm or 0) + taken
    is_recorded = not (has_hit and saved is None) and not (has_compile and lost is None)
    time, seen = (saved or 0) + (lost or 0), count - unknown
    return RateRow(
        lookups=count,
        hits=hits,
        misses=misses,
        bypasses=bypasses,
        unknown=unknown,
        hit_rate=hits / seen if seen else None,
        time_saved_ns=saved,
        time_lost_ns=lost_with_vllm,
        time_hit_rate=(saved or 0) / time if is_recorded and time else None,
    )


def known_sum(values: Iterable[int | None]) -> int | None:
    """The sum of those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def grouped(
    lookups: Iterable[LookupRow], key: Callable[[LookupRow], tuple[Any, ...]]
) -> Mapping[tuple[Any, ...], list[LookupRow]]:
    """Lookups by some of their values, ordered by these; what is missing comes last."""
    groups = by_key((key(row), row) for row in lookups)
    ordered = sorted(groups, key=lambda values: [(value is None, value) for value in values])
    return {values: groups[values] for values in ordered}
