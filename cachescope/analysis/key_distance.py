"""How far apart two keys are: in how many fields, and in how many parts (dtype, shape, stride, …) of their inputs.

A set of hash details is a graph and its *content*, which is everything else. Nearly all sets of a fleet share a few contents, and
these differ in few fields. So a content is kept as its differences from the first one with the same fields, and the change from
one content to another is worked out once.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from cachescope.analysis.differences import component_change
from cachescope.details import ChangedField, HashDetails
from cachescope.kept import kept
from cachescope.keys.key_fields import TORCH_VERSION, is_input

_GRAPH: Final = "gm"
# A symbolic size, as in torch.Size([s77, 8]) or ('s77',): torch/_inductor/codecache.py, `_reduce_symint`.
_SYMBOL: Final = re.compile(r"(?:\bSize\(\[[^][]*\b|\(')[su]\d+\b")


Form = tuple[int | None, int, int]
"""A set of hash details: the hash code of its graph, the number of its content, and that of the content as torch printed it."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What changed from one set to another."""

    components: list[ChangedField]
    names: tuple[str, ...]  # the changed fields
    is_of_graph: bool  # whether the graph itself differs
    are_inputs: bool  # whether there are such fields, and all describe inputs
    is_of_torch: bool  # whether torch itself differs


class _Content(NamedTuple):
    """The hashes of a set without its graph."""

    layout: int  # which fields it has
    otherwise: frozenset[tuple[int, int]]
    """The fields in which it differs from the first content with the same fields, with their hashes."""


class _Base(NamedTuple):
    """A set from which others are stored as differences."""

    fields: list[int]
    graph_at: int | None  # the position of its graph; None if it has none, or has a field twice
    graph: int | None
    content: _Content


class KeyDistances:
    """Distances between sets of hash details; answers are kept."""

    def __init__(self, details: HashDetails) -> None:
        self.details = details
        self._forms: list[Form] = []
        # The content of a set, and the same as torch printed it, by its base and its differences other than the graph.
        self._of_rest: dict[tuple[object, ...], tuple[int, int]] = {}
        # The number of each layout, and the first content with it.
        self._layouts: dict[frozenset[int], int] = {}
        self._first: list[dict[int, int]] = []
        # The number of each content, and the contents by number.
        self._numbers: dict[_Content, int] = {}
        self._numbered: list[_Content] = []
        self._changed: dict[tuple[int, int], frozenset[int]] = {}
        self._changes: dict[tuple[int, int], Change] = {}

    def form(self, detail_set: int) -> Form:
        """What a set consists of."""
        if detail_set >= len(self._forms):
            self._take()
        return self._forms[detail_set]

    def forms(self, sets: Iterable[int | None]) -> list[Form | None]:
        """The forms of some sets; None for one that is missing."""
        return [None if one is None else self.form(one) for one in sets]

    def graph(self, detail_set: int | None) -> int | None:
        """The hash code of the graph of a set, None if it has none; equal codes are equal graphs."""
        return None if detail_set is None else self.form(detail_set)[0]

    def content(self, detail_set: int) -> int:
        """The number of a set's content: equal numbers mean equal hashes of equal fields."""
        return self.form(detail_set)[1]

    def fields(self, one: int, other: int) -> int:
        """In how many fields two sets differ."""
        return (self.graph(one) != self.graph(other)) + self.apart(self.content(one), self.content(other))

    def apart(self, one: int, other: int) -> int:
        """In how many fields two contents differ."""
        return len(self.changed(one, other))

    def changed(self, one: int, other: int) -> frozenset[int]:
        """The codes of the fields in which two contents differ."""
        pair = (one, other) if one < other else (other, one)
        found = self._changed.get(pair)
        if found is None:
            found = self._changed[pair] = self._made_changed(self._numbered[one], self._numbered[other])
        return found

    def hashes(self, detail_set: int) -> tuple[int, dict[int, int]]:
        """The number of a set's layout, and the hashes in which it differs from the first content with that layout, by field."""
        graph, content, _ = self.form(detail_set)
        layout, otherwise = self._numbered[content]
        of_graph = {} if graph is None or self._graph_field is None else {self._graph_field: graph}
        return layout, of_graph | dict(otherwise)

    def first(self, layout: int) -> dict[int, int]:
        """The hashes of the first content with a layout, by field."""
        return self._first[layout]

    def only_inputs(self, one: int, other: int) -> bool:
        """Whether two contents differ, and only in fields that describe inputs."""
        changed = self.changed(one, other)
        return bool(changed) and all(is_input(self.details.fields[field]) for field in changed)

    def change(self, before: int, after: int) -> Change:
        """What changed from one set to another."""
        (graph, _, texts), (other_graph, _, other_texts) = self.form(before), self.form(after)
        if graph != other_graph:
            return self._made_change(before, after)
        pair = texts, other_texts
        found = self._changes.get(pair)
        if found is None:
            found = self._changes[pair] = self._made_change(before, after)
        return found

    def parts(self, before: int, after: int) -> frozenset[str]:
        """The parts of inputs that differ between two sets, each named with its field."""
        found: set[str] = set()
        for field, old, new in self.details.changes(before, after):
            if is_input(field):
                found |= self._parts_of(field, old, new)
        return frozenset(found)

    def example_inputs(self, detail_set: int) -> tuple[int, ...]:
        """The hashes of the inputs that a graph was compiled for, in torch's order."""
        return tuple(self.details.hash_codes[code] for code in self.details.inputs(detail_set))

    @kept
    def has_symbols(self, detail_set: int) -> bool:
        """Whether an input has a symbolic size, in which case entries of the key may have guards."""
        return any(map(self._has_symbol, self.details.inputs(detail_set)))

    @kept
    def _has_symbol(self, component: int) -> bool:
        return shows_symbol(self.details.value_text(component) or "")

    def _made_change(self, before: int, after: int) -> Change:
        components = self.details.changes(before, after)
        names = self.details.changed_fields(before, after)
        are_inputs = bool(names) and all(map(is_input, names))
        return Change(components, names, _GRAPH in names, are_inputs, TORCH_VERSION in names)

    def _made_changed(self, one: _Content, other: _Content) -> frozenset[int]:
        fields = frozenset([field for field, _ in one.otherwise ^ other.otherwise])
        if one.layout == other.layout:
            return fields
        fields |= self._changed_layout(one.layout, other.layout)
        mine, others = ({**self._first[each.layout], **dict(each.otherwise)} for each in (one, other))
        return frozenset([field for field in fields if mine.get(field) != others.get(field)])

    @kept
    def _changed_layout(self, one: int, other: int) -> frozenset[int]:
        """The fields in which the first contents of two layouts differ."""
        return frozenset([field for field, _ in self._first[one].items() ^ self._first[other].items()])

    @kept
    def _parts_of(self, field: str, old: int | None, new: int | None) -> frozenset[str]:
        parts = () if old is None or new is None else component_change(self.details, old, new).parts
        return frozenset({f"{field}.{part}" for part, _, _ in parts} or {field})

    # The store may have grown since.

    def _take(self) -> None:
        self._fields = self.details.field_codes.tolist()
        self._hashes = self.details.hash_codes.tolist()
        self._graph_field = self.details.field_code(_GRAPH)
        sets = self.details.sets
        for detail_set in range(len(self._forms), len(sets)):
            number, patch = sets.parts(detail_set)
            base = self._base(number)
            if base.graph_at is None or any(self._fields[c] != base.fields[at] for at, c in patch.items()):
                graph, content = self._whole(sets[detail_set])
                self._forms.append((graph, self._number(content), detail_set))
                continue
            code = patch.pop(base.graph_at, None)
            rest = number, *patch.items()
            if rest not in self._of_rest:
                self._of_rest[rest] = self._number(self._patched(base.content, patch.values())), detail_set
            self._forms.append((base.graph if code is None else self._hashes[code], *self._of_rest[rest]))

    @kept
    def _base(self, number: int) -> _Base:
        codes = self.details.sets.base(number).tolist()
        fields = [self._fields[code] for code in codes]
        is_plain = len(set(fields)) == len(fields)
        at = next((at for at, field in enumerate(fields) if is_plain and field == self._graph_field), None)
        return _Base(fields, at, *self._whole(codes))

    def _patched(self, base: _Content, codes: Iterable[int]) -> _Content:
        """The content of a set, from that of its base and the codes in which it differs."""
        first, otherwise = self._first[base.layout], dict(base.otherwise)
        for code in codes:
            field, hash_code = self._fields[code], self._hashes[code]
            if hash_code == first[field]:
                otherwise.pop(field, None)
            else:
                otherwise[field] = hash_code
        return _Content(base.layout, frozenset(otherwise.items()))

    def _whole(self, codes: Iterable[int]) -> tuple[int | None, _Content]:
        """The graph and the content of a set."""
        # If a field occurs twice, only the last one counts.
        held = {self._fields[code]: self._hashes[code] for code in codes}
        graph = None if self._graph_field is None else held.pop(self._graph_field, None)
        layout = self._layouts.setdefault(frozenset(held), len(self._first))
        if layout == len(self._first):
            self._first.append(held)
        return graph, _Content(layout, frozenset(held.items() - self._first[layout].items()))

    def _number(self, content: _Content) -> int:
        """The number of a content. Equal contents have the same number."""
        number = self._numbers.setdefault(content, len(self._numbered))
        if number == len(self._numbered):
            self._numbered.append(content)
        return number


class EarlierKeys:
    """The sets of some lookups or entries up to the one that is asked about. Questions must come in the order of these."""

    def __init__(self, keys: KeyDistances, sets: Sequence[tuple[int, int]]) -> None:
        self._keys = keys
        self._coming = deque(sets)
        # The latest index with each content, in this order; and the latest one with each content and graph.
        self._latest: dict[int, int] = {}
        self._of_graph: dict[tuple[int | None, int], int] = {}

    def nearest(self, at: int, detail_set: int) -> tuple[int | None, int]:
        """The index before `at` with the fewest changed fields, the latest among equals; and the number of these fields."""
        while self._coming and self._coming[0][0] < at:
            index, earlier = self._coming.popleft()
            graph, content = self._keys.graph(earlier), self._keys.content(earlier)
            self._latest.pop(content, None)
            self._latest[content] = self._of_graph[graph, content] = index
        graph, own = self._keys.graph(detail_set), self._keys.content(detail_set)
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


def shows_symbol(text: str) -> bool:
    """Whether the printed value of an input has a symbolic size."""
    return _SYMBOL.search(text) is not None
