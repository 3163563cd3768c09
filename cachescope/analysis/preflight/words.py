"""The outcome of a predicted lookup in the word of a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cachescope.terms import PREDICTED

if TYPE_CHECKING:
    from cachescope.frames.recorded_rows import LookupRow

_MADE: Final = {would: "full_miss" if would == "would_miss" else was for was, would in PREDICTED.items()}


def outcome_as_if_made(row: LookupRow) -> str:
    """The outcome of a lookup, in the word of a real one where it is predicted."""
    made = _MADE.get(row.outcome)
    if made is None:
        return row.outcome
    return "guard_miss" if row.status_detailed == "guard_miss" else made
