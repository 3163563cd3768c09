"""How far apart two keys are: in how many fields, and in how many parts of their inputs."""

from __future__ import annotations

from cachescope.analysis.differences import field_change
from cachescope.analysis.fields import is_input
from cachescope.analysis.verdicts.graph_alignment import Graph
from cachescope.components import parse_component
from cachescope.details import HashDetails

Distance = tuple[int, int]


class Nearness:
    """Distances between keys; answers are cached."""

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        self._parts: dict[tuple[int, int], frozenset[str]] = {}

    def between(self, a: Graph, b: Graph) -> Distance:
        """How many fields differ, then how many parts (dtype, shape, stride, …) of the inputs among them."""
        assert a.detail_set is not None and b.detail_set is not None
        changes = self._details.changes(a.detail_set, b.detail_set)
        return len(changes), len(self.parts(a.detail_set, b.detail_set))

    def parts(self, before: int, after: int) -> frozenset[str]:
        """The parts of inputs that differ between two sets, each named with its field."""
        found: set[str] = set()
        for field, old, new in self._details.changes(before, after):
            if is_input(self._details.fields[field]):
                found |= self._parts_of(field, old, new)
        return frozenset(found)

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
