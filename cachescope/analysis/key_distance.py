"""How far apart two keys are: in how many fields, and in how many parts (dtype, shape, stride, …) of their inputs.

A set of hash details consists of the graph, the inputs and the rest, and nearly all sets of a fleet are made of the same
few of these. So what differs is worked out once for two inputs or two rests, and a distance is a few look-ups.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from cachescope.analysis.differences import field_change
from cachescope.analysis.fields import is_input
from cachescope.components import parse_component
from cachescope.details import HashDetails

_GRAPH: Final = "gm"
_TORCH_VERSION: Final = "torch_version"


class Blocks(NamedTuple):
    """What a set consists of."""

    graph: int | None
    """The hash code of the graph; None if the set has none."""
    content: int
    """The number of all else: equal numbers are equal hashes of equal fields."""
    texts: int
    """The number of all else as torch printed it: equal numbers are equal components."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What changed from one set to another."""

    components: list[tuple[int, int | None, int | None]]  # see `HashDetails.changes`
    names: tuple[str, ...]  # the changed fields
    are_inputs: bool  # whether they all describe the inputs, and there is one
    is_of_torch: bool  # whether torch itself is another

    @property
    def alone(self) -> tuple[int | None, int | None] | None:
        """The components of the field that changed, if it is one field alone."""
        return self.components[0][1:] if len(self.components) == 1 else None


class _Block:
    """The inputs, or the rest, of a set: its fields, and the hash of each."""

    def __init__(self, held: dict[int, int]) -> None:
        self._held = held
        self.fields = tuple(sorted(held))
        self._place = {field: at for at, field in enumerate(self.fields)}
        self._hashes = array("q", (held[field] for field in self.fields))

    def digest(self, patch: Iterable[tuple[int, int]]) -> bytes:
        """A digest of the hashes, with those of some fields replaced."""
        hashes = self._hashes[:]
        for field, hash_code in patch:
            hashes[self._place[field]] = hash_code
        return blake2b(hashes.tobytes(), digest_size=16).digest()

    def differing(self, patch: Iterable[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        """Of the fields of a patch, with their hashes, those that it changes."""
        return frozenset([(field, code) for field, code in patch if self._held[field] != code])


class _Side(NamedTuple):
    """The inputs, or the rest, of some sets."""

    detail_set: int
    """One set that has it."""
    are_inputs: bool
    block: _Block
    """That of the base that it was stored as differences from."""
    patch: frozenset[tuple[int, int]]
    """The fields in which it differs from that, with its hashes."""


class _Base(NamedTuple):
    """A set that others are stored as their differences from."""

    codes: list[int]
    graph: int | None
    inputs: _Block
    rest: _Block


class KeyDistances:
    """Distances between sets of hash details; answers are kept."""

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        self._take()
        self._blocks: dict[int, Blocks] = {}
        self._bases: dict[int, _Base] = {}
        # Where the graph is in each base that has it, and each of its fields once.
        self._graph_places: dict[int, bytes] = {}
        self._of_rest: dict[bytes, tuple[int, int]] = {}
        self._texts = 0
        # The number of inputs, or of a rest, by what they are; and these by their numbers.
        self._by_digest: dict[tuple[bool, tuple[int, ...], bytes], int] = {}
        self._sides: list[_Side] = []
        # The numbers of contents by those of their inputs and rest; and the other way round.
        self._contents: dict[tuple[int, int], int] = {}
        self._parts_of_content: list[tuple[int, int]] = []
        self._changed: dict[tuple[int, int], frozenset[int]] = {}
        self._apart: dict[tuple[int, int], int] = {}
        self._changes: dict[tuple[int, int], Change] = {}
        self._names: dict[tuple[int, ...], tuple[str, ...]] = {}
        self._input_parts: dict[tuple[int | None, int | None], frozenset[str]] = {}

    def _take(self) -> None:
        """Take over what the store has by now."""
        self._fields = list(map(int, self._details.field_codes))
        self._hashes = list(map(int, self._details.hash_codes))
        self._is_input = list(map(is_input, self._details.fields))
        self._graph_field = self._details.field_code(_GRAPH)

    def graph(self, detail_set: int | None) -> int | None:
        """The hash code of the graph of a set; equal codes are equal graphs."""
        return None if detail_set is None else self.blocks(detail_set).graph

    def blocks(self, detail_set: int) -> Blocks:
        """The graph and the rest of a set."""
        found = self._blocks.get(detail_set)
        if found is None:
            if len(self._fields) < len(self._details.components):
                self._take()
            found = self._blocks[detail_set] = self._made_blocks(detail_set)
        return found

    def fields(self, one: int, other: int) -> int:
        """In how many fields two sets differ."""
        a, b = self.blocks(one), self.blocks(other)
        return (a.graph != b.graph) + self.apart(a.content, b.content)

    def apart(self, one: int, other: int) -> int:
        """In how many fields two contents differ."""
        if one == other:
            return 0
        found = self._apart.get((one, other))
        if found is None:
            (inputs, rest), (other_inputs, other_rest) = (
                self._parts_of_content[one],
                self._parts_of_content[other],
            )
            found = len(self._changed_in(inputs, other_inputs)) + len(self._changed_in(rest, other_rest))
            self._apart[one, other] = found
        return found

    def changed(self, one: int, other: int) -> frozenset[int]:
        """The codes of the fields in which two contents differ."""
        (inputs, rest), (other_inputs, other_rest) = (
            self._parts_of_content[one],
            self._parts_of_content[other],
        )
        return self._changed_in(inputs, other_inputs) | self._changed_in(rest, other_rest)

    def only_inputs(self, one: int, other: int) -> bool:
        """Whether two contents differ, but in no field that does not describe the inputs."""
        return one != other and self._parts_of_content[one][1] == self._parts_of_content[other][1]

    def change(self, before: int, after: int) -> Change:
        """What changed from one set to another."""
        a, b = self.blocks(before), self.blocks(after)
        if a.graph != b.graph:
            return self._made_change(before, after)
        pair = a.texts, b.texts
        found = self._changes.get(pair)
        if found is None:
            found = self._changes[pair] = self._made_change(before, after)
        return found

    def parts(self, before: int, after: int) -> frozenset[str]:
        """The parts of inputs that differ between two sets, each named with its field."""
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

    def inputs(self, detail_set: int) -> int:
        """The number of the inputs of a set."""
        return self._parts_of_content[self.blocks(detail_set).content][0]

    def _made_change(self, before: int, after: int) -> Change:
        components = self._details.changes(before, after)
        fields = tuple([field for field, _, _ in components])
        if fields not in self._names:
            self._names[fields] = tuple([self._details.fields[field] for field in fields])
        names = self._names[fields]
        are_inputs = bool(fields) and all(self._is_input[field] for field in fields)
        return Change(components, names, are_inputs, _TORCH_VERSION in names)

    def _changed_in(self, one: int, other: int) -> frozenset[int]:
        """The fields in which two inputs, or two rests, differ."""
        if one == other:
            return frozenset()
        found = self._changed.get((one, other))
        if found is None:
            before, after = self._sides[one], self._sides[other]
            if before.block is after.block:
                found = frozenset([field for field, _ in before.patch ^ after.patch])
            else:
                changes = self._details.changes(before.detail_set, after.detail_set)
                changed = [field for field, _, _ in changes if field != self._graph_field]
                found = frozenset([field for field in changed if self._is_input[field] == before.are_inputs])
            self._changed[one, other] = self._changed[other, one] = found
        return found

    def _made_blocks(self, detail_set: int) -> Blocks:
        number, code, rest = self._details.sets.but_for(detail_set, self._graph_places)
        known = self._of_rest.get(rest)
        if known is not None and (code is None or self._fields[code] == self._graph_field):
            graph = self._bases[number].graph if code is None else self._hashes[code]
            return Blocks(graph, *known)
        base = self._bases.get(number)
        if base is None:
            base = self._bases[number] = self._base(self._details.sets.base(number).tolist())
            fields = [self._fields[code] for code in base.codes]
            if self._graph_field in fields and len(set(fields)) == len(fields):
                place = fields.index(self._graph_field)
                self._graph_places[number] = array("i", [place]).tobytes()
                return self._made_blocks(detail_set)
        return self._new_blocks(detail_set, number, base, rest)

    def _new_blocks(self, detail_set: int, number: int, base: _Base, rest: bytes) -> Blocks:
        fields, hashes = self._fields, self._hashes
        _, patch = self._details.sets.parts(detail_set)
        is_plain = number in self._graph_places and all(
            fields[code] == fields[base.codes[at]] for at, code in patch.items()
        )
        if is_plain:
            graph = base.graph
            patches: tuple[list[tuple[int, int]], list[tuple[int, int]]] = [], []
            for code in patch.values():
                if fields[code] == self._graph_field:
                    graph = hashes[code]
                else:
                    patches[self._is_input[fields[code]]].append((fields[code], hashes[code]))
            content = self._content(base, *patches, detail_set)
        else:
            base = self._base(list(map(int, self._details.sets[detail_set])))
            graph, content = base.graph, self._content(base, [], [], detail_set)
        self._texts += 1
        if is_plain:
            self._of_rest[rest] = content, self._texts
        return Blocks(graph, content, self._texts)

    def _base(self, codes: list[int]) -> _Base:
        # If a field occurs twice, only the last one counts.
        held = {self._fields[code]: self._hashes[code] for code in codes}
        graph = None if self._graph_field is None else held.pop(self._graph_field, None)
        inputs = {field: one for field, one in held.items() if self._is_input[field]}
        rest = {field: one for field, one in held.items() if not self._is_input[field]}
        return _Base(codes, graph, _Block(inputs), _Block(rest))

    def _content(
        self,
        base: _Base,
        patch: Sequence[tuple[int, int]],
        patch_of_inputs: Sequence[tuple[int, int]],
        detail_set: int,
    ) -> int:
        numbers = []
        for are_inputs, block, replaced in (
            (True, base.inputs, patch_of_inputs),
            (False, base.rest, patch),
        ):
            digest = are_inputs, block.fields, block.digest(replaced)
            found = self._by_digest.setdefault(digest, len(self._sides))
            if found == len(self._sides):
                self._sides.append(_Side(detail_set, are_inputs, block, block.differing(replaced)))
            numbers.append(found)
        inputs, rest = numbers
        content = self._contents.setdefault((inputs, rest), len(self._contents))
        if content == len(self._parts_of_content):
            self._parts_of_content.append((inputs, rest))
        return content

    def _parts_of(self, field: int, old: int | None, new: int | None) -> frozenset[str]:
        name = self._details.fields[field]
        if old is None or new is None:
            return frozenset({name})
        if (old, new) not in self._input_parts:
            texts = (parse_component(self._details.components[code]) for code in (old, new))
            change = field_change(name, *(None if text is None else text.value_text for text in texts))
            names = {f"{name}.{part}" for part, _, _ in change.parts} or {name}
            self._input_parts[old, new] = frozenset(names)
        return self._input_parts[old, new]


class EarlierKeys:
    """The sets of some lookups or entries in order, up to the one that is asked about."""

    def __init__(self, keys: KeyDistances, sets: Sequence[tuple[int, int]]) -> None:
        self._keys = keys
        self._sets = sets
        self._begin()

    def _begin(self) -> None:
        self._passed = 0
        # The latest index with each content, in the order of these; and the latest that has a graph besides.
        self._latest: dict[int, int] = {}
        self._of_graph: dict[tuple[int | None, int], int] = {}

    def nearest(self, at: int, detail_set: int) -> tuple[int | None, int]:
        """The index before `at` with the fewest changed fields, the latest among equals; and how many fields these are."""
        self._advance(at)
        graph, own, _ = self._keys.blocks(detail_set)
        if (same := self._of_graph.get((graph, own))) is not None:
            return same, 0
        apart, of_graph = self._keys.apart, self._of_graph
        best, fewest = None, 0
        for content, latest in reversed(self._latest.items()):
            if best is not None and fewest == 1 and best > latest:
                break
            far = apart(content, own)
            if best is not None and far > fewest:
                continue
            same = of_graph.get((graph, content))
            for one, fields in ((same, far), (latest, far + (latest != same))):
                if one is not None and (best is None or fields < fewest or (fields == fewest and one > best)):
                    best, fewest = one, fields
        return best, fewest

    def _advance(self, at: int) -> None:
        """Take in everything before an index."""
        if self._passed and self._sets[self._passed - 1][0] >= at:
            self._begin()
        while self._passed < len(self._sets) and self._sets[self._passed][0] < at:
            one, detail_set = self._sets[self._passed]
            graph, content, _ = self._keys.blocks(detail_set)
            self._latest.pop(content, None)
            self._latest[content] = one
            self._of_graph[graph, content] = one
            self._passed += 1
