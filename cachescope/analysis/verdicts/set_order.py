"""Detects a set that is printed, and pickled, in another order in each process."""

from __future__ import annotations

from typing import Final

from cachescope.analysis.differences import FieldChange
from cachescope.keys.literals import literal_value

SET_ORDER: Final = (
    "The same set in another order: Python orders strings anew in each process. Set PYTHONHASHSEED to one value in "
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
    if change.before is None or change.after is None or "{" not in change.before:
        return False
    if change.before == change.after or sorted(change.before) != sorted(change.after):
        return False
    try:
        return bool(literal_value(change.before) == literal_value(change.after))
    except (ValueError, RecursionError):
        return False
