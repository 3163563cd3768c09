"""Detects a set that is printed, and pickled, in another order in each process."""

from __future__ import annotations

from typing import Final

from cachescope.analysis.differences import FieldChange
from cachescope.keys.printed_values import literal_value

SET_ORDER: Final = (
    "The same set in a different order: Python orders strings differently in each process. Set PYTHONHASHSEED to one value in "
    "every process, or hold a sorted list instead."
)


def is_reordered_set(change: FieldChange) -> bool:
    """Whether two printed values are equal except for the order of sets in them.

    Examples
    --------
    >>> from cachescope.analysis.differences import field_change
    >>> is_reordered_set(field_change("a", "[{'x', 'y'}]", "[{'y', 'x'}]"))
    True
    """
    return (
        change.before is not None and change.after is not None and is_reordered(change.before, change.after)
    )


def is_reordered(before: str, after: str) -> bool:
    """The same of two texts."""
    if "{" not in before or before == after or sorted(before) != sorted(after):
        return False
    try:
        return bool(literal_value(before) == literal_value(after))
    except (ValueError, RecursionError):
        return False
