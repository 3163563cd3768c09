"""What-if keys: what torch's keys would distinguish if some fields did not count.

torch's own key cannot be rebuilt from hash details (it hashes one pickle of everything). A what-if key is 128
bits over the details: the sum, in two lanes modulo 2**64, of one blake2b number per (field, hash). A sum does not depend on
order, is the same on every machine, and removing a field is a subtraction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.detail_arrays import Codes
from cachescope.analysis.what_if.equal_sets import Numbers, numbered
from cachescope.analysis.what_if.key_sets import DetailSets, Home, Joined
from cachescope.analysis.what_if.key_values import Lanes, Values, number_of
from cachescope.details import HashDetails
from cachescope.keys.key_fields import Removed, is_tensor_text


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of torch, as far as they are known, by column."""

    homes: Sequence[Home]  # each cache and direction once
    home: Numbers  # for each key, its place in `homes`
    detail_set: Numbers  # the hash details of each key; -1 if no source has them
    # The key itself: it is asked for only if nothing else shows what distinguishes a key from the others.
    name_of: Callable[[int], str]

    def __len__(self) -> int:
        return len(self.home)


class KeyTable:
    """The what-if keys of many keys, under any schema.

    Two keys of torch that differ although every recorded field is equal stay different under every schema: the
    difference is not in the list. A key without details keeps its identity. Keys of another cache or direction
    never become equal.

    Attributes
    ----------
    keys : Keys
    has_details : array of bool
        For each key, whether its details are known.
    set_of_key : array of int
        For each key, a number that is equal for keys with equal details; -1 for a key that stays different from all.
    set_count : int
        How many such numbers there are, those that no key has among them.
    """

    def __init__(self, details: HashDetails, keys: Keys) -> None:
        self._details = details
        self.keys = keys
        self._values = Values(details)
        self.has_details: npt.NDArray[np.bool_] = keys.detail_set >= 0
        both = keys.detail_set[self.has_details] * len(keys.homes) + keys.home[self.has_details]
        rows, distinct = pd.factorize(both)
        self._row = np.full(len(keys), -1, dtype=np.int64)
        self._row[self.has_details] = rows
        codes, home = np.divmod(distinct, max(len(keys.homes), 1))
        self._sets = DetailSets(self._values, details, codes, keys.homes, home)
        equal = self._sets.equal
        is_shared = np.append(np.bincount(equal[rows], minlength=len(distinct))[equal] > 1, True)
        self._alone: Numbers = np.flatnonzero(is_shared[self._row])
        self.set_count = len(distinct)
        self.set_of_key: Numbers = np.append(equal, -1)[self._row]
        self.set_of_key[self._alone] = -1

    @property
    def fields(self) -> list[str]:
        """Every field that some key has."""
        return [self._details.fields[code] for code in self._sets.present]

    @property
    def varying(self) -> list[str]:
        """The fields that differ between keys of one cache; no other can distinguish two keys."""
        return [self._details.fields[code] for code in self._sets.varying]

    def column(self, field: str, keys: Numbers) -> Codes:
        """The values of some keys with details in a field that exists: equal numbers mean equal hashes, 0 is absent."""
        (code,) = self._values.codes([field])
        return self._sets.column(code)[self._row[keys]]

    def column_without(self, field: str, parts: Iterable[str], keys: Numbers) -> Numbers:
        """The same without some parts of its values: equal numbers mean that they are equal then."""
        numbers, _ = numbered(self._values.numbers - self._values.change(field, parts))
        return numbers[self.column(field, keys)]

    def is_tensor(self, field: str) -> bool:
        """Whether a field contains the metadata of a tensor in some key."""
        return any(is_tensor_text(text) for _, _, text in self._values.of_field(field))

    @property
    def is_symbolic(self) -> npt.NDArray[np.bool_]:
        """For each key, whether one of its inputs has a symbolic size."""
        return np.append(self._sets.is_symbolic, False)[self._row]

    def joined(self, removed: Removed) -> Joined:
        """The numbers in `set_of_key` whose keys become equal to others without what is removed."""
        return self._sets.joined(self._changes(removed))

    def lanes(self, removed: Removed) -> Lanes:
        """The what-if key of every key, without what is removed; removing an unknown field has no effect."""
        found = self._sets.without(self._changes(removed))
        lanes: Lanes = np.append(found, np.zeros((2, 1), dtype=np.uint64), axis=1)[:, self._row]
        for key in self._alone.tolist():
            cache, _ = self.keys.homes[self.keys.home[key]]
            lanes[:, key] += np.array(number_of(cache, "key", self.keys.name_of(key)), dtype=np.uint64)
        return lanes

    def _changes(self, removed: Removed) -> dict[int, Lanes]:
        """By field, what to subtract for each value."""
        changes = dict.fromkeys(self._values.codes(removed.fields), self._values.numbers)
        for field, parts in removed.parts.items():
            changes |= dict.fromkeys(self._values.codes([field]), self._values.change(field, parts))
        return changes


def what_if_key(lanes: Lanes, key: int) -> str:
    """A what-if key as text: ``w`` and 32 hexadecimal digits, so that nobody mistakes it for one of torch's."""
    return f"w{int(lanes[0, key]):016x}{int(lanes[1, key]):016x}"
