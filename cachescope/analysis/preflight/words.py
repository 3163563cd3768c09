"""The words for predicted outcomes, and for outcomes of real lookups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cachescope.terms import PREDICTED

if TYPE_CHECKING:
    import pandas as pd

    from cachescope.frames.recorded_rows import LookupRow

_MADE: Final = {would: "full_miss" if would == "would_miss" else was for was, would in PREDICTED.items()}


def outcome_as_if_made(row: LookupRow) -> str:
    """The outcome of a lookup, in the word of a real one where it is predicted."""
    made = _MADE.get(row.outcome)
    if made is None:
        return row.outcome
    return "guard_miss" if row.status_detailed == "guard_miss" else made


def as_if_made(lookups: pd.DataFrame) -> pd.DataFrame:
    """The frame with the words of real lookups for predicted outcomes."""
    is_predicted = lookups["outcome"].isin(list(_MADE))
    if not is_predicted.any():
        return lookups
    outcomes = lookups["outcome"].mask(is_predicted, lookups["outcome"].map(_MADE))
    failed = is_predicted & (lookups["status_detailed"] == "guard_miss").fillna(False).astype(bool)
    return lookups.assign(outcome=outcomes.mask(failed, "guard_miss").astype(lookups["outcome"].dtype))
