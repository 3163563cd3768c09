"""A store of hash details: each distinct text once, and integer codes that everything else works with.

One lookup has about 640 hash details and 100 kB of text, nearly all of it equal to the lookup before.
A *component* is one distinct text ``[hash] field: value``; a *set* is the components of one key. Two
details are equal if field and hash are equal. Texts do not count: they may contain addresses, and may be cut.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from cachescope.component_sets import Codes, ComponentSets, Numbers
from cachescope.components import Detail, join_components, parse_component


class HashDetails:
    """The hash details of many keys, each distinct text stored once.

    Readers fill it through `add`; afterwards it is read only. `sets[i]` is an array of component codes in
    torch's own order; `field_codes` and `hash_codes` map a component code to its field and hash.
    """

    def __init__(self) -> None:
        self.components: list[str] = []
        self.fields: list[str] = []
        self.sets = ComponentSets()
        self._component_code: dict[str, int] = {}
        self._field_code: dict[str, int] = {}
        self._hash_code: dict[str, int] = {}
        self._component_field: list[int] = []
        self._component_hash: list[int] = []
        self._arrays: tuple[Codes, Codes] | None = None
        # Whether a base has each of its fields once, for the bases checked so far.
        self._single_fields: dict[int, bool] = {}
        # The same pair is often compared several times in a row.
        self._last_compared = -1, -1
        self._last_changes: list[tuple[int, int | None, int | None]] = []
        self._direction_of_set: dict[int, str | None] = {}
        self._direction_of_components: dict[tuple[int | None, int | None], str | None] = {}

    def add(self, components: Iterable[str]) -> tuple[int | None, list[str]]:
        """Store the components of one key.

        Returns
        -------
        set_code : int or None
            The code of the set, the same for equal sets; None if there are no components.
        rejected : list of str
            Components that are no hash details.
        """
        texts = list(components)
        rejected: list[str] = []
        known = self.add_components(texts)
        if None in known:
            rejected = [text for text, code in zip(texts, known, strict=True) if code is None]
        codes = [code for code in known if code is not None]
        return self.add_codes(array("i", codes).tobytes()) if codes else None, rejected

    def add_or_join(self, components: list[str]) -> tuple[int | None, list[str]]:
        """Like `add`, for components that may have been split at every newline, as in torch 2.4."""
        set_code, rejected = self.add(components)
        return self.add(join_components(components)) if rejected else (set_code, rejected)

    def add_codes(self, codes: bytes) -> int:
        """Store the component codes of one key, as the bytes of an array; equal sets have the same code."""
        return self.sets.add(codes)

    def add_components(self, texts: list[str]) -> list[int | None]:
        """Store components; return the code of each, or None if it is no hash detail."""
        # Nearly always all of them are known, and `map` is faster than any loop in Python.
        known = list(map(self._component_code.get, texts))
        if None not in known:
            return known
        return [
            self.add_component(text) if code is None else code
            for text, code in zip(texts, known, strict=True)
        ]

    def add_component(self, text: str) -> int | None:
        """Store one component; return its code, or None if it is no hash detail."""
        if (code := self._component_code.get(text)) is not None:
            return code
        detail = parse_component(text)
        if detail is None:
            return None
        self._arrays = None
        code = self._component_code[text] = len(self.components)
        self.components.append(text)
        field = self._field_code.get(detail.field)
        if field is None:
            field = self._field_code[detail.field] = len(self.fields)
            self.fields.append(detail.field)
        self._component_field.append(field)
        self._component_hash.append(self._hash_code.setdefault(detail.detail_hash, len(self._hash_code)))
        return code

    @property
    def field_codes(self) -> Codes:
        """Component code -> field code."""
        return self._code_arrays()[0]

    @property
    def hash_codes(self) -> Codes:
        """Component code -> hash code."""
        return self._code_arrays()[1]

    def _code_arrays(self) -> tuple[Codes, Codes]:
        if self._arrays is None:
            self._arrays = (
                np.array(self._component_field, dtype=np.int32),
                np.array(self._component_hash, dtype=np.int32),
            )
        return self._arrays

    def details(self, set_code: int) -> list[Detail]:
        """The hash details of one set, in torch's order."""
        found = (parse_component(self.components[code]) for code in self.sets[set_code])
        return [detail for detail in found if detail is not None]

    def detail(self, set_code: int, field: str) -> Detail | None:
        """One hash detail of a set by its field; None if the set has no such field."""
        code = self.component_of(set_code, field)
        return None if code is None else parse_component(self.components[code])

    def component_of(self, set_code: int, field: str) -> int | None:
        """The component code of a field in a set; None if the set has no such field."""
        wanted = self.field_code(field)
        if wanted is None:
            return None
        codes = self.sets[set_code]
        at = np.flatnonzero(self.field_codes[codes] == wanted)
        return int(codes[at[0]]) if len(at) else None

    def field_code(self, field: str) -> int | None:
        """The code of a field; None if no set has it."""
        return self._field_code.get(field)

    def hash_code(self, set_code: int, field: str) -> int | None:
        """The hash code of a field in a set; equal codes mean equal hashes."""
        code = self.component_of(set_code, field)
        return None if code is None else int(self.hash_codes[code])

    def direction(self, set_code: int) -> str | None:
        """Whether an FX graph is ``forward``, ``backward`` or for ``inference``; None if not recorded.

        Read from ``fx_kwargs[is_backward]`` and ``fx_kwargs[is_inference]``, which AOTAutograd keys do not have.
        """
        if set_code not in self._direction_of_set:
            flags = (
                self.component_of(set_code, "fx_kwargs[is_backward]"),
                self.component_of(set_code, "fx_kwargs[is_inference]"),
            )
            if flags not in self._direction_of_components:
                self._direction_of_components[flags] = self._direction(*map(self._value_text, flags))
            self._direction_of_set[set_code] = self._direction_of_components[flags]
        return self._direction_of_set[set_code]

    def _value_text(self, code: int | None) -> str | None:
        detail = None if code is None else parse_component(self.components[code])
        return None if detail is None else detail.value_text

    @staticmethod
    def _direction(is_backward: str | None, is_inference: str | None) -> str | None:
        if is_backward is None:
            return None
        if is_backward == "True":
            return "backward"
        return "inference" if is_inference == "True" else "forward"

    def changed_fields(self, before: int, after: int) -> tuple[str, ...]:
        """Fields whose hash differs, or that are new or gone, in torch's order. Texts are not compared.

        Examples
        --------
        >>> store = HashDetails()
        >>> old, _ = store.add(["[" + "a" * 51 + "] x: 1", "[" + "b" * 51 + "] y: 2"])
        >>> new, _ = store.add(["[" + "a" * 51 + "] x: 1 at 0x7f", "[" + "c" * 51 + "] z: 3"])
        >>> store.changed_fields(old, new)
        ('z', 'y')
        """
        return tuple(self.fields[field] for field, _, _ in self.changes(before, after))

    def changes(self, before: int, after: int) -> list[tuple[int, int | None, int | None]]:
        """Like `changed_fields`, as field codes with the component codes of both sides; None if a side lacks the field."""
        if (before, after) != self._last_compared:
            self._last_changes = self._changes(before, after)
            self._last_compared = before, after
        return self._last_changes

    def _changes(self, before: int, after: int) -> list[tuple[int, int | None, int | None]]:
        if before == after:
            return []
        if (in_place := self._changed_in_place(before, after)) is not None:
            return in_place
        old, new = self._by_field(before), self._by_field(after)
        hashes = self._component_hash
        found: list[tuple[int, int | None, int | None]] = []
        for field, code in new.items():
            other = old.get(field)
            if other is None or hashes[other] != hashes[code]:
                found.append((field, other, code))
        return found + [(field, code, None) for field, code in old.items() if field not in new]

    def _changed_in_place(self, before: int, after: int) -> list[tuple[int, int | None, int | None]] | None:
        """The changes if both have the same fields in the same order, as nearly all do; None if not."""
        differences = self.sets.differences(before, after)
        if differences is None:
            return None
        base, codes = differences
        # If a field occurs twice, only the last one counts.
        if not self.has_each_field_once(base):
            return None
        fields, hashes = self._component_field, self._component_hash
        found: list[tuple[int, int | None, int | None]] = []
        for code, old, new in codes:
            field = fields[code]
            if fields[old] != field or fields[new] != field:
                return None
            if hashes[old] != hashes[new]:
                found.append((field, old, new))
        return found

    def has_each_field_once(self, base: int) -> bool:
        """Whether a base has no field twice."""
        if base not in self._single_fields:
            fields = self.field_codes[self.sets.base(base)]
            self._single_fields[base] = bool(np.bincount(fields).max(initial=0) <= 1)
        return self._single_fields[base]

    def differing(self, sets: Sequence[int]) -> tuple[Codes, Codes]:
        """The fields in which some sets differ, and the hashes of each set there.

        Returns
        -------
        fields : array of int
            Field codes.
        hashes : array of int
            Hash codes, a row for each set and a column for each field; -1 if a set has no such field.
        """
        bases, sizes, places, codes = self.sets.joined(sets)
        by_base = {base: self._hash_by_field(self.sets.base(base)) for base in np.unique(bases).tolist()}
        rows = np.repeat(np.arange(len(sets)), sizes)
        odd = self._without_the_layout_of_their_base(bases, rows, places, codes)
        by_row = {row: self._hash_by_field(self.sets[sets[row]]) for row in odd.tolist()}
        kept = ~np.isin(rows, odd)
        rows, codes = rows[kept], codes[kept]
        patched = self.field_codes[codes]
        first = by_base[int(bases[0])]
        varies = np.logical_or.reduce([one != first for one in (*by_base.values(), *by_row.values())])
        varies[patched] = True
        fields = np.flatnonzero(varies).astype(np.int32)
        hashes = np.empty((len(sets), len(fields)), dtype=np.int32)
        for base, held in by_base.items():
            hashes[bases == base] = held[fields]
        hashes[rows, (np.cumsum(varies) - 1)[patched]] = self.hash_codes[codes]
        for row, held in by_row.items():
            hashes[row] = held[fields]
        differs = (hashes != hashes[0]).any(axis=0)
        return fields[differs], hashes[:, differs]

    def _without_the_layout_of_their_base(
        self, bases: Codes, rows: Numbers, places: Codes, codes: Codes
    ) -> Numbers:
        """The rows of sets that somewhere have another field than their base, or that have a field twice."""
        is_odd = np.zeros(len(bases), dtype=bool)
        for base in np.unique(bases).tolist():
            if not self.has_each_field_once(base):
                is_odd[bases == base] = True
            mine = bases[rows] == base
            layout = self.field_codes[self.sets.base(base)]
            is_odd[rows[mine][layout[places[mine]] != self.field_codes[codes[mine]]]] = True
        return np.flatnonzero(is_odd)

    def _hash_by_field(self, codes: Codes) -> Codes:
        """The hash code of each field; -1 if the field is missing. If a field occurs twice, the last one counts."""
        found = np.full(len(self.fields), -1, dtype=np.int32)
        found[self.field_codes[codes]] = self.hash_codes[codes]
        return found

    def hashes_of(self, sets: Sequence[int], field: str) -> Codes:
        """The hash code of a field in each of some sets; -1 if a set does not have it."""
        wanted = self.field_code(field)
        found = np.full(len(sets), -1, dtype=np.int32)
        if wanted is None or not len(sets):
            return found
        bases, sizes, places, codes = self.sets.joined(sets)
        rows = np.repeat(np.arange(len(sets)), sizes)
        for base in np.unique(bases).tolist():
            found[bases == base] = self._hash_by_field(self.sets.base(base))[wanted]
        here = self.field_codes[codes] == wanted
        found[rows[here]] = self.hash_codes[codes[here]]
        for row in self._without_the_layout_of_their_base(bases, rows, places, codes).tolist():
            found[row] = self._hash_by_field(self.sets[sets[row]])[wanted]
        return found

    def _by_field(self, set_code: int) -> dict[int, int]:
        codes = self.sets[set_code]
        return dict(zip(self.field_codes[codes].tolist(), codes.tolist(), strict=True))

    def restore(self, components: Sequence[str], sets: Iterable[npt.NDArray[np.integer]]) -> None:
        """Fill an empty store with the contents of another one, with the same codes.

        Raises
        ------
        ValueError
            If these cannot be the contents of a store.
        """
        for number, text in enumerate(components):
            if not isinstance(text, str) or self.add_component(text) != number:
                raise ValueError(f"component {number} is no hash detail, or is there twice")
        for number, codes in enumerate(sets):
            if len(codes) and not (codes.min() >= 0 and codes.max() < len(components)):
                raise ValueError(f"set {number} has components that are not there")
            if self.add_codes(codes.astype(np.int32).tobytes()) != number:
                raise ValueError(f"set {number} is there twice")
