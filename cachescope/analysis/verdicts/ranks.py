"""Ranks that differ from the majority, and in which fields; and fields that differ because they contain the rank.

The ranks of a job run one program, so their lookups at one place in it (the same compile, cache, direction
and graph) should have one key. Hashes are compared, never texts; a rank without recorded details is left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from cachescope.analysis.differences import component_change
from cachescope.details import ChangedField, HashDetails
from cachescope.frames.answer_rows import RankDifference
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key


def rank_differences(
    lookups: Iterable[LookupRow], runs: Iterable[RunRow], details: HashDetails, job_of: Mapping[int, int]
) -> list[RankDifference]:
    """See ``describe("rank_differences")``: the field that most places differ in comes first.

    Ranks of one job, by `job_of`, are compared with each other only; all other runs count as ranks of one job.
    """
    rank_of = {run.run: run.rank for run in runs if run.rank is not None}
    # The same field of the same ranks is one difference, at however many places.
    same = by_key(
        ((row.field, row.ranks, row.has_majority), (place, row))
        for place, members in _of_several_ranks(lookups, rank_of, job_of)
        for row in _differences(members, rank_of, details)
    )
    rows = [
        replace(
            of_places[0][1],
            ranks_compared=max(row.ranks_compared for _, row in of_places),
            values=max(row.values for _, row in of_places),
            graphs=len({place for place, _ in of_places}),
            misses=sum(row.misses for _, row in of_places),
        )
        for of_places in same.values()
    ]
    return sorted(rows, key=lambda row: (-row.graphs, -row.misses, len(row.ranks), row.field))


def _of_several_ranks(
    lookups: Iterable[LookupRow], rank_of: Mapping[int, int], job_of: Mapping[int, int]
) -> Iterator[tuple[tuple[object, ...], list[LookupRow]]]:
    """What several ranks of one job looked up at one place, with the place: the first time each, then the second time each, and so on."""
    times: Counter[tuple[object, ...]] = Counter()
    groups: dict[tuple[object, ...], list[LookupRow]] = defaultdict(list)
    for row in lookups:
        if row.detail_set is not None and row.run in rank_of:
            place = job_of.get(row.run), row.cache, row.compile_id, row.direction
            of_rank = *place, rank_of[row.run]
            groups[*place, times[of_rank]].append(row)
            times[of_rank] += 1
    return ((place[1:], members) for place, members in groups.items() if len(members) > 1)


def _differences(
    members: Sequence[LookupRow], rank_of: Mapping[int, int], details: HashDetails
) -> Iterator[RankDifference]:
    """The differences at one place. For another graph only the graph is reported; other fields are compared within a graph."""
    varying = _values(members, details)
    graphs = varying.get("gm")
    if graphs is None:
        of_graph = [members]
    else:
        yield _difference("gm", members, graphs, rank_of, details)
        by_graph = by_key(zip(graphs, members, strict=True))
        of_graph = [by_graph[graph] for graph in sorted(by_graph)]
    for mine in of_graph:
        within = varying if mine is members else _values(mine, details)
        yield from (_difference(field, mine, held, rank_of, details) for field, held in within.items())


def _values(members: Sequence[LookupRow], details: HashDetails) -> dict[str, list[int]]:
    """For each field that is not equal in all lookups: its hash code in each of them, -1 where it is missing."""
    sets = [row.detail_set for row in members if row.detail_set is not None]
    first = sets[0]
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for other in dict.fromkeys(sets):
        for field, old, new in details.changes(first, other):
            found[field][first] = _hash_of(old, details)
            found[field][other] = _hash_of(new, details)
    return {field: [held.get(one, held[first]) for one in sets] for field, held in found.items()}


def _hash_of(component: int | None, details: HashDetails) -> int:
    return -1 if component is None else int(details.hash_codes[component])


def _difference(
    field: str,
    members: Sequence[LookupRow],
    values: Sequence[int],
    rank_of: Mapping[int, int],
    details: HashDetails,
) -> RankDifference:
    """What differs in one field at one place, given lookups with a value each."""
    counts = Counter(values)
    ((value, count),) = counts.most_common(1)
    majority = value if 2 * count > len(values) else None
    most = [row for row, held in zip(members, values, strict=True) if held == majority]
    # The value of the first rank is given, and lookups are in time order.
    others = sorted(
        (row for row, held in zip(members, values, strict=True) if held != majority),
        key=lambda row: rank_of[row.run],
    )
    return RankDifference(
        field=field,
        ranks=tuple(sorted(rank_of[row.run] for row in others)),
        has_majority=bool(most),
        ranks_compared=len(members),
        values=len(counts),
        graphs=1,
        misses=sum(row.outcome not in ("hit", "unknown") for row in others),
        majority_value=details.text(most[0].detail_set, field) if most else None,
        other_value=details.text(others[0].detail_set, field),
    )


# Ranks that start together on an empty cache all miss, and none of them causes another's miss. But if their keys differ in a field
# that contains the rank, as a path or a device does, no rank will ever find what another stored.
_NUMBER: Final = re.compile(r"\d{1,18}")
_DEVICE: Final = re.compile(r"(?<![a-z])[a-z]++:\d|device\(type='[a-z]++', index=\d")
# What a bare number counts, only the name of the field shows.
_COUNTS_RANKS: Final = re.compile(r"(?:^|[\[._])(?:local_)?(?:rank|device_index)(?:$|[\]._])|device_index")


def all_hold_a_rank(details: HashDetails, changes: Sequence[ChangedField], apart: int | None) -> bool:
    """Whether two sets of hash details differ only in fields that contain the rank; `apart` is the distance between the ranks."""
    return bool(changes) and all(_holds_a_rank(details, old, new, apart) for _, old, new in changes)


def _holds_a_rank(details: HashDetails, before: int | None, after: int | None, apart: int | None) -> bool:
    """Whether two components of a field differ only by the rank."""
    change = component_change(details, before, after)
    if change.kind == "tensor":
        return all(
            name == "device" and _DEVICE.search(a) is not None and _differ_in_numbers(a, b, None)
            for name, a, b in change.parts
        )
    if change.kind != "value":
        return False
    assert change.before is not None and change.after is not None
    if change.before.isdecimal() and not _COUNTS_RANKS.search(change.field):
        return False
    return _differ_in_numbers(change.before, change.after, apart)


def _differ_in_numbers(before: str, after: str, apart: int | None) -> bool:
    """Whether two texts differ only in numbers, and if the ranks are known, by their difference."""
    if _NUMBER.sub("#", before) != _NUMBER.sub("#", after):
        return False
    pairs = zip(_NUMBER.findall(before), _NUMBER.findall(after), strict=True)
    steps = {int(b) - int(a) for a, b in pairs if a != b}
    return bool(steps) and (apart is None or steps == {apart})
