"""Ranks that differ from the majority, and in which field.

The ranks of a job run one program, so lookups at one place of it (the same compile, cache, direction
and graph) should have one key. Hashes are compared, never texts; a rank without recorded details is left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.columns import plain_columns
from cachescope.component_sets import Codes
from cachescope.details import HashDetails
from cachescope.frames.answer_rows import RankDifference
from cachescope.frames.ranks import RANK_DIFFERENCES

_ABSENT = -1
_GRAPH = "gm"


@dataclass(frozen=True, slots=True)
class _Lookup:
    """One lookup of one rank."""

    rank: int
    detail_set: int
    is_miss: bool


@dataclass(frozen=True, slots=True)
class _Difference:
    """One field at one place: the lookups that differ in it, and those that have the majority's value."""

    field: str
    compared: Sequence[_Lookup]
    values: int
    majority: Sequence[_Lookup]
    others: Sequence[_Lookup]

    @property
    def what(self) -> tuple[str, tuple[int, ...], bool]:
        """The identity of a difference: the same field of the same ranks is one, at however many places."""
        return self.field, tuple(sorted({lookup.rank for lookup in self.others})), bool(self.majority)


def rank_differences(lookups: pd.DataFrame, runs: pd.DataFrame, details: HashDetails) -> pd.DataFrame:
    """See ``describe("rank_differences")``: the field that most places differ in comes first."""
    same: dict[tuple[str, tuple[int, ...], bool], list[_Difference]] = defaultdict(list)
    for place in _places(lookups, runs):
        for difference in _differences(place, details):
            same[difference.what].append(difference)
    rows = [_row(differences, details) for differences in same.values()]
    rows.sort(key=lambda row: (-row.graphs, -row.misses, len(row.ranks), row.field))
    return RANK_DIFFERENCES.of_rows(rows)


def _row(differences: Sequence[_Difference], details: HashDetails) -> RankDifference:
    first = differences[0]
    field, ranks, has_majority = first.what
    return RankDifference(
        field=field,
        ranks=ranks,
        has_majority=has_majority,
        ranks_compared=max(len({lookup.rank for lookup in one.compared}) for one in differences),
        values=max(one.values for one in differences),
        graphs=len(differences),
        misses=sum(lookup.is_miss for one in differences for lookup in one.others),
        majority_value=_text(details, first.majority, field),
        other_value=_text(details, first.others, field),
    )


def _text(details: HashDetails, lookups: Sequence[_Lookup], field: str) -> str | None:
    detail = details.detail(lookups[0].detail_set, field) if lookups else None
    return None if detail is None else detail.value_text


def _places(lookups: pd.DataFrame, runs: pd.DataFrame) -> Iterable[list[_Lookup]]:
    """What several ranks looked up at one place: the first time each, the second time each, and so on."""
    known = runs[runs["rank"].notna()]
    ranks = dict(zip(known["run"].tolist(), known["rank"].tolist(), strict=True))
    places: dict[tuple[object, ...], list[_Lookup]] = defaultdict(list)
    times: Counter[tuple[object, ...]] = Counter()
    columns = plain_columns(lookups, ["run", "cache", "compile_id", "direction", "outcome", "detail_set"])
    for run, *place, outcome, detail_set in zip(*columns.values(), strict=True):
        if run not in ranks or detail_set is None:
            continue
        rank = ranks[run]
        times[rank, *place] += 1
        lookup = _Lookup(rank, detail_set, outcome not in ("hit", "unknown"))
        places[*place, times[rank, *place]].append(lookup)
    return [place for place in places.values() if len(place) > 1]


def _differences(place: list[_Lookup], details: HashDetails) -> Iterator[_Difference]:
    """The differences at one place. For another graph only the graph is reported; other fields are compared within a graph."""
    fields, hashes = _hashes(place, details)
    graph = np.flatnonzero(fields == details.field_code(_GRAPH))
    graphs = hashes[:, graph[0]] if len(graph) else np.zeros(len(place), dtype=np.int32)
    if (graphs != graphs[0]).any():
        yield _difference(_GRAPH, place, graphs)
    for one in np.unique(graphs):
        at = np.flatnonzero(graphs == one)
        own = hashes[at]
        for column in np.flatnonzero((own != own[0]).any(axis=0)):
            yield _difference(details.fields[fields[column]], [place[i] for i in at], own[:, column])


def _difference(field: str, compared: Sequence[_Lookup], values: Codes) -> _Difference:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    most = which == counts.argmax() if 2 * counts.max() > len(values) else np.zeros(len(values), dtype=bool)
    return _Difference(field, compared, len(counts), _chosen(compared, most), _chosen(compared, ~most))


def _chosen(lookups: Sequence[_Lookup], mask: npt.NDArray[np.bool_]) -> list[_Lookup]:
    return [lookups[at] for at in np.flatnonzero(mask).tolist()]


def _hashes(place: Sequence[_Lookup], details: HashDetails) -> tuple[Codes, Codes]:
    """The fields that any of the lookups has, and a row of hash codes for each lookup."""
    sets, which = np.unique([lookup.detail_set for lookup in place], return_inverse=True)
    codes = [details.sets[detail_set] for detail_set in sets]
    fields = np.unique(np.concatenate([details.field_codes[own] for own in codes]))
    table = np.full((len(codes), len(fields)), _ABSENT, dtype=np.int32)
    for row, own in zip(table, codes, strict=True):
        row[np.searchsorted(fields, details.field_codes[own])] = details.hash_codes[own]
    return fields, table[which]
