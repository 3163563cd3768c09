"""The fields that changed between two sets of hash details, for many pairs at once.

Most sets are stored as their differences from one base, so that two of them are compared where either differs from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from cachescope.analysis.detail_arrays import Codes, as_array, joined
from cachescope.analysis.history.lookups import Flags
from cachescope.analysis.history.places_by_group import NONE, Numbers
from cachescope.details import HashDetails

# Pairs that are compared together: of a million, the differences would take a gigabyte.
_AT_ONCE: Final = 1 << 16

Component = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ChangedFields:
    """What changed in some pairs, in torch's order: each changed field of the first pair, then those of the second.

    Attributes
    ----------
    pair : array of int
        The number of the pair.
    field, old, new : array of int
        The code of the field, and the codes of its components on both sides; -1 if a side lacks it.
    starts : array of int
        Where the fields of each pair begin; and where the last ones end.
    """

    pair: Numbers
    field: Codes
    old: Codes
    new: Codes
    starts: Numbers

    def fields(self) -> Iterator[tuple[bytes, Component]]:
        """For each pair, the codes of its fields as bytes; and if it is one field alone, its components."""
        codes, size = self.field.tobytes(), self.field.itemsize
        old, new = self.old.tolist(), self.new.tolist()
        starts = self.starts.tolist()
        for start, end in pairwise(starts):
            alone = (old[start], new[start]) if end - start == 1 else (NONE, NONE)
            yield codes[start * size : end * size], alone

    def where_all(self, is_so: Flags) -> Flags:
        """The pairs in which some field changed, and of every changed field something holds."""
        wrong = np.bincount(self.pair[~is_so], minlength=len(self.starts) - 1)
        found: Flags = (np.diff(self.starts) > 0) & (wrong == 0)
        return found


def changed_fields(details: HashDetails, before: Numbers, after: Numbers) -> ChangedFields:
    """What changed from each set of `before` to the one of `after`; as `HashDetails.changes` has it for one pair."""
    pair, old, new, is_compared = _in_place(details, before, after)
    field_codes, hash_codes = as_array(details.field_codes), as_array(details.hash_codes)
    field = field_codes[old]
    is_same = (field_codes[new] == field) & is_compared[pair]
    is_compared[pair[~is_same]] = False
    kept = is_compared[pair] & (hash_codes[old] != hash_codes[new])
    columns = [pair[kept], field[kept], old[kept], new[kept]]
    others = [
        (number, field, NONE if old is None else old, NONE if new is None else new)
        for number in np.flatnonzero(~is_compared).tolist()
        for field, old, new in details.changes(int(before[number]), int(after[number]))
    ]
    if others:
        more = np.array(others).T
        columns = [np.concatenate([one, other]) for one, other in zip(columns, more, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        columns = [column[order] for column in columns]
    numbers, fields, olds, news = columns
    starts = np.searchsorted(numbers, np.arange(len(before) + 1))
    return ChangedFields(
        numbers, fields.astype(np.int32), olds.astype(np.int32), news.astype(np.int32), starts
    )


def in_chunks(*columns: Numbers) -> Iterator[tuple[Numbers, ...]]:
    """The same numbers of several columns at a time."""
    for start in range(0, len(columns[0]), _AT_ONCE):
        yield tuple(column[start : start + _AT_ONCE] for column in columns)


def _in_place(details: HashDetails, before: Numbers, after: Numbers) -> tuple[Numbers, Codes, Codes, Flags]:
    """Where either set of a pair differs from their base: the pair, the component before, the component after.

    The last says which pairs can be compared so: those with one base, which has each of its fields once.
    """
    sides = [joined(details.sets, numbers.tolist()) for numbers in (before, after)]
    bases, which = np.unique(sides[0][0], return_inverse=True)
    has_once = np.array([details.has_each_field_once(base) for base in bases.tolist()], dtype=bool)
    is_compared: Flags = (sides[0][0] == sides[1][0]) & has_once[which]
    whole = [as_array(details.sets.base(base)) for base in bases.tolist()]
    width = max((len(codes) for codes in whole), default=0) + 1
    begin = np.cumsum([0, *map(len, whole)])[:-1]
    found = []
    for _, sizes, places, codes in sides:
        pair = np.repeat(np.arange(len(before)), sizes)
        kept = is_compared[pair]
        found.append((pair[kept] * width + places[kept], codes[kept]))
    differs = np.union1d(found[0][0], found[1][0])
    pair, place = np.divmod(differs, width)
    base = np.concatenate(whole)[begin[which[pair]] + place] if whole else np.zeros(0, dtype=np.int32)
    old, new = base.copy(), base
    old[np.searchsorted(differs, found[0][0])] = found[0][1]
    new[np.searchsorted(differs, found[1][0])] = found[1][1]
    return pair, old, new, is_compared
