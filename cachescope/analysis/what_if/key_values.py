"""The distinct values of hash details, each with its numbers in what-if keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from cachescope.analysis.detail_arrays import Codes, as_array
from cachescope.analysis.history.timeline import shows_symbol
from cachescope.details import HashDetails
from cachescope.keys.key_fields import without_parts

Lanes = npt.NDArray[np.uint64]
"""Two rows of 64 bits, one column per key, set or value."""


def number_of(*words: str) -> tuple[int, int]:
    """Two 64-bit numbers for some words."""
    digest = blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


class Values:
    """The distinct (field, hash) pairs, numbered from 1; 0 stands for an absent field.

    Attributes
    ----------
    numbers : array of uint64
        The two numbers of each value; those of 0 are 0.
    is_symbolic : array of bool
        For each value, whether it is an input with a symbolic size.
    """

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        self._field_codes = as_array(details.field_codes)
        self._pairs, first, inverse = np.unique(
            _pairs(self._field_codes, as_array(details.hash_codes)), return_index=True, return_inverse=True
        )
        self._of_component: Codes = (inverse + 1).astype(np.int32)
        self._component: list[int] = first.tolist()
        self.numbers: Lanes = np.zeros((2, len(first) + 1), dtype=np.uint64)
        self.is_symbolic = np.zeros(len(first) + 1, dtype=bool)
        for value, component in enumerate(self._component, 1):
            field, hash_, text = self._split(component)
            self.numbers[:, value] = number_of(field, hash_)
            self.is_symbolic[value] = field.startswith("example_inputs") and shows_symbol(text)

    def by_field(self, set_code: int) -> Codes:
        """The values of a set, one place for each field; if a field occurs twice, the last one counts."""
        components = self._details.sets[set_code]
        found = np.zeros(len(self._details.fields), dtype=np.int32)
        found[self._field_codes[components]] = self._of_component[components]
        return found

    def of_hashes(self, fields: Codes, hashes: Codes) -> Codes:
        """The values that have some hashes in some fields; 0 for a hash of -1."""
        found = np.searchsorted(self._pairs, _pairs(fields, hashes)) + 1
        return np.where(hashes < 0, 0, found).astype(np.int32)

    def codes(self, fields: Iterable[str]) -> list[int]:
        """The codes of the fields that exist."""
        found = (self._details.field_code(field) for field in fields)
        return [code for code in found if code is not None]

    def of_field(self, field: str) -> list[tuple[int, str, str]]:
        """Every value of a field: its number, its hash and the first text printed for it."""
        code = self._details.field_code(field)
        if code is None:
            return []
        first, end = np.searchsorted(self._pairs, [code << 32, (code + 1) << 32]).tolist()
        return [(at + 1, *self._split(self._component[at])[1:]) for at in range(first, end)]

    def change(self, field: str, parts: Iterable[str]) -> Lanes:
        """What to subtract so that values of a field are distinguished by their texts without some parts.

        Values with equal texts but different hashes differ in something that is not printed; they
        stay different.
        """
        values = self.of_field(field)
        hashes: dict[str, set[str]] = defaultdict(set)
        for _, hash_, text in values:
            hashes[text].add(hash_)
        change = np.zeros_like(self.numbers)
        for value, hash_, text in values:
            hidden = hash_ if len(hashes[text]) > 1 else ""
            number = number_of(field, "text", without_parts(text, parts), hidden)
            change[:, value] = self.numbers[:, value] - np.array(number, dtype=np.uint64)
        return change

    def _split(self, component: int) -> tuple[str, str, str]:
        text = self._details.components[component]
        field = self._details.fields[self._details.field_codes[component]]
        # "[", 51 characters of the hash, "] ", the field, ": ", the value.
        return field, text[1:52], text[54 + len(field) + 2 :]


def _pairs(fields: Codes, hashes: Codes) -> npt.NDArray[np.int64]:
    pairs: npt.NDArray[np.int64] = (fields.astype(np.int64) << 32) | hashes
    return pairs
