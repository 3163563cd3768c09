"""Lookups of some runs aligned with those of others: by key, by graph, or by their place in the program."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final, Literal

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.verdicts.replaced_graphs import SeenKey
from cachescope.answers.difference import (
    Difference,
    Pair,
    difference,
    key_changes,
    of_same_graph,
    side_of_runs,
)
from cachescope.answers.recording import Recording
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key

Change = Literal["regressed", "fixed", "same", "only_before", "only_after", "not_known"]
CHANGES: Final[tuple[Change, ...]] = ("regressed", "fixed", "only_after", "only_before", "not_known", "same")
_HITS: Final = ("hit", "would_hit")
_NOT_SEEN: Final = ("unknown", "not_known")

_Identity = tuple[str, Hashable]
_Changes = dict[tuple[_Identity, _Identity], tuple[FieldChange, ...]]
# The lookups of one key: the first of each run, the second of each run, and so on.
_Times = list[list[LookupRow]]
# The keys of one side, and its lookups by key.
_Side = tuple[Sequence[SeenKey], dict[_Identity, _Times]]
# A cache and a direction, and whether a lookup has a graph and a place, by which it could be held against others.
_ComparedBy = tuple[str, str | None, bool, bool]
# Lookups of both sides.
_Beside = tuple[list[LookupRow], list[LookupRow]]


@dataclass(frozen=True, slots=True)
class Aligned:
    """Lookups of one graph on both sides: the first of each run, the second of each run, and so on."""

    before: tuple[LookupRow, ...]  # at most one lookup per run; empty on the side that has none
    after: tuple[LookupRow, ...]
    # What aligns them: ``key``, ``graph``, or ``place`` if a lookup has no key or its details were not
    # recorded; empty if nothing does.
    by: Literal["key", "graph", "place", ""]
    # The fields in which the keys differ; None if not known, or if nothing is aligned.
    changes: tuple[FieldChange, ...] | None
    # Whether it may belong to a lookup that the other side alone has.
    is_open: bool = False

    @property
    def rows(self) -> tuple[LookupRow, ...]:
        """All of them, those of the later side first."""
        return *self.after, *self.before

    @property
    def one(self) -> LookupRow:
        """The lookup that represents all: one of the later side, if there is one."""
        return self.rows[0]

    @property
    def hits(self) -> tuple[int, int]:
        """How many hit on each side."""
        before, after = (sum(row.outcome in _HITS for row in rows) for rows in (self.before, self.after))
        return before, after

    @property
    def to_explain(self) -> int:
        """The lookup whose explanation says most: one that did not hit, on the later side if there is one."""
        return next((row.lookup for row in self.rows if row.outcome not in _HITS), self.one.lookup)

    @property
    def change(self) -> Change:
        """How the outcomes compare; not known if an outcome that was not seen could change that."""
        if not self.before or not self.after:
            return "not_known" if self.is_open else "only_before" if self.before else "only_after"
        (least, most), (least_after, most_after) = _share(self.before), _share(self.after)
        if most_after < least:
            return "regressed"
        if most < least_after:
            return "fixed"
        return "same" if least == most == least_after == most_after else "not_known"


def aligned_lookups(read: Recording, sides: Iterable[tuple[Sequence[int], Sequence[int]]]) -> list[Aligned]:
    """The lookups of some runs aligned with those of others. Lookups with equal keys that went alike are one row, whichever ranks made them.

    In time order; those that the later side lacks come last.
    """
    changes: _Changes = {}
    found: dict[tuple[_Identity | None, _Identity | None, int, Change], _Beside] = defaultdict(
        lambda: ([], [])
    )
    for before, after in sides:
        old, new = _slots(read, before), _slots(read, after)
        for one, other in _pairs(read, before, after, old, new, changes):
            times = old[one] if one else [], new[other] if other else []
            beside: _Beside
            for count, beside in enumerate(zip_longest(*times, fillvalue=[])):
                # One rank may have regressed where another one is fixed.
                change = _aligned(one, other, beside, changes).change
                for rows, more in zip(found[one, other, count, change], beside, strict=True):
                    rows += more
    every = [_aligned(one, other, beside, changes) for (one, other, *_), beside in found.items()]
    alone = {
        is_after: {_compared_by(one.one) for one in every if not one.by and bool(one.after) == is_after}
        for is_after in (False, True)
    }
    every = [
        one if one.by else replace(one, is_open=_is_open(one.one, alone[not one.after])) for one in every
    ]
    return sorted(every, key=lambda one: (not one.after, one.one.lookup))


def _compared_by(row: LookupRow) -> _ComparedBy:
    return row.cache, row.direction, row.detail_set is not None, _place(row) is not None


def _is_open(row: LookupRow, others: Iterable[_ComparedBy]) -> bool:
    """Whether a lookup that is aligned with none may belong to one that the other side alone has."""
    cache, direction, has_graph, has_place = _compared_by(row)
    return not (has_graph or has_place) or any(
        cache == other_cache
        and (direction == other_direction or None in (direction, other_direction))
        and not ((has_graph and graph) or (has_place and place))
        for other_cache, other_direction, graph, place in others
    )


def _pairs(
    read: Recording,
    before: Sequence[int],
    after: Sequence[int],
    old: dict[_Identity, _Times],
    new: dict[_Identity, _Times],
    changes: _Changes,
) -> Iterator[tuple[_Identity | None, _Identity | None]]:
    """The lookups of one side, each with those of the other that it belongs to; None if there are none."""
    keys, other_keys = side_of_runs(read, before, []), side_of_runs(read, after, [])
    apart = difference(read, keys, other_keys)
    pairs = [(one, one) for one in old.keys() & new.keys()]
    for fields, same in apart.groups:
        for a, b in same:
            pairs.append((a.identity, b.identity))
            changes[a.identity, b.identity] = fields
    for a, b in _more_keys_of_graphs(read, apart, (keys, old), (other_keys, new)):
        pairs.append((a.identity, b.identity))
        changes[a.identity, b.identity] = key_changes(read, a, b) or ()
    pairs += _at_one_place(old, new, apart.unknown, {one for pair in pairs for one in pair})
    yield from pairs
    paired, paired_after = ({pair[side] for pair in pairs} for side in (0, 1))
    yield from ((one, None) for one in old if one not in paired)
    yield from ((None, other) for other in new if other not in paired_after)


def _aligned(one: _Identity | None, other: _Identity | None, beside: _Beside, changes: _Changes) -> Aligned:
    before, after = map(tuple, beside)
    if one is None or other is None:
        return Aligned(before, after, "", None)
    has_both = bool(before and after)
    if (one, other) in changes:
        return Aligned(before, after, "graph", changes[one, other] if has_both else None)
    if one == other and (before or after)[0].cache_key is not None:
        return Aligned(before, after, "key", () if has_both else None)
    return Aligned(before, after, "place", None)


def _slots(read: Recording, runs: Iterable[int]) -> dict[_Identity, _Times]:
    """The lookups of some runs by their keys: the first of each run, the second of each run, and so on."""
    chosen, lookups = set(runs), read.facts.lookups
    seen: Counter[tuple[int, _Identity]] = Counter()
    found: dict[_Identity, _Times] = defaultdict(list)
    for made in read.history.lookups:
        if made.run not in chosen:
            continue
        row = lookups[made.lookup]
        identity = _identity(row)
        times, count = found[identity], seen[row.run, identity]
        if count == len(times):
            times.append([])
        times[count].append(row)
        seen[row.run, identity] += 1
    return dict(found)


def _identity(row: LookupRow) -> _Identity:
    """What identifies a lookup: its key, or its place in the program for a bypass, which has no key."""
    if row.cache_key is not None:
        return row.cache, row.cache_key
    place = _place(row)
    return row.cache, (row.lookup if place is None else (place, row.direction))


def _place(row: LookupRow) -> Hashable | None:
    """The compile and its function; None if the function is not known, since every program has a compile 0/0."""
    if row.compile_id is None or row.function is None or row.file is None:
        return None
    return row.cache, row.compile_id, row.function, row.file


def _more_keys_of_graphs(read: Recording, found: Difference, before: _Side, after: _Side) -> Iterator[Pair]:
    """Further keys that one side has for a graph, such as one for each rank."""
    graph = read.history.keys.graph
    sides = ((found.only_before, before[1], after[0], True), (found.only_after, after[1], before[0], False))
    for alone, own, others, is_before in sides:
        graphs = by_key(((other.cache, other.direction, graph(other.detail_set)), other) for other in others)
        for seen in alone:
            code = graph(seen.detail_set)
            same = graphs.get((seen.cache, seen.direction, code))
            partner = of_same_graph(read, seen, same) if same and code is not None else None
            # A process that made both keys compiled the graph again: the other side did not.
            if partner is not None and not _runs(own, seen) <= _runs(own, partner):
                yield (seen, partner) if is_before else (partner, seen)


def _runs(slots: dict[_Identity, _Times], seen: SeenKey) -> set[int]:
    return {row.run for rows in slots.get(seen.identity, ()) for row in rows}


def _at_one_place(
    old: dict[_Identity, _Times],
    new: dict[_Identity, _Times],
    unknown: Iterable[Pair],
    paired: set[_Identity],
) -> list[tuple[_Identity, _Identity]]:
    """Lookups whose graphs cannot be compared, paired if each side has just one at a place of the program."""
    found: list[tuple[_Identity, _Identity]] = []
    # Only the compile would pair them, and every program has a compile 0/0.
    for a, b in unknown:
        place = _place(old[a.identity][0][0])
        if place is not None and place == _place(new[b.identity][0][0]):
            found.append((a.identity, b.identity))
    done = paired.union(*found) if found else paired
    places: dict[Hashable, tuple[list[_Identity], list[_Identity]]] = defaultdict(lambda: ([], []))
    for side, slots in enumerate((old, new)):
        for identity, times in slots.items():
            place = _place(times[0][0])
            if identity not in done and place is not None:
                places[place][side].append(identity)
    for before, after in places.values():
        if len(before) == len(after) == 1:
            has_key = [times[0][0].cache_key is not None for times in (old[before[0]], new[after[0]])]
            if has_key[0] != has_key[1]:
                found.append((before[0], after[0]))
    return found


def _share(rows: Sequence[LookupRow]) -> tuple[float, float]:
    """The least and the greatest share of hits that some lookups may have had."""
    hits = sum(row.outcome in _HITS for row in rows)
    return hits / len(rows), (hits + sum(row.outcome in _NOT_SEEN for row in rows)) / len(rows)
