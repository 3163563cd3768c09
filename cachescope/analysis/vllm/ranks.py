"""Ranks of one configuration side by side: which of them have a folder of their own, and in what it differs from another's.

The hash of the configuration has the number of ranks in it (``ParallelConfig.compute_hash`` of vllm/config/parallel.py,
0.13.0 and 0.33.0), and not which rank it is: all engines of one configuration have the same ranks, and where all is equal
each folder has all of them, as ``rank_<rank>_<data parallel rank>``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import ne
from typing import Final

from cachescope.analysis.process_values import Kind
from cachescope.analysis.vllm.changes import Beside, Codes, changes_of, coded
from cachescope.analysis.vllm.factors import CONFIGURATION, HASHES, Named, name_kinds, process_kinds
from cachescope.frames.vllm import FactorsRow
from cachescope.frames.vllm_folders import RankRow, VllmChange
from cachescope.grouping import by_key

_Ranks = frozenset[tuple[int, int]]
OF_A_RANK: Final[frozenset[Kind]] = frozenset({"rank", "port", "bundle index", "host"})
"""What each rank has of its own in a job where nothing is wrong."""
# Each is compared with all others.
_MOST_APART: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Side:
    folder: Named
    ranks: _Ranks


def ranks_apart(factors: Sequence[FactorsRow], named: Sequence[Named]) -> Iterator[RankRow]:
    """The factors in which the folders of ranks with one configuration differ."""
    ranks = _ranks(factors)
    of_configuration = by_key(
        (folder.values[CONFIGURATION], _Side(folder, ranks[folder.name]))
        for folder in named
        if folder.name in ranks
    )
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
    every = frozenset[tuple[int, int]]().union(*(side.ranks for side in sides))
    apart = [number for number, side in enumerate(sides) if side.ranks != every][:_MOST_APART]
    if not apart:
        return
    varying, codes = coded([side.folder for side in sides])
    nearest = {number: _nearest(number, codes, sides) for number in apart}
    for number, at in nearest.items():
        one, other = sides[number], sides[at]
        if nearest.get(at) == number and min(one.ranks) < min(other.ranks):
            continue
        if min(every) in one.ranks and one.ranks & other.ranks:
            continue
        pairs = zip(varying, codes[number], codes[at], strict=True)
        yield one, other, tuple(name for name, mine, theirs in pairs if mine != theirs)


def _nearest(number: int, codes: Sequence[Codes], sides: Sequence[_Side]) -> int:
    """What differs in the fewest factors, then what has no rank of the folder, then the lowest rank, then the time."""
    mine, ranks, written = codes[number], sides[number].ranks, sides[number].folder.written or 0

    def nearness(at: int) -> tuple[bool, int, bool, tuple[int, int], int]:
        other = sides[at]
        return (
            not other.ranks - ranks,
            sum(map(ne, codes[at], mine)),
            bool(other.ranks & ranks),
            min(other.ranks),
            abs((other.folder.written or 0) - written),
        )

    return min(range(len(sides)), key=nearness)


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
