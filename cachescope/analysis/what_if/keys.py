"""What-if keys: what torch's keys would distinguish if some fields did not count.

torch's own key cannot be rebuilt from hash details (it hashes one pickle of everything). A what-if key is 128
bits over the details: the sum, in two lanes modulo 2**64, of one blake2b number per (field, hash). A sum does not depend on
order, is the same on every machine, and removing a field is a subtraction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt

from cachescope.analysis.history.timeline import shows_symbol
from cachescope.component_sets import Codes
from cachescope.details import HashDetails
from cachescope.keys.key_fields import Removed, is_tensor_text, without_parts

Lanes = npt.NDArray[np.uint64]
"""Two rows of 64 bits, one column per key."""

Column = npt.NDArray[np.integer]

_CHUNK: Final = 2048
# The sum is cached for names with this many fields: inductor_config has 600.
_FAMILY: Final = 16


@dataclass(frozen=True, slots=True)
class Key:
    """One key of torch, as far as it is known: where it belongs, and its hash details."""

    cache: str
    cache_key: str
    direction: str | None
    detail_set: int | None


class KeyTable:
    """The what-if keys of many keys, under any schema.

    Two keys of torch that differ although every recorded field is equal stay different under every schema: the
    difference is not in the list. A key without details keeps its identity. Keys of another cache or direction
    never become equal.
    """

    def __init__(self, details: HashDetails, keys: Sequence[Key]) -> None:
        self._details = details
        self.keys = keys
        self._values = _Values(details)
        self._row_of_key, sets, homes = _rows(keys)
        self.has_details: npt.NDArray[np.bool_] = self._row_of_key >= 0
        self._grid = _Grid(self._values, details, sets, homes)
        self._own = _own_parts(keys, self._row_of_key)
        self._families: dict[str, Lanes] = {}
        for name, count in Counter(field.partition("[")[0] for field in self.varying).items():
            if count >= _FAMILY:
                self._family(name)

    @property
    def fields(self) -> list[str]:
        """Every field that some key has."""
        return [self._details.fields[code] for code in self._grid.present]

    @property
    def varying(self) -> list[str]:
        """The fields that differ between keys of one cache; no other can distinguish two keys."""
        return [self._details.fields[code] for code in self._grid.varying]

    def column(self, field: str, keys: npt.NDArray[np.int64]) -> Column:
        """The values of some keys in a varying field: equal numbers mean equal hashes, 0 is absent."""
        (code,) = self._values.codes([field])
        return self._grid.column(code)[self._row_of_key[keys]]

    def joins(self, field: str) -> bool:
        """Whether keys may become equal without a varying field; False is certain."""
        (code,) = self._values.codes([field])
        return self._grid.joins(code)

    def is_tensor(self, field: str) -> bool:
        """Whether a field contains the metadata of a tensor in some key."""
        return any(is_tensor_text(text) for _, _, text in self._values.of_field(field))

    @property
    def is_symbolic(self) -> npt.NDArray[np.bool_]:
        """For each key, whether one of its inputs has a symbolic size."""
        found = (
            self._grid.is_symbolic[np.maximum(self._row_of_key, 0)] if len(self._grid.is_symbolic) else False
        )
        return self.has_details & found

    def lanes(self, removed: Removed) -> Lanes:
        """The what-if key of every key, without what is removed; removing an unknown field has no effect."""
        found = self._grid.total.copy()
        families = self._whole_families(removed.fields)
        for name in families:
            found -= self._family(name)
        rest = [field for field in removed.fields if field.partition("[")[0] not in families]
        self._grid.subtract_all(found, self._values.codes(rest))
        for field, parts in removed.parts.items():
            for code in self._values.codes([field]):
                self._grid.subtract(found, code, self._values.change(field, parts))
        lanes = found[:, np.maximum(self._row_of_key, 0)] if found.shape[1] else np.zeros_like(self._own)
        return np.where(self.has_details, lanes, np.uint64(0)) + self._own

    def _whole_families(self, fields: Iterable[str]) -> set[str]:
        """Names of which many fields exist, all of them removed."""
        count = Counter(field.partition("[")[0] for field in fields)
        many = {name for name, n in count.items() if n >= _FAMILY}
        if many:
            there = Counter(field.partition("[")[0] for field in self.fields)
            many = {name for name in many if count[name] == there[name]}
        return many

    def _family(self, name: str) -> Lanes:
        if name not in self._families:
            total = np.zeros_like(self._grid.total)
            mine = [field for field in self.fields if field.partition("[")[0] == name]
            self._grid.subtract_all(total, self._values.codes(mine))
            self._families[name] = np.uint64(0) - total
        return self._families[name]


def what_if_key(lanes: Lanes, key: int) -> str:
    """A what-if key as text: ``w`` and 32 hexadecimal digits, so that nobody mistakes it for one of torch's."""
    return f"w{int(lanes[0, key]):016x}{int(lanes[1, key]):016x}"


def distinct(numbers: npt.NDArray[np.uint64]) -> int:
    """Count the different numbers."""
    ordered = np.sort(numbers)
    return int((ordered[1:] != ordered[:-1]).sum()) + bool(len(ordered))


def number_of(*words: str) -> tuple[int, int]:
    """Two 64-bit numbers for some words."""
    digest = blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


class _Values:
    """The distinct (field, hash) pairs, numbered from 1; 0 stands for an absent field."""

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        self._code_of_field = {name: code for code, name in enumerate(details.fields)}
        pairs = (details.field_codes.astype(np.int64) << 32) | details.hash_codes
        _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
        self.of_component: Codes = (inverse + 1).astype(np.int32)
        self._first: Codes = first.astype(np.int32)
        numbers = np.zeros((2, len(first) + 1), dtype=np.uint64)
        symbolic = np.zeros(len(first) + 1, dtype=bool)
        for value, component in enumerate(first.tolist(), 1):
            field, hash_, text = self._split(component)
            numbers[:, value] = number_of(field, hash_)
            symbolic[value] = field.startswith("example_inputs") and shows_symbol(text)
        self.numbers: Lanes = numbers
        # The values of one field have consecutive numbers.
        n_fields = len(details.fields)
        self.first_of_field = np.searchsorted(details.field_codes[first], np.arange(n_fields + 1)) + 1
        self.is_symbolic = symbolic

    def codes(self, fields: Iterable[str]) -> list[int]:
        """The codes of the fields that exist."""
        return [self._code_of_field[field] for field in fields if field in self._code_of_field]

    def of_field(self, field: str) -> list[tuple[int, str, str]]:
        """Every value of a field: its number, its hash and the first text printed for it."""
        if field not in self._code_of_field:
            return []
        fields = self._details.field_codes[self._first]
        at = np.flatnonzero(fields == self._code_of_field[field])
        return [(int(n) + 1, *self._split(int(self._first[n]))[1:]) for n in at]

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
        field = self._details.fields[int(self._details.field_codes[component])]
        # "[", 51 characters of the hash, "] ", the field, ": ", the value.
        return field, text[1:52], text[54 + len(field) + 2 :]


class _Grid:
    """The sets of hash details as a grid of values: a sum per set, and columns for the fields that vary.

    A column is kept only if the sets of one cache differ in it; what all of them share is one number.
    """

    def __init__(
        self, values: _Values, details: HashDetails, sets: list[int], homes: list[tuple[str, str | None]]
    ) -> None:
        self._values = values
        self._details = details
        self._sets = sets
        self._n_fields = len(details.fields)
        caches = sorted({cache for cache, _ in homes})
        self._cache = np.array([caches.index(cache) for cache, _ in homes], dtype=np.int32)
        self._shared: Codes = np.zeros((len(caches), self._n_fields), dtype=np.int32)
        self.total: Lanes = np.zeros((2, len(sets)), dtype=np.uint64)
        self.is_symbolic = np.zeros(len(sets), dtype=bool)
        self._field_of_component = details.field_codes
        self._scan(homes)
        # Counted from the first value of each field: two bytes are nearly always enough.
        most = np.diff(values.first_of_field).max(initial=0)
        kind = np.uint16 if most < 2**16 - 1 else np.int32
        self._columns: Column = np.zeros((len(self.varying), len(sets)), dtype=kind)
        self._fill()
        self._distinct = distinct(self.total[0])

    def _scan(self, homes: list[tuple[str, str | None]]) -> None:
        seen = np.zeros(len(self._shared), dtype=bool)
        varies = np.zeros(self._n_fields, dtype=bool)
        present = np.zeros(self._n_fields, dtype=bool)
        numbers = self._values.numbers
        for start in range(0, len(self._sets), _CHUNK):
            grid = self._chunk(start)
            here = slice(start, start + len(grid))
            for lane in (0, 1):
                self.total[lane, here] = numbers[lane][grid].sum(axis=1, dtype=np.uint64)
            if self._values.is_symbolic.any():
                self.is_symbolic[here] = self._values.is_symbolic[grid].any(axis=1)
            present |= grid.any(axis=0)
            for cache in range(len(self._shared)):
                mine = grid[self._cache[here] == cache]
                if not len(mine):
                    continue
                if not seen[cache]:
                    self._shared[cache], seen[cache] = mine[0], True
                varies |= (mine != self._shared[cache]).any(axis=0)
        homes_numbers = {home: number_of(home[0], home[1] or "") for home in set(homes)}
        if homes:
            self.total += np.array([homes_numbers[home] for home in homes], dtype=np.uint64).T
        self.present: list[int] = np.flatnonzero(present).tolist()
        self.varying: list[int] = np.flatnonzero(varies).tolist()
        self._column_of = {field: at for at, field in enumerate(self.varying)}

    def _fill(self) -> None:
        if not self.varying:
            return
        before = self._values.first_of_field[self.varying] - 1
        for start in range(0, len(self._sets), _CHUNK):
            grid = self._chunk(start)[:, self.varying]
            self._columns[:, start : start + len(grid)] = np.maximum(grid - before, 0).T

    def _chunk(self, start: int) -> Codes:
        """Some sets as rows of values by field."""
        sets = [self._details.sets[code] for code in self._sets[start : start + _CHUNK]]
        lengths = np.array([len(codes) for codes in sets])
        codes = np.concatenate(sets)
        rows = np.repeat(np.arange(len(sets)), lengths)
        grid = np.zeros((len(sets), self._n_fields), dtype=np.int32)
        grid[rows, self._field_of_component[codes]] = self._values.of_component[codes]
        return grid

    def subtract_all(self, lanes: Lanes, fields: list[int]) -> None:
        """Subtract whole fields from the sum of every set."""
        shared = [field for field in fields if field not in self._column_of]
        if shared:
            lanes -= self._values.numbers[:, self._shared[:, shared]].sum(axis=2, dtype=np.uint64)[
                :, self._cache
            ]
        for field in fields:
            if field in self._column_of:
                self.subtract(lanes, field, self._values.numbers)

    def subtract(self, lanes: Lanes, field: int, numbers: Lanes) -> None:
        """Subtract a number per value of a field from the sum of every set."""
        if field in self._column_of:
            lanes -= self._of_field(field, numbers)[:, self.column(field)]
        else:
            lanes -= numbers[:, self._shared[self._cache, field]]

    def column(self, field: int) -> Column:
        """The values of a varying field, counted from its first; 0 is absent."""
        column: Column = self._columns[self._column_of[field]]
        return column

    def joins(self, field: int) -> bool:
        """Whether sets become equal without a varying field, judged by one lane."""
        left = self.total[0] - self._of_field(field, self._values.numbers)[0, self.column(field)]
        return distinct(left) < self._distinct

    def _of_field(self, field: int, numbers: Lanes) -> Lanes:
        first, end = self._values.first_of_field[field : field + 2]
        return np.concatenate([np.zeros((2, 1), dtype=np.uint64), numbers[:, first:end]], axis=1)


def _rows(keys: Sequence[Key]) -> tuple[Codes, list[int], list[tuple[str, str | None]]]:
    """One row per distinct set of details and home, and the row of every key; -1 for a key without details."""
    rows: dict[tuple[int, str, str | None], int] = {}
    of_key = np.full(len(keys), -1, dtype=np.int32)
    for at, key in enumerate(keys):
        if key.detail_set is not None:
            of_key[at] = rows.setdefault((key.detail_set, key.cache, key.direction), len(rows))
    return of_key, [row[0] for row in rows], [row[1:] for row in rows]


def _own_parts(keys: Sequence[Key], row_of_key: Codes) -> Lanes:
    """The part that only one key has: everything if its details are missing, and what no field shows."""
    own = np.zeros((2, len(keys)), dtype=np.uint64)
    sharing: dict[int, list[int]] = defaultdict(list)
    for at, row in enumerate(row_of_key.tolist()):
        sharing[row].append(at)
    alone: Mapping[int, list[int]] = {row: at for row, at in sharing.items() if row < 0 or len(at) > 1}
    for at in (at for group in alone.values() for at in group):
        own[:, at] = number_of(keys[at].cache, "key", keys[at].cache_key)
    return own
