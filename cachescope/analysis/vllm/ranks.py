"""Ranks of one configuration side by side: which of them have a folder of their own, and in what it differs from another's.

The hash of the configuration has the number of ranks in it (``ParallelConfig.compute_hash`` of vllm/config/parallel.py,
0.13.0 and 0.33.0), and not which rank it is: all engines of one configuration have the same ranks, and where all is equal
each folder has all of them, as ``rank_<rank>_<data parallel rank>``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.process_values.kinds import Kind
from cachescope.analysis.vllm.changes import Beside, changes_of, coded
from cachescope.analysis.vllm.factors import CONFIGURATION, HASHES, Named, name_kinds, process_kinds
from cachescope.columns import frame_of, rows_of
from cachescope.frames.vllm import FactorsRow, RankRow, VllmChange

_Ranks = frozenset[tuple[int, int]]
OF_A_RANK: Final[frozenset[Kind]] = frozenset({"rank", "port", "bundle index", "host"})
"""What each rank has of its own in a job where nothing is wrong."""
# Each is compared with all others.
_MOST_APART: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Side:
    folder: Named
    ranks: _Ranks


def ranks_frame(factors: pd.DataFrame, named: Sequence[Named]) -> pd.DataFrame:
    """The frame ``vllm_ranks``."""
    return frame_of(_rows(rows_of(factors, FactorsRow), named), RankRow)


def _rows(factors: Sequence[FactorsRow], named: Sequence[Named]) -> Iterator[RankRow]:
    ranks = _ranks(factors)
    of_configuration: dict[str, list[_Side]] = defaultdict(list)
    for folder in named:
        if folder.name in ranks:
            of_configuration[folder.values[CONFIGURATION]].append(_Side(folder, ranks[folder.name]))
    for sides in of_configuration.values():
        for one, other, changed in _apart(sides):
            for change in changes_of(Beside(one.folder, other.folder, False, changed)):
                yield _row(one, other, change)


def _ranks(factors: Iterable[FactorsRow]) -> dict[str, _Ranks]:
    """The ranks that have factors of their own in each folder whose name follows from them."""
    rows = list(factors)
    kinds = name_kinds(rows)
    found: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for row in rows:
        if (
            kinds[row.entry] == "recomputed"
            and row.folder
            and row.rank is not None
            and row.dp_rank is not None
        ):
            found[row.folder].add((row.rank, row.dp_rank))
    return {folder: frozenset(ranks) for folder, ranks in found.items()}


def _apart(sides: Sequence[_Side]) -> Iterator[tuple[_Side, _Side, tuple[str, ...]]]:
    """Each folder that lacks a rank, the nearest that has one of those that it lacks, and the factors in which they differ.

    Of two that are nearest to each other, that of the lower rank is the other. Where a folder has the first rank, and the
    nearest has it as well, it looks the same as a start whose other ranks stopped: it is left out.
    """
    sets = list(dict.fromkeys(side.ranks for side in sides))
    every = frozenset[tuple[int, int]]().union(*sets)
    apart = [number for number, side in enumerate(sides) if side.ranks != every][:_MOST_APART]
    if not apart:
        return
    varying, codes = coded([side.folder for side in sides])
    number_of = {ranks: number for number, ranks in enumerate(sets)}
    of_set = np.array([number_of[side.ranks] for side in sides])
    times = np.array([side.folder.written or 0 for side in sides])
    nearest = {number: _nearest(number, codes, sets, of_set, times) for number in apart}
    for number, at in nearest.items():
        one, other = sides[number], sides[at]
        if nearest.get(at) == number and min(one.ranks) < min(other.ranks):
            continue
        if min(every) in one.ranks and one.ranks & other.ranks:
            continue
        differs = np.flatnonzero(codes[number] != codes[at]).tolist()
        yield one, other, tuple(varying[column] for column in differs)


def _nearest(
    number: int,
    codes: npt.NDArray[np.int32],
    sets: Sequence[_Ranks],
    of_set: npt.NDArray[np.intp],
    times: npt.NDArray[np.int64],
) -> int:
    """What differs in the fewest factors, then what has no rank of the folder, then the lowest rank, then the time."""
    ranks = sets[of_set[number]]
    lowest = sorted({min(each) for each in sets})
    has_others = np.array([bool(each - ranks) for each in sets])[of_set]
    overlaps = np.array([bool(each & ranks) for each in sets])[of_set]
    order = np.array([lowest.index(min(each)) for each in sets])[of_set]
    distance = (codes != codes[number]).sum(axis=1)
    nearness = np.lexsort((np.abs(times - times[number]), order, overlaps, distance, ~has_others))
    return int(nearness[0])


def _row(one: _Side, other: _Side, change: VllmChange) -> RankRow:
    return RankRow(
        folder=change.folder,
        ranks=_named(one.ranks),
        baseline=change.baseline,
        baseline_ranks=_named(other.ranks),
        factor=change.factor,
        before=change.before,
        after=change.after,
        differs_by=change.differs_by,
        is_of_a_rank=_is_of_a_rank(change),
        text=change.text,
    )


def _is_of_a_rank(change: VllmChange) -> bool:
    """Whether the values differ in nothing but what each rank has of its own."""
    if change.factor in HASHES or change.before is None or change.after is None:
        return False
    kinds = process_kinds(change.factor, change.before, change.after)
    return kinds is not None and kinds.is_all and OF_A_RANK.issuperset(kinds.kinds)


def _named(ranks: _Ranks) -> tuple[str, ...]:
    """As their folders are named: ``rank_1_0``."""
    return tuple(f"rank_{rank}_{dp_rank}" for rank, dp_rank in sorted(ranks))
