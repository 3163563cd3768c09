"""Fields that differ between two ranks because each contains its own number: a path, a device, an option.

Ranks that start together on an empty cache all miss, and none of them causes another's miss. But if
their keys differ in such a field, no rank will ever find what another stored.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from cachescope.analysis.differences import field_change
from cachescope.analysis.history.lookups import Flags
from cachescope.analysis.history.places_by_group import NONE, Numbers, firsts, numbered, paired
from cachescope.analysis.verdicts.changed_fields import changed_fields, in_chunks
from cachescope.components import parse_component
from cachescope.details import HashDetails

_NUMBER: Final = re.compile(r"\d{1,18}")
_DEVICE: Final = re.compile(r"(?<![a-z])[a-z]++:\d|device\(type='[a-z]++', index=\d")
# In a bare number, only the name of the field shows what it counts.
_COUNTS_RANKS: Final = re.compile(r"(?:^|[\[._])(?:local_)?(?:rank|device_index)(?:$|[\]._])|device_index")

_NOT_KNOWN: Final = -(2**62)


class RankFields:
    """Identifies fields that contain a rank; answers are cached."""

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        self._known: dict[tuple[int, int, int], bool] = {}

    def all_hold_a_rank(self, before: Numbers, after: Numbers, ranks: tuple[Numbers, Numbers]) -> Flags:
        """Which pairs of sets of hash details differ, and only in fields that contain the rank.

        Parameters
        ----------
        before, after : array of int
            The sets.
        ranks : tuple of array of int
            The rank of each side; -1 if it is not known.
        """
        found = [self._hold_a_rank(*some) for some in in_chunks(before, after, *ranks)]
        return np.concatenate([np.zeros(0, dtype=bool), *found])

    def _hold_a_rank(self, before: Numbers, after: Numbers, one: Numbers, other: Numbers) -> Flags:
        changes = changed_fields(self._details, before, after)
        is_known = (one != NONE) & (other != NONE)
        apart = np.where(is_known, other - one, _NOT_KNOWN)[changes.pair]
        components = paired(changes.old.astype(np.int64) + 1, changes.new.astype(np.int64))
        asked = paired(components, numbered(apart))
        sides = (column[firsts(asked)].tolist() for column in (changes.old, changes.new, apart))
        holds: Flags = np.array([self._holds_a_rank(*each) for each in zip(*sides, strict=True)], dtype=bool)
        return changes.where_all(holds[asked])

    def _holds_a_rank(self, before: int, after: int, apart: int) -> bool:
        """Whether two components of a field differ, and only by the rank."""
        asked = before, after, apart
        if asked not in self._known:
            self._known[asked] = self._looks_like_a_rank(
                before, after, None if apart == _NOT_KNOWN else apart
            )
        return self._known[asked]

    def _looks_like_a_rank(self, before: int, after: int, apart: int | None) -> bool:
        if NONE in (before, after):
            return False
        old, new = (parse_component(self._details.components[code]) for code in (before, after))
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
