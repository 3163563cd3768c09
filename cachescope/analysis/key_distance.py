"""How far apart two keys are: in how many fields, and in how many parts (dtype, shape, stride, …) of their inputs.

A set of hash details consists of the graph, the inputs and the rest, and nearly all sets of a fleet are made of the same
few of these. So what differs is worked out once for two inputs or two rests, and a distance is a few look-ups.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from cachescope.analysis.differences import field_change
from cachescope.analysis.fields import is_input
from cachescope.components import parse_component
from cachescope.details import HashDetails

_GRAPH: Final = "gm"


class Blocks(NamedTuple):
    """What a set consists of: equal numbers are equal hashes of equal fields."""

    graph: int | None
    """The hash code of the graph; None if the set has none."""
    inputs: int
    rest: int


class _Block:
    """The inputs, or the rest, of a set: its fields, and the hash of each."""

    def __init__(self, held: dict[int, int]) -> None:
        self.fields = tuple(sorted(held))
        self._place = {field: at for at, field in enumerate(self.fields)}
        self._hashes = array("q", (held[field] for field in self.fields))

    def digest(self, patch: Iterable[tuple[int, int]]) -> bytes:
        """A digest of the hashes, with those of some fields replaced."""
        hashes = self._hashes[:]
        for field, hash_code in patch:
            hashes[self._place[field]] = hash_code
        return blake2b(hashes.tobytes(), digest_size=16).digest()


class _Base(NamedTuple):
    """A set that others are stored as their differences from."""

    codes: list[int]
    graph: int | None
    inputs: _Block
    rest: _Block


class KeyDistances:
    """Distances between sets of hash details; answers are kept.

    Parameters
    ----------
    details : HashDetails
        Nothing may be added to it any more.
    """

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        self._fields = list(map(int, details.field_codes))
        self._hashes = list(map(int, details.hash_codes))
        self._is_input = list(map(is_input, details.fields))
        self._graph_field = details.field_code(_GRAPH)
        self._blocks: dict[int, Blocks] = {}
        self._bases: dict[int, _Base] = {}
        # The number of inputs, or of a rest, by how they are stored, and by what they are; and one set that has it.
        self._by_patch: dict[tuple[object, ...], int] = {}
        self._by_content: dict[tuple[tuple[int, ...], bytes], int] = {}
        self._set_with: list[int] = []
        self._changed: dict[tuple[int, int], frozenset[int]] = {}
        self._apart: dict[tuple[int, int], int] = {}
        self._parts: dict[tuple[int | None, int | None], frozenset[str]] = {}

    def graph(self, detail_set: int | None) -> int | None:
        """The hash code of the graph of a set; equal codes are equal graphs."""
        return None if detail_set is None else self.blocks(detail_set).graph

    def blocks(self, detail_set: int) -> Blocks:
        """The graph, the inputs and the rest of a set."""
        found = self._blocks.get(detail_set)
        if found is None:
            found = self._blocks[detail_set] = self._made_blocks(detail_set)
        return found

    def fields(self, one: int, other: int) -> int:
        """In how many fields two sets differ."""
        a, b = self.blocks(one), self.blocks(other)
        return (a.graph != b.graph) + self.apart(a.inputs, b.inputs) + self.apart(a.rest, b.rest)

    def apart(self, one: int, other: int) -> int:
        """In how many fields two inputs, or two rests, differ."""
        if one == other:
            return 0
        found = self._apart.get((one, other))
        if found is None:
            found = self._apart[one, other] = len(self._changed_in(one, other))
        return found

    def only_inputs(self, one: int, other: int) -> bool:
        """Whether two sets differ, but in no field that does not describe the inputs."""
        a, b = self.blocks(one), self.blocks(other)
        return a.graph == b.graph and a.rest == b.rest and a.inputs != b.inputs

    def changed(self, before: int, after: int) -> frozenset[int]:
        """The codes of the fields in which two sets differ."""
        a, b = self.blocks(before), self.blocks(after)
        graph = frozenset([self._graph_field or 0]) if a.graph != b.graph else frozenset()
        return graph | self._changed_in(a.inputs, b.inputs) | self._changed_in(a.rest, b.rest)

    def parts(self, before: int, after: int) -> frozenset[str]:
        """The parts of inputs that differ between two sets, each named with its field."""
        if self.blocks(before).inputs == self.blocks(after).inputs:
            return frozenset()
        found: set[str] = set()
        for field, old, new in self._details.changes(before, after):
            if self._is_input[field]:
                found |= self._parts_of(field, old, new)
        return frozenset(found)

    def fields_and_parts(self, one: int, other: int) -> tuple[int, int]:
        """In how many fields two sets differ, then in how many parts of the inputs among them."""
        return self.fields(one, other), len(self.parts(one, other))

    def example_inputs(self, detail_set: int) -> tuple[int, ...]:
        """The hashes of the inputs that a graph was compiled for, in torch's order."""
        details = self._details
        is_one = [name.startswith("example_inputs") for name in details.fields]
        codes = map(int, details.sets[detail_set])
        return tuple(self._hashes[code] for code in codes if is_one[self._fields[code]])

    def _changed_in(self, one: int, other: int) -> frozenset[int]:
        """The fields in which two inputs, or two rests, differ."""
        if one == other:
            return frozenset()
        found = self._changed.get((one, other))
        if found is None:
            sets = self._set_with[one], self._set_with[other]
            changed = [field for field, _, _ in self._details.changes(*sets) if field != self._graph_field]
            are_inputs = self.blocks(sets[0]).inputs == one
            found = frozenset(field for field in changed if self._is_input[field] == are_inputs)
            self._changed[one, other] = self._changed[other, one] = found
        return found

    def _made_blocks(self, detail_set: int) -> Blocks:
        number, patch = self._details.sets.parts(detail_set)
        base = self._bases.get(number)
        if base is None:
            base = self._bases[number] = self._base(self._details.sets.base(number).tolist())
        fields, hashes = self._fields, self._hashes
        graph = base.graph
        inputs: list[tuple[int, int]] = []
        rest: list[tuple[int, int]] = []
        is_plain = self._details.has_each_field_once(number)
        for at, code in patch.items():
            field, held = fields[code], hashes[code]
            is_plain = is_plain and field == fields[base.codes[at]]
            if held != hashes[base.codes[at]]:
                if field == self._graph_field:
                    graph = held
                else:
                    (inputs if self._is_input[field] else rest).append((field, held))
        if not is_plain:
            base = self._base(list(map(int, self._details.sets[detail_set])))
            return Blocks(
                base.graph,
                self._content(base.inputs, (), detail_set),
                self._content(base.rest, (), detail_set),
            )
        return Blocks(
            graph,
            self._number(("inputs", number, *inputs), base.inputs, inputs, detail_set),
            self._number(("rest", number, *rest), base.rest, rest, detail_set),
        )

    def _base(self, codes: list[int]) -> _Base:
        # If a field occurs twice, only the last one counts.
        held = {self._fields[code]: self._hashes[code] for code in codes}
        graph = None if self._graph_field is None else held.pop(self._graph_field, None)
        inputs = {field: one for field, one in held.items() if self._is_input[field]}
        rest = {field: one for field, one in held.items() if not self._is_input[field]}
        return _Base(codes, graph, _Block(inputs), _Block(rest))

    def _number(
        self, stored: tuple[object, ...], block: _Block, patch: list[tuple[int, int]], detail_set: int
    ) -> int:
        found = self._by_patch.get(stored)
        if found is None:
            found = self._by_patch[stored] = self._content(block, patch, detail_set)
        return found

    def _content(self, block: _Block, patch: Iterable[tuple[int, int]], detail_set: int) -> int:
        content = block.fields, block.digest(patch)
        found = self._by_content.setdefault(content, len(self._set_with))
        if found == len(self._set_with):
            self._set_with.append(detail_set)
        return found

    def _parts_of(self, field: int, old: int | None, new: int | None) -> frozenset[str]:
        name = self._details.fields[field]
        if old is None or new is None:
            return frozenset({name})
        if (old, new) not in self._parts:
            texts = (parse_component(self._details.components[code]) for code in (old, new))
            change = field_change(name, *(None if text is None else text.value_text for text in texts))
            names = {f"{name}.{part}" for part, _, _ in change.parts} or {name}
            self._parts[old, new] = frozenset(names)
        return self._parts[old, new]


class EarlierKeys:
    """The sets of some lookups or entries in order, up to the one that is asked about.

    Parameters
    ----------
    keys : KeyDistances
    sets : sequence of (index, set)
        In the order of the indexes.
    """

    def __init__(self, keys: KeyDistances, sets: Sequence[tuple[int, int]]) -> None:
        self._keys = keys
        self._sets = sets
        self._begin()

    def _begin(self) -> None:
        self._passed = 0
        # The latest index with some inputs and rest, in the order of these; and the latest that has a graph besides.
        self._latest: dict[tuple[int, int], int] = {}
        self._of_blocks: dict[Blocks, int] = {}

    def nearest(self, at: int, detail_set: int) -> tuple[int | None, int]:
        """The index before `at` with the fewest changed fields, the latest among equals; and how many fields these are."""
        self._advance(at)
        own = self._keys.blocks(detail_set)
        if (same := self._of_blocks.get(own)) is not None:
            return same, 0
        apart = self._keys.apart
        best, fewest = None, 0
        for (inputs, rest), latest in reversed(self._latest.items()):
            if best is not None and fewest == 1 and best > latest:
                break
            far = apart(inputs, own.inputs) + apart(rest, own.rest)
            of_graph = self._of_blocks.get(Blocks(own.graph, inputs, rest))
            for one, fields in ((of_graph, far), (latest, far + (latest != of_graph))):
                if one is not None and (best is None or fields < fewest or (fields == fewest and one > best)):
                    best, fewest = one, fields
        return best, fewest

    def _advance(self, at: int) -> None:
        """Take in everything before an index."""
        if self._passed and self._sets[self._passed - 1][0] >= at:
            self._begin()
        while self._passed < len(self._sets) and self._sets[self._passed][0] < at:
            one, detail_set = self._sets[self._passed]
            blocks = self._keys.blocks(detail_set)
            content = blocks.inputs, blocks.rest
            self._latest.pop(content, None)
            self._latest[content] = one
            self._of_blocks[blocks] = one
            self._passed += 1
