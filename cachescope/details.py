"""A store of hash details: each distinct text once, and integer codes that everything else works with.

One lookup has about 640 hash details and 100 kB of text, nearly all of it equal to the lookup before.
A *component* is one distinct text ``[hash] field: value``; a *set* is the components of one key. Two
details are equal if field and hash are equal. Texts do not count: they may contain addresses, and may be cut.
"""

from __future__ import annotations

import re
from array import array
from base64 import b32encode
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Any, Final

from cachescope.component_sets import ComponentSets
from cachescope.components import Detail, join_components, parse_component
from cachescope.kept import kept

_INPUT: Final = re.compile(r"example_inputs\[\d+\]")
# torch/_inductor/codecache.py, `FxGraphCachePickler._reduce_fake_script_object` (2.13 to 2.15): once it has pickled an opaque object, as a DeviceMesh is,
# the pickler keeps a memo, and the hash of a value depends on all that was pickled before. No text has its hash then, by either protocol.
_TAG: Final = "cache_key_tag"
_NO_TAG: Final = f"] {_TAG}: "
_WITHOUT_MEMO: Final = {
    f"[v3hzzlv4tjgvp3pyhmzagjd25orl6n7nynoa7svlhhwk73b7u3c{_NO_TAG}",
    f"[moy5b5jobi6pwce65shhaygml3bhexww3vlwxqd2samynhiy4cs{_NO_TAG}",
}
_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]+")

ChangedField = tuple[str, int | None, int | None]
"""A field that differs between two sets, and the codes of its components; None if a side lacks it."""


def differing(old: dict[str, str], new: dict[str, str]) -> list[tuple[str, str, str]]:
    """The names under which two sides differ, with both values."""
    sides = ((name, old.get(name, "not there"), new.get(name, "not there")) for name in {**old, **new})
    return [one for one in sides if one[1] != one[2]]


class HashDetails:
    """The hash details of many keys, each distinct text stored once.

    Readers fill it through `add`; afterwards it is read only. `sets[i]` is an array of component codes in
    torch's own order; `field_codes` and `hash_codes` map a component code to its field and hash. A *layout* is the
    field codes of a set in their order: nearly all sets share a few. If a set has a field twice, the last one counts.
    """

    def __init__(self) -> None:
        self.options: dict[str, dict[str, str]] = {}
        """What is pickled in an ``autograd_config``, by its hash: from the snapshots of processes that have this hash."""
        self.components: list[str] = []
        self.fields: list[str] = []
        self.sets = ComponentSets()
        self.field_codes = array("i")
        self.hash_codes = array("i")
        self.layouts: list[tuple[int, ...]] = []
        self._component_code: dict[str, int] = {}
        self._field_code: dict[str, int] = {}
        self._hash_code: dict[str, int] = {}
        self._layout_number: dict[bytes, int] = {}
        self._layout_of_set = array("i")
        # For each layout, the place of each field.
        self._place_of_field: list[dict[int, int]] = []
        # The same pair is often compared several times in a row.
        self._last_compared = -1, -1
        self._last_changes: list[ChangedField] = []

    def add(self, components: Iterable[str]) -> tuple[int | None, list[str]]:
        """Store the components of one key. Hashes that depend on what was pickled before give way to those of the texts."""
        texts = list(components)
        if _WITHOUT_MEMO.isdisjoint(texts) and any(text.endswith(_NO_TAG) for text in texts):
            texts = [f"[{_hash_of(text)}{text[52:]}" if parse_component(text) else text for text in texts]
        rejected: list[str] = []
        codes: list[Any] = self.add_components(texts)
        if None in codes:
            rejected = [text for text, code in zip(texts, codes, strict=True) if code is None]
            codes = [code for code in codes if code is not None]
        return self.sets.add(array("i", codes).tobytes()) if codes else None, rejected

    def add_or_join(self, components: list[str]) -> tuple[int | None, list[str]]:
        """Like `add`, for components that may have been split at every newline, as in torch 2.4."""
        set_code, rejected = self.add(components)
        return self.add(join_components(components)) if rejected else (set_code, rejected)

    def add_components(self, texts: list[str]) -> list[int | None]:
        """Store components; return the code of each, or None if it is no hash detail."""
        # Nearly always all of them are known, and `map` is faster than any loop in Python.
        known = list(map(self._component_code.get, texts))
        if None not in known:
            return known
        pairs = zip(texts, known, strict=True)
        return [self.add_component(text) if code is None else code for text, code in pairs]

    def add_component(self, text: str) -> int | None:
        """Store one component; return its code, or None if it is no hash detail."""
        if (code := self._component_code.get(text)) is not None:
            return code
        detail = parse_component(text)
        if detail is None:
            return None
        code = self._component_code[text] = len(self.components)
        self.components.append(text)
        field = self._field_code.get(detail.field)
        if field is None:
            field = self._field_code[detail.field] = len(self.fields)
            self.fields.append(detail.field)
        self.field_codes.append(field)
        self.hash_codes.append(self._hash_code.setdefault(detail.detail_hash, len(self._hash_code)))
        return code

    def details(self, set_code: int) -> list[Detail]:
        """The hash details of one set, in torch's order."""
        return [detail for detail in map(self.parsed, self.sets[set_code]) if detail is not None]

    def detail(self, set_code: int, field: str) -> Detail | None:
        """One hash detail of a set by its field; None if the set has no such field."""
        return self.parsed(self.component_of(set_code, field))

    def parsed(self, component: int | None) -> Detail | None:
        """A component as a hash detail; None if there is none."""
        return None if component is None else parse_component(self.components[component])

    def changed_options(self, before: Detail, after: Detail) -> list[tuple[str, str, str]]:
        """The options in which two hashes of ``autograd_config`` differ, with both values; empty unless all of both are known."""
        old, new = (self.options.get(one.detail_hash) for one in (before, after))
        if old is None or new is None or any(text.startswith("<") for text in (*old.values(), *new.values())):
            # Of an object the type alone is known, and that may be what differs.
            return []
        return differing(old, new)

    def component_of(self, set_code: int, field: str) -> int | None:
        """The component code of a field in a set; None if the set has no such field."""
        wanted = self.field_code(field)
        if wanted is None:
            return None
        place = self._place_of_field[self.layout(set_code)].get(wanted)
        return None if place is None else self.sets.at(set_code, place)

    def layout(self, set_code: int) -> int:
        """The number of the layout of a set: its index in `layouts`."""
        known = self._layout_of_set
        if set_code >= len(known):
            known.extend([-1] * (len(self.sets) - len(known)))
        if known[set_code] < 0:
            known[set_code] = self._find_layout(set_code)
        return known[set_code]

    def _find_layout(self, set_code: int) -> int:
        base, patch = self.sets.parts(set_code)
        number = self._of_base(base)
        fields, of_base = self.field_codes, self.layouts[number]
        is_of_base = all(fields[code] == of_base[place] for place, code in patch.items())
        return number if is_of_base else self._numbered(self.sets[set_code])

    @kept
    def _of_base(self, base: int) -> int:
        return self._numbered(self.sets.base(base))

    def _numbered(self, codes: Iterable[int]) -> int:
        """The number of the layout of some components."""
        fields = array("i", map(self.field_codes.__getitem__, codes))
        number = self._layout_number.setdefault(fields.tobytes(), len(self.layouts))
        if number == len(self.layouts):
            self.layouts.append(tuple(fields))
            self._place_of_field.append({field: place for place, field in enumerate(fields)})
        return number

    def field_code(self, field: str) -> int | None:
        """The code of a field; None if no set has it."""
        return self._field_code.get(field)

    def hash_code(self, set_code: int, field: str) -> int | None:
        """The hash code of a field in a set; equal codes mean equal hashes."""
        code = self.component_of(set_code, field)
        return None if code is None else self.hash_codes[code]

    @kept
    def direction(self, set_code: int) -> str | None:
        """Whether an FX graph is ``forward``, ``backward`` or for ``inference``; None if not recorded.

        Read from ``fx_kwargs[is_backward]`` and ``fx_kwargs[is_inference]``, which AOTAutograd keys do not have.
        """
        flags = ("fx_kwargs[is_backward]", "fx_kwargs[is_inference]")
        return self._direction(*(self.component_of(set_code, flag) for flag in flags))

    def value_text(self, code: int | None) -> str | None:
        """The value of a component as torch printed it; None if there is none."""
        detail = self.parsed(code)
        return None if detail is None else detail.value_text

    @kept
    def _direction(self, is_backward: int | None, is_inference: int | None) -> str | None:
        if is_backward is None:
            return None
        if self.value_text(is_backward) == "True":
            return "backward"
        return "inference" if self.value_text(is_inference) == "True" else "forward"

    def text(self, set_code: int | None, field: str) -> str | None:
        """The value of a field in a set as torch printed it; None if there is no set, or no such field in it."""
        return None if set_code is None else self.value_text(self.component_of(set_code, field))

    def inputs(self, set_code: int) -> list[int]:
        """The components of the inputs that a graph was compiled for, in torch's order."""
        codes = self.sets[set_code]
        return [codes[place] for place in self._places_of_inputs(self.layout(set_code))]

    @kept
    def _places_of_inputs(self, layout: int) -> list[int]:
        fields = enumerate(self.layouts[layout])
        return [place for place, field in fields if self.fields[field].startswith("example_inputs")]

    def changed_fields(self, before: int, after: int) -> tuple[str, ...]:
        """Fields whose hash differs, or that are new or gone, in torch's order. Texts are not compared.

        >>> store = HashDetails()
        >>> old, _ = store.add(["[" + "a" * 51 + "] x: 1", "[" + "b" * 51 + "] y: 2"])
        >>> new, _ = store.add(["[" + "a" * 51 + "] x: 1 at 0x7f", "[" + "c" * 51 + "] z: 3"])
        >>> store.changed_fields(old, new)
        ('z', 'y')
        """
        return tuple(field for field, _, _ in self.changes(before, after))

    def changes(self, before: int, after: int) -> list[ChangedField]:
        """Like `changed_fields`, with the components of both sides.

        Inputs are compared by what they are where one has more of them: a symbol is an input of its own, and moves all behind it.
        """
        if (before, after) != self._last_compared:
            self._last_changes = self._changes(before, after)
            self._last_compared = before, after
        return self._last_changes

    @kept
    def has_memo(self, set_code: int) -> bool:
        """Whether torch's hashes of its values cannot be compared: its hashes are those of its texts."""
        text = "" if (code := self.component_of(set_code, _TAG)) is None else self.components[code]
        return text.endswith(_NO_TAG) and text not in _WITHOUT_MEMO

    def _changes(self, before: int, after: int) -> list[ChangedField]:
        found = self._changed_hashes(before, after)
        if self.has_memo(before) != self.has_memo(after):
            told = [{c if c is None else _hash_of(self.components[c]) for c in one[1:]} for one in found]
            found = [one for one, sides in zip(found, told, strict=True) if len(sides) > 1]
        return found

    def _changed_hashes(self, before: int, after: int) -> list[ChangedField]:
        if before == after:
            return []
        if (in_place := self._changed_in_place(before, after)) is not None:
            return in_place
        old, new = self._by_field(before), self._by_field(after)
        gone = self._align_inputs(old, new)
        hashes, names = self.hash_codes, self.fields
        found: list[ChangedField] = []
        for field, code in new.items():
            other = old.get(field)
            if other is None or hashes[other] != hashes[code]:
                found.append((names[field], other, code))
        return found + [(names[field], code, None) for field, code in old.items() if field not in new] + gone

    def _align_inputs(self, old: dict[int, int], new: dict[int, int]) -> list[ChangedField]:
        """Name each input of `old` as the one of `new` that it is compared with, if their numbers differ; returns those that are gone."""
        fields, others = ([f for f in side if _INPUT.fullmatch(self.fields[f])] for side in (old, new))
        if len(fields) == len(others):
            return []
        codes, new_codes = [old.pop(field) for field in fields], [new[field] for field in others]
        gone = dict(enumerate(codes))
        hashes = [[self.hash_codes[code] for code in side] for side in (codes, new_codes)]
        match = SequenceMatcher(a=hashes[0], b=hashes[1], autojunk=False)
        for tag, a, end, b, new_end in match.get_opcodes():
            # Of what differs, a tensor is compared with a tensor, and a number with a number.
            kinds = [
                ["" if tag == "equal" else (self.value_text(c) or "").partition("(")[0] for c in side]
                for side in (codes[a:end], new_codes[b:new_end])
            ]
            for i, j, size in SequenceMatcher(a=kinds[0], b=kinds[1], autojunk=False).get_matching_blocks():
                for at in range(size):
                    old[others[b + j + at]] = gone.pop(a + i + at)
        return [(self.fields[fields[at]], code, None) for at, code in gone.items()]

    def _changed_in_place(self, before: int, after: int) -> list[ChangedField] | None:
        """The changes if both have the same fields in the same order, as nearly all do; None if not."""
        differences = self.sets.differences(before, after)
        if differences is None:
            return None
        base, codes = differences
        number = self._of_base(base)
        if len(self._place_of_field[number]) < len(self.layouts[number]):
            # A base has a field twice.
            return None
        fields, hashes = self.field_codes, self.hash_codes
        found: list[ChangedField] = []
        for code, old, new in codes:
            field = fields[code]
            if fields[old] != field or fields[new] != field:
                return None
            if hashes[old] != hashes[new]:
                found.append((self.fields[field], old, new))
        return found

    def _by_field(self, set_code: int) -> dict[int, int]:
        codes = self.sets[set_code]
        return dict(zip(map(self.field_codes.__getitem__, codes), codes, strict=True))

    def restore(self, components: Sequence[str], sets: Iterable[Sequence[int]]) -> None:
        """Fill an empty store with the contents of another one, with the same codes."""
        for number, text in enumerate(components):
            if not isinstance(text, str) or self.add_component(text) != number:
                raise ValueError(f"component {number} is no hash detail, or is there twice")
        for number, codes in enumerate(sets):
            if codes and not (min(codes) >= 0 and max(codes) < len(components)):
                raise ValueError(f"set {number} has components that are not there")
            if self.sets.add(array("i", codes).tobytes()) != number:
                raise ValueError(f"set {number} is there twice")


def _hash_of(text: str) -> str:
    """A hash of the field of a component with its printed value, without addresses."""
    told = _ADDRESS.sub("", text[53:]).encode("utf-8", "replace")
    return b32encode(sha256(told).digest()).decode().lower()[:51]
