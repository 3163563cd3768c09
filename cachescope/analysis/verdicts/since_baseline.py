"""First lookups whose graph another scope compiled under another key: what has changed since then.

A warm run alone has nothing to compare its misses with, and would look like a cold start.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.analysis.verdicts.misses import Candidate, Miss
from cachescope.details import HashDetails
from cachescope.grouping import by_key
from cachescope.keys.key_fields import is_input
from cachescope.verdict_kinds import kind_of

_Graph = tuple[str, str | None, str]
_Sides = TypeVar("_Sides")


@dataclass(frozen=True, slots=True)
class ChangedSince:
    """What changed for some first lookups of one cause."""

    fields: tuple[str, ...]
    changes: tuple[FieldChange, ...]
    cause: int
    lookups: tuple[int, ...]


def changed_since(
    misses: Iterable[Miss],
    lookups: Iterable[str],
    details: HashDetails,
    before: Iterable[Candidate],
    details_before: HashDetails,
) -> list[ChangedSince]:
    """What changed for the first lookups among `misses` whose graph `before` contains under other keys only."""
    firsts = [miss for miss in misses if _is_first(miss)]
    if not firsts:
        return []
    both = _Both(details, before, details_before, frozenset(lookups))
    nearest = ((miss, both.nearest(miss)) for miss in firsts)
    found = ((miss, *of_miss) for miss, of_miss in nearest if of_miss is not None)
    return by_fields(found, lambda sets: tuple(field_changes(both.details, *sets)))


def by_fields(
    found: Iterable[tuple[Miss, tuple[str, ...], _Sides]],
    changes: Callable[[_Sides], tuple[FieldChange, ...]],
) -> list[ChangedSince]:
    """What changed for some misses, each with the fields that did and both sides; those with the same fields together."""
    groups = by_key((fields, (miss, sides)) for miss, fields, sides in found)
    return [
        ChangedSince(
            fields, changes(same[0][1]), same[0][0].cause, tuple(miss.row.lookup for miss, _ in same)
        )
        for fields, same in groups.items()
    ]


def _is_first(miss: Miss) -> bool:
    """Whether to compare a miss: it is a root, or follows from a root without recorded details."""
    if not kind_of(miss.why).may_be_first or miss.row.detail_set is None:
        return False
    return miss.follows is None or miss.follows.row.detail_set is None


class _Both:
    """Hash details of two scopes in one store, which makes their codes comparable."""

    def __init__(
        self,
        mine: HashDetails,
        before: Iterable[Candidate],
        details_before: HashDetails,
        looked_up: frozenset[str],
    ) -> None:
        self.details = HashDetails()
        self._mine = mine
        self._looked_up = looked_up
        self._keys: set[str] = set()
        self._of_graph: dict[_Graph, dict[str, int]] = defaultdict(dict)
        known = dict.fromkeys((row.cache, row.cache_key, row.detail_set) for row in before)
        for cache, key, detail_set in known:
            if key is None or detail_set is None:
                continue
            self._keys.add(key)
            taken = self._take(details_before, detail_set)
            if (graph := self._graph(cache, taken)) is not None:
                self._of_graph[graph][key] = taken

    def nearest(self, miss: Miss) -> tuple[tuple[str, ...], tuple[int, int]] | None:
        """The fewest changed fields against the same graph in `before`, and the two sets; None if unknown."""
        assert miss.row.detail_set is not None
        if miss.row.cache_key in self._keys:
            return None
        mine = self._take(self._mine, miss.row.detail_set)
        graph = self._graph(miss.row.cache, mine)
        best: tuple[tuple[str, ...], tuple[int, int]] | None = None
        for key, other in self._of_graph.get(graph, {}).items() if graph is not None else ():
            fields = self.details.changed_fields(other, mine)
            # This scope also calls the graph on those inputs: it is another call, and neither has changed.
            is_another_call = key in self._looked_up and all(is_input(field) for field in fields)
            if fields and not is_another_call and (best is None or len(fields) < len(best[0])):
                best = fields, (other, mine)
        return best

    def _take(self, store: HashDetails, detail_set: int) -> int:
        taken, _ = self.details.add(store.components[code] for code in store.sets[detail_set])
        assert taken is not None  # a set of a store is never empty
        return taken

    def _graph(self, cache: str, detail_set: int) -> _Graph | None:
        gm = self.details.detail(detail_set, "gm")
        return None if gm is None else (cache, self.details.direction(detail_set), gm.detail_hash)
