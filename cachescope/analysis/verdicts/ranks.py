"""Ranks that differ from the majority, and in which field.

The ranks of a job run one program, so lookups at one place of it (the same compile, cache, direction
and graph) should have one key. Hashes are compared, never texts; a rank without recorded details is left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cachescope.details import HashDetails
from cachescope.frames.answer_rows import RankDifference
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key

_GRAPH: Final = "gm"


@dataclass(frozen=True, slots=True)
class _Difference:
    """One field at one place: what ranks differ in it from the majority, if there is one."""

    field: str
    ranks: tuple[int, ...]
    compared: int
    values: int
    misses: int
    majority_set: int | None
    """The details of the first lookup that has the value of the majority."""
    other_set: int

    @property
    def what(self) -> tuple[str, tuple[int, ...], bool]:
        """The identity of a difference: the same field of the same ranks is one, at however many places."""
        return self.field, self.ranks, self.majority_set is not None


def rank_differences(
    lookups: Iterable[LookupRow], runs: Iterable[RunRow], details: HashDetails
) -> list[RankDifference]:
    """See ``describe("rank_differences")``: the field that most places differ in comes first."""
    rank_of = {run.run: run.rank for run in runs if run.rank is not None}
    same = by_key(
        (difference.what, difference)
        for members in _of_several_ranks(lookups, rank_of)
        for difference in _differences(members, rank_of, details)
    )
    rows = [_row(differences, details) for differences in same.values()]
    return sorted(rows, key=lambda row: (-row.graphs, -row.misses, len(row.ranks), row.field))


def _row(differences: Sequence[_Difference], details: HashDetails) -> RankDifference:
    first = differences[0]
    field, ranks, has_majority = first.what
    return RankDifference(
        field=field,
        ranks=ranks,
        has_majority=has_majority,
        ranks_compared=max(one.compared for one in differences),
        values=max(one.values for one in differences),
        graphs=len(differences),
        misses=sum(one.misses for one in differences),
        majority_value=_text(details, first.majority_set, field),
        other_value=_text(details, first.other_set, field),
    )


def _text(details: HashDetails, detail_set: int | None, field: str) -> str | None:
    detail = None if detail_set is None else details.detail(detail_set, field)
    return None if detail is None else detail.value_text


def _of_several_ranks(lookups: Iterable[LookupRow], rank_of: Mapping[int, int]) -> Iterator[list[LookupRow]]:
    """What several ranks looked up at one place: the first time each, the second time each, and so on."""
    times: Counter[tuple[object, ...]] = Counter()
    groups: dict[tuple[object, ...], list[LookupRow]] = defaultdict(list)
    for row in lookups:
        if row.detail_set is not None and row.run in rank_of:
            place = row.cache, row.compile_id, row.direction
            of_rank = *place, rank_of[row.run]
            groups[*place, times[of_rank]].append(row)
            times[of_rank] += 1
    return (members for members in groups.values() if len(members) > 1)


def _differences(
    members: Sequence[LookupRow], rank_of: Mapping[int, int], details: HashDetails
) -> Iterator[_Difference]:
    """The differences at one place. For another graph only the graph is reported; other fields are compared within a graph."""
    varying = _values(members, details)
    graphs = next((held for field, held in varying.items() if details.fields[field] == _GRAPH), None)
    if graphs is None:
        of_graph = [members]
    else:
        yield _difference(_GRAPH, members, graphs, rank_of)
        by_graph = by_key(zip(graphs, members, strict=True))
        of_graph = [by_graph[graph] for graph in sorted(by_graph)]
    for mine in of_graph:
        within = varying if mine is members else _values(mine, details)
        for field in sorted(within):
            yield _difference(details.fields[field], mine, within[field], rank_of)


def _values(members: Sequence[LookupRow], details: HashDetails) -> dict[int, list[int]]:
    """By the code of each field that is not equal in all of some lookups: its hash code in each, -1 where it is missing."""
    sets = [row.detail_set for row in members if row.detail_set is not None]
    first = sets[0]
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for other in dict.fromkeys(sets):
        for field, old, new in details.changes(first, other):
            found[field][first] = _hash_of(old, details)
            found[field][other] = _hash_of(new, details)
    return {field: [held.get(one, held[first]) for one in sets] for field, held in found.items()}


def _hash_of(component: int | None, details: HashDetails) -> int:
    return -1 if component is None else int(details.hash_codes[component])


def _difference(
    field: str, members: Sequence[LookupRow], values: Sequence[int], rank_of: Mapping[int, int]
) -> _Difference:
    """What differs in one field: of some lookups, each has a value."""
    counts = Counter(values)
    ((value, count),) = counts.most_common(1)
    majority = value if 2 * count > len(values) else None
    most = [row for row, held in zip(members, values, strict=True) if held == majority]
    others = [row for row, held in zip(members, values, strict=True) if held != majority]
    other_set = others[0].detail_set
    assert other_set is not None
    return _Difference(
        field=field,
        ranks=tuple(sorted(rank_of[row.run] for row in others)),
        compared=len(members),
        values=len(counts),
        misses=sum(row.outcome not in ("hit", "unknown") for row in others),
        majority_set=most[0].detail_set if most else None,
        other_set=other_set,
    )
