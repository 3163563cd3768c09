"""Fields that differ between two ranks because each contains its own number: a path, a device, an option.

Ranks that start together on an empty cache all miss, and none of them causes another's miss. But if
their keys differ in such a field, no rank will ever find what another stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cachescope.analysis.differences import field_change
from cachescope.components import parse_component
from cachescope.details import HashDetails

_NUMBER: Final = re.compile(r"\d{1,18}")
_DEVICE: Final = re.compile(r"(?<![a-z])[a-z]++:\d|device\(type='[a-z]++', index=\d")
# In a bare number, only the name of the field shows what it counts.
_COUNTS_RANKS: Final = re.compile(r"(?:^|[\[._])(?:local_)?(?:rank|device_index)(?:$|[\]._])|device_index")


Changes = Sequence[tuple[int, int | None, int | None]]


def all_hold_a_rank(details: HashDetails, changes: Changes, ranks: tuple[int | None, int | None]) -> bool:
    """Whether two sets of hash details differ, and only in fields that contain the rank."""
    one, other = ranks
    apart = None if one is None or other is None else other - one
    return bool(changes) and all(_holds_a_rank(details, old, new, apart) for _, old, new in changes)


def _holds_a_rank(details: HashDetails, before: int | None, after: int | None, apart: int | None) -> bool:
    """Whether two components of a field differ, and only by the rank."""
    if before is None or after is None:
        return False
    old, new = (parse_component(details.components[code]) for code in (before, after))
    assert old is not None and new is not None
    change = field_change(old.field, old.value_text, new.value_text)
    if change.kind == "tensor":
        return all(
            name == "device" and _DEVICE.search(a) is not None and _differ_in_numbers(a, b, None)
            for name, a, b in change.parts
        )
    if change.kind != "value":
        return False
    if old.value_text.isdecimal() and not _COUNTS_RANKS.search(old.field):
        return False
    return _differ_in_numbers(old.value_text, new.value_text, apart)


def _differ_in_numbers(before: str, after: str, apart: int | None) -> bool:
    """Whether two texts differ only in numbers, and by the difference of the ranks if those are known."""
    if _NUMBER.sub("#", before) != _NUMBER.sub("#", after):
        return False
    pairs = zip(_NUMBER.findall(before), _NUMBER.findall(after), strict=True)
    steps = {int(b) - int(a) for a, b in pairs if a != b}
    return bool(steps) and (apart is None or steps == {apart})
