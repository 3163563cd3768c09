"""The component codes of many keys, each stored as its differences from a similar one.

A key has about 640 components, and the keys of a fleet differ from each other in only a few. A *base* is a set that is
stored whole; another set of the same length is stored as the positions where it differs from a base, and its codes there.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from itertools import compress, count
from typing import Final, TypeAlias, overload

Codes: TypeAlias = "array[int]"
"""An array of the type ``i``, not to be changed."""

# For each length. A set that is similar to none of this many bases is stored whole.
_BASES_TRIED: Final = 8
_MOST_DIFFERENT: Final = 0.25


class ComponentSets(Sequence[Codes]):
    """Distinct sets of component codes, in the order in which they were added."""

    def __init__(self) -> None:
        # A set is the number of its base, the positions where it differs, and its codes there, as bytes.
        self._records: list[bytes] = []
        self._number: dict[bytes, int] = {}
        self._bases: list[Codes] = []
        # Each base to be tried with its bytes as one number: the bits that differ are found at once.
        self._bases_of_length: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._alone: dict[bytes, int] = {}

    def add(self, codes: bytes) -> int:
        """Store the bytes of an array of codes; equal sets have the same number."""
        record = self._record(codes)
        number = self._number.setdefault(record, len(self._records))
        if number == len(self._records):
            self._records.append(record)
        return number

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, number: int) -> Codes: ...
    @overload
    def __getitem__(self, number: slice) -> list[Codes]: ...
    def __getitem__(self, number: int | slice) -> Codes | list[Codes]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        base, patch = self.parts(number)
        if not patch:
            return self._bases[base]
        whole = self._bases[base][:]
        for place, code in patch.items():
            whole[place] = code
        return whole

    def at(self, number: int, place: int) -> int:
        """The code of a set at one position."""
        base, patch = self.parts(number)
        return patch.get(place, self._bases[base][place])

    def base(self, number: int) -> Codes:
        """A base by its number."""
        return self._bases[number]

    def parts(self, number: int) -> tuple[int, dict[int, int]]:
        """The base of a set, and its codes at the positions where it differs from its base."""
        record = memoryview(self._records[number]).cast("i").tolist()
        middle = len(record) // 2 + 1
        return record[0], dict(zip(record[1:middle], record[middle:], strict=True))

    def differences(self, one: int, other: int) -> tuple[int, list[tuple[int, int, int]]] | None:
        """Each position where either of two sets differs from their base, with the base's code and theirs."""
        base, mine = self.parts(one)
        base_of_other, theirs = self.parts(other)
        if base != base_of_other:
            return None
        codes = self._bases[base]
        found = []
        for place in sorted(mine.keys() | theirs.keys()):
            code = codes[place]
            found.append((code, mine.get(place, code), theirs.get(place, code)))
        return base, found

    def _record(self, codes: bytes) -> bytes:
        """Encode a set. The choice of its base does not depend on later sets: equal sets have equal records."""
        own, bits = array("i", codes), int.from_bytes(codes, "little")
        bases = self._bases_of_length[len(own)]
        for number, bits_of_base in bases:
            differs = memoryview((bits ^ bits_of_base).to_bytes(len(codes), "little")).cast("i")
            places = list(compress(count(), differs))
            if len(places) <= _MOST_DIFFERENT * len(own):
                return array("i", [number, *places, *map(own.__getitem__, places)]).tobytes()
        number = self._alone.setdefault(codes, len(self._bases))
        if number == len(self._bases):
            self._bases.append(own)
            if len(bases) < _BASES_TRIED:
                bases.append((number, bits))
        return array("i", [number]).tobytes()
