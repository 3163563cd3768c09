"""Hit rates by count and by compile time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from cachescope.frames.answer_rows import RateRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.terms import FXGRAPH, MISSED, PREDICTED, VLLM

_MADE: Final = {would: "full_miss" if would == "would_miss" else was for was, would in PREDICTED.items()}


def outcome_as_if_made(row: LookupRow) -> str:
    """The outcome of a lookup; for a predicted one, the word that a real one would have."""
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
    made = [(row, outcome_as_if_made(row)) for row in lookups]
    count = Counter(outcome for _, outcome in made)
    of_fx = [(row, outcome) for row, outcome in made if row.cache == FXGRAPH]
    saved = known_sum(row.time_saved_ns for row, outcome in of_fx if outcome == "hit")
    lost = known_sum(row.time_taken_ns for row, outcome in of_fx if outcome != "hit")
    of_vllm = known_sum(row.time_taken_ns for row, outcome in made if row.cache == VLLM and outcome != "hit")
    outcomes = {outcome for _, outcome in of_fx}
    is_compiled = bool(outcomes - {"hit", "unknown"})
    is_recorded = not ("hit" in outcomes and saved is None) and not (is_compiled and lost is None)
    time, seen = (saved or 0) + (lost or 0), len(made) - count["unknown"]
    return RateRow(
        lookups=len(made),
        hits=count["hit"],
        misses=sum(count[outcome] for outcome in MISSED),
        bypasses=count["bypass"] + count["disabled"],
        unknown=count["unknown"],
        hit_rate=count["hit"] / seen if seen else None,
        time_saved_ns=saved,
        time_lost_ns=known_sum((lost, of_vllm)),
        time_hit_rate=(saved or 0) / time if is_recorded and time else None,
    )


def known_sum(values: Iterable[int | None]) -> int | None:
    """The sum of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def grouped(
    lookups: Iterable[LookupRow], key: Callable[[LookupRow], tuple[Any, ...]]
) -> Mapping[tuple[Any, ...], list[LookupRow]]:
    """Lookups grouped by some of their values, in the order of these; missing values come last."""
    groups = by_key((key(row), row) for row in lookups)
    ordered = sorted(groups, key=lambda values: [(value is None, value) for value in values])
    return {values: groups[values] for values in ordered}
