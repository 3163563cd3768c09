"""The folders of vLLM's ``torch_compile_cache``: what is in each, why it exists beside another, which factors make them many.

The hash of the configuration has the number of ranks in it (``ParallelConfig.compute_hash`` of vllm/config/parallel.py,
0.13.0 and 0.33.0), and not which rank it is: all engines of one configuration have the same ranks, and where all is equal
each folder has all of them, as ``rank_<rank>_<data parallel rank>``. So ranks of one configuration are put side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import ne
from typing import Final, NamedTuple

from cachescope.analysis.process_values import Kind
from cachescope.analysis.vllm.factors import (
    CONFIGURATION,
    HASHES,
    NAME_TEXTS,
    Beside,
    Codes,
    Named,
    between,
    changes_of,
    coded,
    name_kinds,
    name_of_variable,
    nearest,
    process_kinds,
)
from cachescope.catalogue.vllm_variables import no_longer_counted_by
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.vllm import FactorsRow, FolderRow, FragmentRow, RankRow, VllmChange
from cachescope.grouping import by_key
from cachescope.keys.vllm import place_in_tree
from cachescope.readers.directory.vllm_places import is_of_sglang
from cachescope.rows import like
from cachescope.terms import VLLM_AOT, VLLM_KINDS
from cachescope.wording import listed, plural

_MOST_CHANGES: Final = 4
_NO_FACTORS: Final = (
    "no cache_key_factors.json that could be read lies there: what the name was made of is not known"
)
# `InductorAdaptor.compute_hash` of srt/compilation/compiler_interface.py, and the ranks in `SGLangBackend.__call__` of
# srt/compilation/backend.py (0.5.23).
_OF_TORCH: Final = "SGLang makes its name of torch, the GPU and CUDA alone, and keeps nothing of these: all models and ranks share it"
_NO_NAME: Final = "torch_compile_cache"
_UNNAMED: Final = 'SGLang\'s compiler "eager" has no name for it, and stores nothing but the graph'
_AOT_FACTORS: Final = "vLLM keeps nothing from which it made this name"

_EXAMPLES: Final = 3
_JUDGED: Final = 50


def folders_of(
    factors: Iterable[FactorsRow], entries: Iterable[EntryRow], named: Sequence[Named]
) -> list[FolderRow]:
    """The folders, in the order in which they were written."""
    beside = {one.folder.name: one for one in nearest(named)}
    order = {folder.name: number for number, folder in enumerate(named)}
    return sorted(
        _rows(factors, entries, beside),
        key=lambda row: (
            (order.get(row.folder, len(order)), row.folder, row.rank or 0, row.dp_rank or 0, row.prefix or "")
        ),
    )


def _rows(
    factors: Iterable[FactorsRow], entries: Iterable[EntryRow], beside: dict[str, Beside]
) -> Iterator[FolderRow]:
    of_entry = {row.entry: row for row in factors}
    kinds = name_kinds(list(of_entry.values()))
    files = ((row.path.rpartition("/")[0], row) for row in entries if row.cache in VLLM_KINDS)
    for (path, place), inside in by_key(
        ((path, place_in_tree(row.path)), row) for path, row in files
    ).items():
        own = next((of_entry[row.entry] for row in inside if row.entry in of_entry), None)
        is_aot = own is None and any(row.cache == VLLM_AOT for row in inside)
        part = place if own is None else own
        one = None
        if own is not None:
            name_is: str = kinds[own.entry]
            text = reason = NAME_TEXTS[kinds[own.entry]]
            if name_is == "recomputed":
                one = beside.get(part.folder or "")
                reason = "nothing was there before to compare with" if one is None else reason_of(one)
        else:
            name_is, text = "not_known", _AOT_FACTORS if is_aot else _NO_FACTORS
            if any(is_of_sglang(row.path.rpartition("/")[2]) for row in inside):
                name_is, text = "of_torch", _UNNAMED if place.folder == _NO_NAME else _OF_TORCH
            reason = text
        yield FolderRow(
            folder=part.folder or "",
            path=path,
            rank=part.rank,
            dp_rank=part.dp_rank,
            prefix=None if is_aot else part.prefix,
            entry=None if own is None else own.entry,
            size_bytes=sum(row.size_bytes or 0 for row in inside),
            name_is=name_is,
            name_text=text,
            baseline=None if one is None else one.baseline.name,
            is_order_known=None if one is None else one.is_order_known,
            changed=() if one is None else one.changed,
            reason=reason,
        )


def reason_of(one: Beside) -> str:
    """In what a folder differs from the nearest before it, in a sentence."""
    changes = list(changes_of(one))
    of_one = [one for one in changes if one.factor not in HASHES and None in (one.before, one.after)]
    if len(of_one) <= _MOST_CHANGES:
        of_one = []
    texts = [change.text for change in changes if change not in of_one]
    if of_one:
        texts.insert(
            0, f"{len(of_one)} variables are counted for one of them alone: releases of vLLM differ in that"
        )
    others = len(one.folder.values.keys() | one.baseline.values.keys()) - len(changes)
    return f"{listed(texts, _MOST_CHANGES, '; ')}; the other {plural(others, 'factor')} equal"


def fragments(folders: Sequence[Named]) -> list[FragmentRow]:
    """The factors that make folders many: what leaves the fewest folders comes first."""
    return sorted(_fragments(folders), key=lambda row: (row.folders_without, row.factors))


def _fragments(folders: Sequence[Named]) -> Iterator[FragmentRow]:
    varying, codes = coded(folders)

    def row(group: list[int], kinds: tuple[str, ...]) -> FragmentRow:
        names = tuple(varying[number] for number in group)
        variables = map(name_of_variable, names)
        ignored = {None if name is None else no_longer_counted_by(name) for name in variables}
        left = {tuple(code for number, code in enumerate(row) if number not in group) for row in codes}
        values = [] if len(names) > 1 or names[0] in HASHES else _values(folders, names[0])
        return FragmentRow(
            factors=names,
            values=len({tuple(row[number] for number in group) for row in codes}),
            folders=len(folders),
            folders_without=len(left),
            differs_by=kinds,
            examples=tuple(value for value in values if value is not None)[:_EXAMPLES],
            ignored_by=ignored.pop() if len(ignored) == 1 else None,
        )

    # Those that change only together have equal codes.
    groups = by_key((column, number) for number, column in enumerate(zip(*codes, strict=True)))
    of_process: list[list[int]] = []
    kinds: dict[int, tuple[str, ...]] = {}
    for group in groups.values():
        of_factor = [_kinds(varying[number], _values(folders, varying[number])) for number in group]
        kinds[group[0]] = _together(of_factor) if all(of_factor) else ()
        if kinds[group[0]]:
            of_process.append(group)
        yield row(group, kinds[group[0]])
    if len(of_process) > 1:
        every = [number for group in of_process for number in group]
        yield row(every, _together(kinds[group[0]] for group in of_process))


def _values(folders: Sequence[Named], factor: str) -> list[str | None]:
    return list(dict.fromkeys(folder.values.get(factor) for folder in folders))


def _together(kinds: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind for each in kinds for kind in each))


def _kinds(name: str, values: Sequence[str | None]) -> tuple[str, ...]:
    """The kinds by which the first value differs from all others, as far as they are looked at; none if from one by something else."""
    if name in HASHES:
        return ()
    first = values[0]
    found: dict[str, None] = {}
    for value in islice(values, 1, _JUDGED):
        kinds = process_kinds(name, first, value)
        if kinds is None or not kinds.is_all:
            return ()
        found.update(dict.fromkeys(kinds.kinds))
    return tuple(found)


_Ranks = frozenset[tuple[int, int]]
OF_A_RANK: Final[frozenset[Kind]] = frozenset({"rank", "port", "bundle index", "host"})
"""What each rank has of its own in a job where nothing is wrong."""
# Each is compared with all others.
_MOST_APART: Final = 1_000


class _Side(NamedTuple):
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
        for one, other in _apart(sides):
            for change in changes_of(between(other.folder, one.folder)):
                yield _rank_row(one, other, change)


def _ranks(factors: Iterable[FactorsRow]) -> dict[str, _Ranks]:
    """The ranks that have factors of their own in each folder whose name follows from them."""
    rows = list(factors)
    kinds = name_kinds(rows)
    found = by_key(
        (row.folder, (row.rank, row.dp_rank))
        for row in rows
        if kinds[row.entry] == "recomputed"
        and row.folder
        and row.rank is not None
        and row.dp_rank is not None
    )
    return {folder: frozenset(ranks) for folder, ranks in found.items()}


def _apart(sides: Sequence[_Side]) -> Iterator[tuple[_Side, _Side]]:
    """Each folder that lacks a rank, and the nearest that has one of those that it lacks.

    Of two that are nearest to each other, that of the lower rank is the other. Where a folder has the first rank, and the
    nearest has it as well, it looks the same as a start whose other ranks stopped: it is left out.
    """
    every = frozenset[tuple[int, int]]().union(*(side.ranks for side in sides))
    apart = [number for number, side in enumerate(sides) if side.ranks != every][:_MOST_APART]
    _, codes = coded([side.folder for side in sides])
    nearest = {number: _nearest(number, codes, sides) for number in apart}
    for number, at in nearest.items():
        one, other = sides[number], sides[at]
        if nearest.get(at) == number and min(one.ranks) < min(other.ranks):
            continue
        if min(every) in one.ranks and one.ranks & other.ranks:
            continue
        yield one, other


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


def _rank_row(one: _Side, other: _Side, change: VllmChange) -> RankRow:
    ranks, baseline_ranks = _named(one.ranks), _named(other.ranks)
    kinds = process_kinds(change.factor, change.before, change.after)
    # Whether the values differ in nothing but what each rank has of its own.
    is_own = kinds is not None and kinds.is_all and OF_A_RANK.issuperset(kinds.kinds)
    return like(RankRow, change, ranks=ranks, baseline_ranks=baseline_ranks, is_of_a_rank=is_own)


def _named(ranks: _Ranks) -> tuple[str, ...]:
    """As their folders are named: ``rank_1_0``."""
    return tuple(f"rank_{rank}_{dp_rank}" for rank, dp_rank in sorted(ranks))
