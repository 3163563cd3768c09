"""Ranks that differ from the majority, and in which field.

The ranks of a job run one program, so lookups at one place of it (the same compile, cache, direction
and graph) should have one key. Hashes are compared, never texts; a rank without recorded details is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.detail_arrays import Codes, Numbers, differing
from cachescope.columns import frame_of
from cachescope.details import HashDetails
from cachescope.frames.ranks import RankDifference

_GRAPH: Final = "gm"
_PLACE: Final = ["cache", "compile_id", "direction"]
# So many lookups are compared at once: each has a row of the hashes in which any of them differ.
_AT_ONCE: Final = 4096


@dataclass(frozen=True, slots=True)
class _Lookups:
    """Lookups in columns, those of one place beside each other."""

    place: Numbers
    rank: Numbers
    detail_set: Numbers
    is_miss: npt.NDArray[np.bool_]

    def between(self, first: int, last: int) -> _Lookups:
        chosen = slice(first, last)
        return _Lookups(self.place[chosen], self.rank[chosen], self.detail_set[chosen], self.is_miss[chosen])


@dataclass(frozen=True, slots=True)
class _Groups:
    """Lookups that are compared with each other: numbers of lookups, group after group."""

    lookups: Numbers
    first: Numbers
    """Where each group begins in `lookups`."""
    size: Numbers


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


def rank_differences(lookups: pd.DataFrame, runs: pd.DataFrame, details: HashDetails) -> pd.DataFrame:
    """See ``describe("rank_differences")``: the field that most places differ in comes first."""
    same: dict[tuple[str, tuple[int, ...], bool], list[_Difference]] = defaultdict(list)
    for part in _parts(_of_several_ranks(lookups, runs)):
        for difference in _differences(part, details):
            same[difference.what].append(difference)
    rows = [_row(differences, details) for differences in same.values()]
    rows.sort(key=lambda row: (-row.graphs, -row.misses, len(row.ranks), row.field))
    return frame_of(rows, RankDifference)


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


def _of_several_ranks(lookups: pd.DataFrame, runs: pd.DataFrame) -> _Lookups:
    """What several ranks looked up at one place: the first time each, the second time each, and so on."""
    known = runs[runs["rank"].notna()]
    ranks = pd.Series(known["rank"].to_numpy(dtype=np.int64), index=known["run"].to_numpy(dtype=np.int64))
    mine = lookups[lookups["detail_set"].notna() & lookups["run"].isin(ranks.index)]
    keys = mine[_PLACE].assign(rank=ranks.loc[mine["run"].to_numpy(dtype=np.int64)].to_numpy())
    keys["time"] = keys.groupby([*_PLACE, "rank"], dropna=False, sort=False).cumcount()
    of_place = keys.groupby([*_PLACE, "time"], dropna=False, sort=False).ngroup()
    place = np.asarray(of_place, dtype=np.int64)
    order = np.argsort(place, kind="stable")
    order = order[np.bincount(place, minlength=1)[place[order]] > 1]
    return _Lookups(
        place[order],
        keys["rank"].to_numpy(dtype=np.int64)[order],
        mine["detail_set"].to_numpy(dtype=np.int64)[order],
        ~mine["outcome"].isin(["hit", "unknown"]).to_numpy(dtype=bool)[order],
    )


def _parts(lookups: _Lookups) -> Iterator[_Lookups]:
    """Whole places, so many that they can be compared at once."""
    ends = np.append(np.flatnonzero(np.diff(lookups.place)) + 1, len(lookups.place))
    first = 0
    while first < len(lookups.place):
        within = ends[(ends > first) & (ends <= first + _AT_ONCE)]
        last = int(within[-1] if len(within) else ends[ends > first][0])
        yield lookups.between(first, last)
        first = last


def _differences(part: _Lookups, details: HashDetails) -> Iterable[_Difference]:
    """The differences at each place. For another graph only the graph is reported; other fields are compared within a graph."""
    sets, which = np.unique(part.detail_set, return_inverse=True)
    fields, of_sets = differing(details, sets.tolist())
    hashes = of_sets[which]
    code = details.field_code(_GRAPH)
    at = np.flatnonzero(fields == (-1 if code is None else code))
    graph = hashes[:, at[0]] if len(at) else np.zeros(len(hashes), dtype=np.int32)
    found: list[tuple[tuple[int, bool, int, int], _Difference]] = []
    for is_within, groups, columns in (
        (False, _groups(part.place), at),
        (True, _groups(part.place, graph), np.arange(len(fields))),
    ):
        pairs = _that_differ(groups, hashes, columns)
        names = [details.fields[fields[column]] for _, column in pairs]
        place = part.place[groups.lookups[groups.first]].tolist()
        for pair, one in zip(pairs, _compared(part, groups, hashes, pairs, names), strict=True):
            found.append(((place[pair[0]], is_within, *pair), one))
    return (one for _, one in sorted(found, key=lambda item: item[0]))


def _groups(*by: npt.NDArray[np.integer]) -> _Groups:
    """Lookups that are equal in some columns; groups in the order of these, lookups in their own."""
    order = np.lexsort(by[::-1])
    is_first = np.logical_or.reduce(
        [np.diff(column[order], prepend=column[order[:1]] - 1) != 0 for column in by]
    )
    first = np.flatnonzero(is_first)
    return _Groups(order, first, np.diff(first, append=len(order)))


def _that_differ(groups: _Groups, hashes: Codes, columns: Numbers) -> list[tuple[int, int]]:
    """Each group, and each of the columns in which not all of its lookups are equal."""
    if not len(groups.first) or not len(columns):
        return []
    mine = hashes[np.ix_(groups.lookups, columns)]
    differs = mine != np.repeat(mine[groups.first], groups.size, axis=0)
    group, column = np.nonzero(np.logical_or.reduceat(differs, groups.first, axis=0))
    return list(zip(group.tolist(), columns[column].tolist(), strict=True))


def _compared(
    part: _Lookups, groups: _Groups, hashes: Codes, pairs: Sequence[tuple[int, int]], names: Sequence[str]
) -> Iterator[_Difference]:
    """What differs in each of some groups in one column: its values are counted for all of them at once."""
    if not pairs:
        return
    group, column = np.array(pairs).T
    size = groups.size[group]
    ends = np.cumsum(size)
    pair = np.repeat(np.arange(len(pairs)), size)
    lookups = groups.lookups[np.arange(ends[-1]) + np.repeat(groups.first[group] - (ends - size), size)]
    same = _groups(pair, hashes[lookups, column[pair]])
    pair_of_value = pair[same.lookups[same.first]]
    is_most = np.zeros(len(lookups), dtype=bool)
    is_most[same.lookups] = np.repeat(2 * same.size > size[pair_of_value], same.size)
    values = np.bincount(pair_of_value)
    for at, name in enumerate(names):
        mine = slice(ends[at] - size[at], ends[at])
        most, others = lookups[mine][is_most[mine]], lookups[mine][~is_most[mine]]
        yield _Difference(
            field=name,
            ranks=tuple(sorted(part.rank[others].tolist())),
            compared=int(size[at]),
            values=int(values[at]),
            misses=int(part.is_miss[others].sum()),
            majority_set=int(part.detail_set[most[0]]) if len(most) else None,
            other_set=int(part.detail_set[others[0]]),
        )
