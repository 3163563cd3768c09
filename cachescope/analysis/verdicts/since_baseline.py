"""What has changed since another scope, for first lookups whose graph that scope compiled under another key.

A warm run alone has nothing to compare its misses with, and would look like a cold start.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.analysis.verdicts.misses import Candidate, Miss
from cachescope.details import HashDetails
from cachescope.grouping import by_key
from cachescope.keys.key_fields import is_input

_Graph = tuple[str, str | None, str | None]
"""A cache, a direction, and the hash of the graph."""
_Sides = TypeVar("_Sides")


class ChangedSince(NamedTuple):
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
    """What changed for the first lookups among `misses` whose graph `before` has only under other keys."""
    firsts = [miss for miss in misses if _is_first(miss)]
    if not firsts:
        return []
    # One store for both sides makes their codes comparable.
    both, keys, own = HashDetails(), set[str](), frozenset(lookups)
    of_graph: dict[_Graph, dict[str, int]] = defaultdict(dict)
    known = dict.fromkeys((row.cache, row.cache_key, row.detail_set) for row in before)
    for cache, key, detail_set in known:
        if key is not None and detail_set is not None:
            keys.add(key)
            graph, taken = _taken(both, cache, details_before, detail_set)
            of_graph[graph][key] = taken
    found = []
    for miss in firsts:
        assert miss.row.detail_set is not None
        graph, mine = _taken(both, miss.row.cache, details, miss.row.detail_set)
        if graph[-1] is None or miss.row.cache_key in keys:
            continue
        changed = [
            (fields, (other, mine))
            for key, other in of_graph.get(graph, {}).items()
            # This scope also calls the graph with those inputs: these are two calls, and neither has changed.
            if (fields := both.changed_fields(other, mine))
            and not (key in own and all(map(is_input, fields)))
        ]
        if changed:
            found.append((miss, *min(changed, key=lambda one: len(one[0]))))
    return by_fields(found, lambda sets: tuple(field_changes(both, *sets)))


def _taken(both: HashDetails, cache: str, store: HashDetails, detail_set: int) -> tuple[_Graph, int]:
    """The code of a set in the store of both, and its graph."""
    taken, _ = both.add(store.components[code] for code in store.sets[detail_set])
    assert taken is not None  # a set of a store is never empty
    gm = both.detail(taken, "gm")
    return (cache, both.direction(taken), None if gm is None else gm.detail_hash), taken


def by_fields(
    found: Iterable[tuple[Miss, tuple[str, ...], _Sides]],
    changes: Callable[[_Sides], tuple[FieldChange, ...]],
) -> list[ChangedSince]:
    """What changed for some misses, with both sides of each; misses with the same changed fields are together."""
    groups = by_key((fields, (miss, sides)) for miss, fields, sides in found)
    return [
        ChangedSince(
            fields, changes(same[0][1]), same[0][0].cause, tuple(miss.row.lookup for miss, _ in same)
        )
        for fields, same in groups.items()
    ]


def _is_first(miss: Miss) -> bool:
    """Whether to compare a miss: it follows from none, or from one without recorded details."""
    if not miss.why.what.may_be_first or miss.row.detail_set is None:
        return False
    return miss.follows is None or miss.follows.row.detail_set is None
