"""Choices of max-autotune in two directories: their rows in, what differs out; made by hand."""

from __future__ import annotations

import pytest

from cachescope.analysis.directory.binaries import KernelBinaries
from cachescope.analysis.directory.built import built_alike
from cachescope.analysis.directory.generated_code import GeneratedCode
from cachescope.columns import rows_of
from cachescope.frames.directory_rows import EntryRow, TimingRow
from tests.made import entry, scope_of

Times = dict[str, float]


def choices(file: int, times: Times) -> list[TimingRow]:
    """The measured choices for one operator, of which the fastest is chosen."""
    fastest = min(times, key=times.__getitem__)
    return [
        TimingRow(file, "mm", "8x8", "highest", choice, time, False, choice == fastest, None, *["cpu"] * 4)
        for choice, time in times.items()
    ]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ({"aten": 1.0}, {"aten": 1.0}, ("same", "aten", "aten", "the measured times")),
        ({"aten": 1.0}, {"aten": 1.5}, ("times", "aten", "aten", "the measured times")),
        ({"aten": 1.0, "t": 2.0}, {"aten": 2.0, "t": 1.0}, ("choice", "aten", "t", "the measured times")),
        ({"aten": 1.0}, {"t": 1.0}, ("choice", "aten", "t", "the measured times of other choices")),
        ({"aten": 1.0}, {"aten": 1.0, "t": 2.0}, ("times", "aten", "aten", "the measured times of other choices")),
    ],
    ids=str,
)  # fmt: skip
def test_choices_for_one_operator(before: Times, after: Times, wanted: tuple[str, ...]) -> None:
    scope = scope_of(entries=[entry("autotune", "a" * 52, root=root) for root in ("/old", "/new")])
    entries = scope.entries
    old, new = rows_of(entries, EntryRow)
    (built,) = built_alike(
        [old],
        [new],
        choices(old.entry, before) + choices(new.entry, after),
        GeneratedCode(entries, lambda file: None),
        KernelBinaries(entries, scope.links, lambda path: None),
    )
    assert (built.result, built.before, built.after, built.evidence) == wanted
    assert (built.cache, built.name) == ("autotune", "mm")
    assert (built.entry_before, built.entry_after) == (old.entry, new.entry)
