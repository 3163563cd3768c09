"""Which sets of fields separate the keys of one graph: what a search for fields that would help has to try.

Sets are not guessed: they are the differences between keys of one graph, nearest first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from operator import ne
from typing import Final, NamedTuple

from cachescope.analysis.what_if.replay import Replay
from cachescope.grouping import by_key

Fields = frozenset[str]
# The number of sets to try: the most frequent.
_SETS: Final = 32
# How many comparisons of two values the search for sets may take; with few keys, every pair is compared.
_COMPARISONS: Final = 30_000_000
_FEWEST_PARTNERS: Final = 4


class _Key(NamedTuple):
    """The values of a key in the fields that vary; equal numbers mean equal hashes."""

    values: tuple[int, ...]
    was_missed: bool


def field_sets(replay: Replay, largest: int) -> list[Fields]:
    """Sets of at least two fields that separate keys of one graph, the most frequent first."""
    table = replay.table
    names = table.varying
    missing = {replay.recorded.key[at] for at in replay.misses}
    values_of = zip(*map(table.column, names), strict=True)
    graph_of = table.column("gm") if "gm" in names else [0] * len(table.with_details)
    graphs = by_key(
        ((graph, table.keys[key].home), _Key(values, key in missing))
        for key, graph, values in zip(table.with_details, graph_of, values_of, strict=False)
    )
    partners = max(_FEWEST_PARTNERS, _COMPARISONS // max(len(names) * len(table.with_details), 1))
    count = Counter(found for keys in graphs.values() for found in _differing(keys, partners, largest))
    sets = {frozenset(compress(names, differs)): times for differs, times in count.items()}
    return sorted(sets, key=lambda fields: (-sets[fields], sorted(fields)))[:_SETS]


def _differing(keys: Sequence[_Key], partners: int, largest: int) -> Iterator[tuple[bool, ...]]:
    """For pairs of keys of one graph, in which fields they differ.

    Every key is compared with the first, and with so many before it. Of the larger sets, only that of its nearest counts.
    """
    for at, key in enumerate(keys[1:], 1):
        nearest: tuple[bool, ...] = ()
        smallest = len(key.values) + 1
        for other in (keys[0], *reversed(keys[max(1, at - partners) : at])):
            if not (key.was_missed or other.was_missed):
                continue
            differs = tuple(map(ne, key.values, other.values))
            size = differs.count(True)
            if 1 < size <= largest:
                yield differs
            if 0 < size < smallest:
                nearest, smallest = differs, size
        if max(largest, 1) < smallest <= len(key.values):
            yield nearest
