"""Whether two directories have the same code, kernels and autotuning choices under equal keys.

A key contains the request. It does not contain which choice was fastest that day, nor the effect of a custom pass that
changed and kept its uuid.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, TypeVar

from cachescope.analysis.directory.equal_code import GeneratedCode, KernelBinaries
from cachescope.frames.compared import Built
from cachescope.frames.directory_rows import EntryRow, TimingRow
from cachescope.grouping import by_key
from cachescope.readers.directory.triton_files import BY_DESCENT
from cachescope.terms import AUTOTUNE, BEST_CONFIG, FXGRAPH

SAME: Final = "same"
CODE: Final = "code"
KERNELS: Final = "kernels"
CHOICE: Final = "choice"
TIMES: Final = "times"
NOT_KNOWN: Final = "not_known"

COMPARED: Final = (FXGRAPH, BEST_CONFIG, AUTOTUNE)
"""The kinds of entries that are compared."""

_Thing = TypeVar("_Thing")


def built_alike(
    before: Iterable[EntryRow],
    after: Iterable[EntryRow],
    timings: Iterable[TimingRow],
    code: GeneratedCode,
    binaries: KernelBinaries,
) -> Iterator[Built]:
    """The FX graphs, Triton configurations and choices of max-autotune that each side has exactly once under one key."""
    old, new = (by_key((row.cache, row) for row in side if row.status == "ok") for side in (before, after))
    for a, b in _pairs(old[FXGRAPH], new[FXGRAPH], lambda row: (row.cache_key, row.guards_expr)):
        yield _graphs(a, b, code, binaries)
    for a, b in _pairs(old[BEST_CONFIG], new[BEST_CONFIG], lambda row: row.cache_key):
        yield _configurations(a, b)
    of_file = by_key((row.entry, row) for row in timings)
    measured, others = (_operators(of_file, side[AUTOTUNE]) for side in (old, new))
    for choices, other_choices in _pairs(measured, others, lambda some: _measured_what(some[0])):
        yield _choices(choices, other_choices)


def _pairs(
    before: Iterable[_Thing], after: Iterable[_Thing], key: Callable[[_Thing], Hashable]
) -> Iterator[tuple[_Thing, _Thing]]:
    """The entries that each side has exactly once under one key. Where a side has several, which one a process takes is not known."""
    old, new = (by_key((key(thing), thing) for thing in side) for side in (before, after))
    for shared, things in old.items():
        others = new[shared]
        if len(things) == len(others) == 1:
            yield things[0], others[0]


def _graphs(before: EntryRow, after: EntryRow, code: GeneratedCode, binaries: KernelBinaries) -> Built:
    names = before.code_key, after.code_key
    ids = before.entry, after.entry
    same = code.are_same(before, after)
    if same is None:
        result, known_by = NOT_KNOWN, "the code could not be read"
    elif not same:
        result, known_by = CODE, code.first_difference(before, after)
    else:
        found = binaries.compare(before, after)
        # Kernels that are missing on one side are compiled again from the same source.
        result, known_by = KERNELS if found.same is False else SAME, found.known_by
    return Built(FXGRAPH, before.cache_key, None, result, *names, known_by, *ids)


def _configurations(before: EntryRow, after: EntryRow) -> Built:
    result = SAME if _configuration(before) == _configuration(after) else CHOICE
    known_by = "the configurations in the files"
    sides = before.detail, after.detail, known_by, before.entry, after.entry
    return Built(BEST_CONFIG, before.cache_key, before.name, result, *sides)


def _configuration(row: EntryRow) -> list[str]:
    """What was chosen, however it was found and in whatever order it was written."""
    return sorted((row.detail or "").removesuffix(BY_DESCENT).split(", "))


def _operators(of_file: dict[int, list[TimingRow]], files: Iterable[EntryRow]) -> Iterator[list[TimingRow]]:
    """The choices that each file has for each operator."""
    for file in files:
        yield from by_key((_measured_what(row), row) for row in of_file[file.entry]).values()


def _measured_what(row: TimingRow) -> Hashable:
    """What was measured, and where."""
    where = row.device_name, row.triton_version, row.runtime, row.runtime_version
    return row.op, row.inputs, row.precision, where


def _choices(before: list[TimingRow], after: list[TimingRow]) -> Built:
    old, new = (next((row.choice for row in side if row.is_chosen), None) for side in (before, after))
    first, second = ({row.choice: row.time_ms for row in side} for side in (before, after))
    same = SAME if first == second else TIMES
    result = same if old == new else CHOICE
    evidence = (
        "the measured times" if first.keys() == second.keys() else "the measured times of other choices"
    )
    return Built(AUTOTUNE, None, before[0].op, result, old, new, evidence, before[0].entry, after[0].entry)
