"""Fields that differ between two ranks because each contains its own number: a path, a device, an option.

Ranks that start together on an empty cache all miss, and none of them causes another's miss. But if
their keys differ in such a field, no rank will ever find what another stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cachescope.analysis.differences import component_change
from cachescope.details import HashDetails

_NUMBER: Final = re.compile(r"\d{1,18}")
_DEVICE: Final = re.compile(r"(?<![a-z])[a-z]++:\d|device\(type='[a-z]++', index=\d")
# In a bare number, only the name of the field shows what it counts.
_COUNTS_RANKS: Final = re.compile(r"(?:^|[\[._])(?:local_)?(?:rank|device_index)(?:$|[\]._])|device_index")


Changes = Sequence[tuple[int, int | None, int | None]]


def all_hold_a_rank(details: HashDetails, changes: Changes, apart: int | None) -> bool:
    """Whether two sets of hash details differ, and only in fields that contain the rank; `apart` is how far the ranks are."""
    return bool(changes) and all(_holds_a_rank(details, old, new, apart) for _, old, new in changes)


def _holds_a_rank(details: HashDetails, before: int | None, after: int | None, apart: int | None) -> bool:
    """Whether two components of a field differ, and only by the rank."""
    if before is None or after is None:
        return False
    change = component_change(details, before, after)
    if change.kind == "tensor":
        return all(
            name == "device" and _DEVICE.search(a) is not None and _differ_in_numbers(a, b, None)
            for name, a, b in change.parts
        )
    if change.kind != "value":
        return False
    assert change.before is not None and change.after is not None
    if change.before.isdecimal() and not _COUNTS_RANKS.search(change.field):
        return False
    return _differ_in_numbers(change.before, change.after, apart)


def _differ_in_numbers(before: str, after: str, apart: int | None) -> bool:
    """Whether two texts differ only in numbers, and by the difference of the ranks if those are known."""
    if _NUMBER.sub("#", before) != _NUMBER.sub("#", after):
        return False
    pairs = zip(_NUMBER.findall(before), _NUMBER.findall(after), strict=True)
    steps = {int(b) - int(a) for a, b in pairs if a != b}
    return bool(steps) and (apart is None or steps == {apart})
