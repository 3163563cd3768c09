"""What-if keys: what torch's keys would distinguish if some fields did not count.

torch's own key cannot be rebuilt from hash details (it hashes one pickle of everything). A what-if key is 128
bits over the details: the sum, in two lanes modulo 2**64, of one blake2b number per (field, hash). A sum does not depend on
order, is the same on every machine, and removing a field is a subtraction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from operator import add, sub
from typing import Final

from cachescope.analysis.key_distance import KeyDistances
from cachescope.analysis.what_if.cells import Key
from cachescope.components import Detail, parse_component
from cachescope.details import HashDetails
from cachescope.grouping import by_key
from cachescope.keys.key_schema import Removed, is_tensor_text, without_parts

# Both lanes of a sum are in one integer, so far apart that the first never carries into the second.
_LANE: Final = 96
_BITS: Final = (1 << 64) - 1


def number_of(*words: str) -> int:
    """The number of some words: two lanes of 64 bits."""
    digest = blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little") + (int.from_bytes(digest[8:], "little") << _LANE)


def what_if_key(total: int) -> str:
    """A what-if key as text: ``w`` and 32 hexadecimal digits, so that nobody mistakes it for one of torch's."""
    return f"w{total & _BITS:016x}{total >> _LANE & _BITS:016x}"


class KeyTable:
    """The what-if keys of many keys, under any schema.

    Two keys of torch that differ although every recorded field is equal stay different under every schema: the
    difference is not in the list. A key without details keeps its identity. Keys of another cache or direction
    never become equal.
    """

    def __init__(self, distances: KeyDistances, keys: Sequence[Key]) -> None:
        self.keys = keys
        details = distances.details
        self._values = _Values(details)
        self.with_details = [at for at, key in enumerate(keys) if key.detail_set is not None]
        # By cache, the numbers of the values that all of its keys share; 0 for a field that none has.
        self._shared: dict[str, dict[int, int]] = {}
        # For each field that varies, its number in each key of `with_details`; 0 where it is absent.
        self._columns: dict[int, list[int]] = {}
        self._read(distances)
        present = {field for held in self._shared.values() for field in held}
        present |= {field for field, column in self._columns.items() if any(column)}
        # Every field of any key; and the fields in which keys of one cache differ, since only these can tell two keys apart.
        self.fields = [details.fields[code] for code in sorted(present)]
        self.varying = [details.fields[code] for code in self._columns]
        totals = self._sums()
        count = Counter(totals)
        # The keys that may become equal to others.
        self.can_join = {key for key, one in zip(self.with_details, totals, strict=True) if count[one] == 1}
        # The sums of the keys of `with_details`; keys that stay different from all others have a number of their own added.
        self._totals = [
            total if key in self.can_join else total + _own(keys[key])
            for key, total in zip(self.with_details, totals, strict=True)
        ]

    def _read(self, distances: KeyDistances) -> None:
        """Fill in what the keys of each cache share, and the columns of the fields that vary."""
        number = self._values.number
        # The hashes of each key by field: only the few that differ from those of the first key with the same fields.
        of_key = [distances.hashes(code) for key in self.keys if (code := key.detail_set) is not None]
        held = {first: distances.first(first)[1] for first, _ in of_key}
        of_cache = by_key((self.keys[key].cache, place) for place, key in enumerate(self.with_details))
        may_vary = {field for _, others in of_key for field in others}
        for places in of_cache.values():
            first, *rest = (held[one] for one in {of_key[place][0] for place in places})
            may_vary.update(field for other in rest for field, _ in other.items() ^ first.items())
        hashes = {field: [held[first].get(field) for first, _ in of_key] for field in sorted(may_vary)}
        for place, (_, others) in enumerate(of_key):
            for field, code in others.items():
                hashes[field][place] = code
        for field, column in hashes.items():
            if any(len(set(map(column.__getitem__, places))) > 1 for places in of_cache.values()):
                numbers = {code: 0 if code is None else number(field, code) for code in set(column)}
                self._columns[field] = list(map(numbers.__getitem__, column))
        for cache, places in of_cache.items():
            of_first, others = of_key[places[0]]
            every = held[of_first] | others
            self._shared[cache] = {
                field: number(field, code) for field, code in every.items() if field not in self._columns
            }

    def is_tensor(self, field: str) -> bool:
        """Whether a field contains the metadata of a tensor in some key."""
        return any(is_tensor_text(value.value_text) for _, value in self._values.of_field(field))

    def column(self, field: str) -> list[int]:
        """The values of a field that varies in the keys of `with_details`: equal numbers mean equal hashes, 0 is absent."""
        return self._columns[self._values.code(field)]

    def column_without(self, field: str, parts: Iterable[str]) -> list[int]:
        """The same without some parts of the values: equal numbers mean that the rest is equal."""
        changed = self._values.without(field, parts)
        return [changed.get(number, number) for number in self.column(field)]

    def joined(self, removed: Removed) -> list[list[int]]:
        """The groups of keys that become equal without what is removed."""
        first: dict[int, int] = {}
        groups: dict[int, list[int]] = {}
        for key, total in zip(self.with_details, self._without(removed), strict=True):
            one = first.setdefault(total, key)
            if one != key:
                groups.setdefault(one, [one]).append(key)
        return list(groups.values())

    def names(self, removed: Removed) -> list[str]:
        """The what-if key of every key, without what is removed; removing an unknown field has no effect."""
        code = self._values.code
        less: dict[str, int] = {}
        for cache, held in self._shared.items():
            less[cache] = sum(held.get(code(field), 0) for field in removed.fields)
            for field, parts in removed.parts.items():
                if number := held.get(code(field)):
                    less[cache] += number - self._values.without(field, parts)[number]
        totals = dict(zip(self.with_details, self._without(removed), strict=True))
        return [
            what_if_key(totals[at] - less[key.cache] if at in totals else _own(key))
            for at, key in enumerate(self.keys)
        ]

    def _sums(self) -> list[int]:
        """The sum of each key of `with_details`."""
        homes = {
            home: number_of(*(word or "" for word in home)) + sum(self._shared[home[0]].values())
            for home in {self.keys[key].home for key in self.with_details}
        }
        totals = [homes[self.keys[key].home] for key in self.with_details]
        for column in self._columns.values():
            totals = list(map(add, totals, column))
        return totals

    def _without(self, removed: Removed) -> list[int]:
        """The sums without what is removed from varying fields."""
        totals = self._totals
        for field in removed.fields:
            if (column := self._columns.get(self._values.code(field))) is not None:
                totals = list(map(sub, totals, column))
        for field, parts in removed.parts.items():
            if (column := self._columns.get(self._values.code(field))) is not None:
                totals = list(map(add, map(sub, totals, column), self.column_without(field, parts)))
        return totals


def _own(key: Key) -> int:
    return number_of(key.cache, "key", key.name)


class _Values:
    """The distinct values of the fields of a store, each with its number in what-if keys."""

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        self._numbers: dict[tuple[int, int], int] = {}
        # The first component that has each value.
        self._first: dict[tuple[int, int], int] = {}
        for code, pair in enumerate(zip(details.field_codes, details.hash_codes, strict=True)):
            self._first.setdefault(pair, code)

    def code(self, field: str) -> int:
        """The code of a field; -1 if no set has it."""
        code = self._details.field_code(field)
        return -1 if code is None else code

    def number(self, field: int, hash_code: int) -> int:
        """The number of a value, by the codes of its field and hash."""
        pair = field, hash_code
        if pair not in self._numbers:
            value = self._printed(pair)
            self._numbers[pair] = number_of(value.field, value.detail_hash)
        return self._numbers[pair]

    def of_field(self, field: str) -> list[tuple[int, Detail]]:
        """Every value of a field: its number, and its text as torch first printed it."""
        code = self.code(field)
        return [(self.number(*pair), self._printed(pair)) for pair in self._first if pair[0] == code]

    def without(self, field: str, parts: Iterable[str]) -> Mapping[int, int]:
        """For each number of a value, a number that tells values apart by their texts without some parts.

        Values with equal texts but different hashes differ in something that is not printed; they
        stay different.
        """
        found = {}
        of_text = by_key((one[1].value_text, one) for one in self.of_field(field))
        for text, alike in of_text.items():
            for number, value in alike:
                hidden = value.detail_hash if len(alike) > 1 else ""
                found[number] = number_of(field, "text", without_parts(text, parts), hidden)
        return found

    def _printed(self, pair: tuple[int, int]) -> Detail:
        found = parse_component(self._details.components[self._first[pair]])
        assert found is not None
        return found
