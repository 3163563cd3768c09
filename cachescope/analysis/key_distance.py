"""How far apart two keys are: in how many fields, and in how many parts (dtype, shape, stride, …) of their inputs.

A set of hash details is a graph and its *content*, which is everything else. Nearly all sets of a fleet share a few contents, and
these differ in few fields. So a content is kept as its differences from the first one with the same fields, and the change from
one content to another is worked out once.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from cachescope.analysis.differences import component_change
from cachescope.details import ChangedField, HashDetails
from cachescope.kept import kept
from cachescope.keys.key_fields import TORCH_VERSION, is_input

# A symbolic size, as in torch.Size([s77, 8]) or ('s77',): torch/_inductor/codecache.py, `_reduce_symint`.
_SYMBOL: Final = re.compile(r"(?:\bSize\(\[[^][]*\b|\(')[su]\d+\b")


Form = tuple[int | None, int, int]
"""A set of hash details: the hash code of its graph, the number of its content, and the first set whose content torch printed like it."""


class Change(NamedTuple):
    """What changed from one set to another."""

    components: tuple[ChangedField, ...]
    names: tuple[str, ...]  # the changed fields

    @property
    def is_of_graph(self) -> bool:
        """Whether the graph itself differs."""
        return "gm" in self.names

    @property
    def are_inputs(self) -> bool:
        """Whether there are such fields, and all describe inputs."""
        return bool(self.names) and all(map(is_input, self.names))

    @property
    def is_of_torch(self) -> bool:
        """Whether torch itself differs."""
        return TORCH_VERSION in self.names


class _Content(NamedTuple):
    """The hashes of a set without its graph."""

    first: int  # the first set with the same fields
    otherwise: frozenset[tuple[int, int]]
    """The fields in which it differs from that, with their hashes."""


class KeyDistances:
    """Distances between sets of hash details; answers are kept."""

    def __init__(self, details: HashDetails) -> None:
        self.details = details
        # The first set with each choice of fields.
        self._firsts: dict[frozenset[int], int] = {}
        # The number of each content, and the contents by number.
        self._numbers: dict[_Content, int] = {}
        self._numbered: list[_Content] = []
        # The first set with each content as torch printed it.
        self._printed: dict[tuple[int, ...], int] = {}
        # By whether the graphs are equal: if so, by the first sets that are printed like the two.
        self._changes: dict[tuple[bool, int, int], Change] = {}

    @kept
    def form(self, detail_set: int) -> Form:
        """What a set consists of."""
        fields, is_plain = self._fields(self.details.layout(detail_set))
        first = self._firsts.setdefault(fields, detail_set)
        graph, of_first = self.first(first)
        # Nearly all sets differ from the first in a few places.
        apart = self.details.sets.differences(first, detail_set) if is_plain else None
        alike = detail_set
        if apart is None:
            graph, held = self._whole(self.details.sets[detail_set])
        else:
            codes = [code for _, _, code in apart[1]]
            of_set, held = self._whole(codes)
            graph = graph if of_set is None else of_set
            of_field, of_graph = self.details.field_codes, self.details.field_code("gm")
            printed = first, *(code for code in codes if of_field[code] != of_graph)
            alike = self._printed.setdefault(printed, detail_set)
        others = frozenset([(field, code) for field, code in held.items() if of_first[field] != code])
        content = _Content(first, others)
        number = self._numbers.setdefault(content, len(self._numbered))
        if number == len(self._numbered):
            self._numbered.append(content)
        return graph, number, alike

    @kept
    def first(self, detail_set: int) -> tuple[int | None, dict[int, int]]:
        """The graph of a set that is the first with its fields, and its other hashes by field."""
        return self._whole(self.details.sets[detail_set])

    @kept
    def _fields(self, layout: int) -> tuple[frozenset[int], bool]:
        """The fields of a layout without the graph, and whether it has each only once."""
        fields = self.details.layouts[layout]
        return frozenset(fields) - {self.details.field_code("gm")}, len({*fields}) == len(fields)

    def _whole(self, codes: Iterable[int]) -> tuple[int | None, dict[int, int]]:
        """The graph among some components, and the hashes of the others by field."""
        of_field, of_hash = self.details.field_codes, self.details.hash_codes
        # If a field occurs twice, only the last one counts.
        held = {of_field[code]: of_hash[code] for code in codes}
        graph = self.details.field_code("gm")
        return None if graph is None else held.pop(graph, None), held

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

    @kept
    def changed(self, one: int, other: int) -> frozenset[int]:
        """The codes of the fields in which two contents differ."""
        mine, others = self._numbered[one], self._numbered[other]
        fields = frozenset([field for field, _ in mine.otherwise ^ others.otherwise])
        if mine.first == others.first:
            return fields
        fields |= self._changed_first(mine.first, others.first)
        old, new = ({**self.first(each.first)[1], **dict(each.otherwise)} for each in (mine, others))
        return frozenset([field for field in fields if old.get(field) != new.get(field)])

    @kept
    def _changed_first(self, one: int, other: int) -> frozenset[int]:
        """The fields in which two sets differ that are each the first with its fields."""
        return frozenset([field for field, _ in self.first(one)[1].items() ^ self.first(other)[1].items()])

    def hashes(self, detail_set: int) -> tuple[int, dict[int, int]]:
        """The first set with the fields of a set, and the hashes in which the set differs from it, by field; that of the graph in any case."""
        graph, content, _ = self.form(detail_set)
        first, otherwise = self._numbered[content]
        field = self.details.field_code("gm")
        return first, ({} if graph is None or field is None else {field: graph}) | dict(otherwise)

    def only_inputs(self, one: int, other: int) -> bool:
        """Whether two contents differ, and only in fields that describe inputs."""
        changed = self.changed(one, other)
        return bool(changed) and all(is_input(self.details.fields[field]) for field in changed)

    def change(self, before: int, after: int) -> Change:
        """What changed from one set to another."""
        (graph, _, alike), (other_graph, _, other_alike) = self.form(before), self.form(after)
        asked = (True, alike, other_alike) if graph == other_graph else (False, before, after)
        if asked not in self._changes:
            components = tuple(self.details.changes(before, after))
            self._changes[asked] = Change(components, tuple(field for field, _, _ in components))
        return self._changes[asked]

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

    @kept
    def _parts_of(self, field: str, old: int | None, new: int | None) -> frozenset[str]:
        parts = () if old is None or new is None else component_change(self.details, old, new).parts
        return frozenset({f"{field}.{part}" for part, _, _ in parts} or {field})


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
