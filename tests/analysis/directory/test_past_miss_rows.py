"""Why one graph has several entries: entries of a directory in, misses out; made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from cachescope.analysis.directory.equal_code import (
    OTHER_SOURCE,
    SOURCE,
    SOURCE_BUT_FOR_THE_PROCESS,
    GeneratedCode,
    KernelBinaries,
)
from cachescope.analysis.directory.past_misses import past_misses
from cachescope.frames.linked_rows import PastMiss
from tests.made import NOON_NS, SECOND_NS, Details, Stored, entry, scope_of

G: Details = {"gm": "g", "x": "1", "y": "1", "z": "1"}


def fx(letter: str, at: float | None = 0, details: Details | None = G, **told: Any) -> Stored:
    return entry("fxgraph", f"f{letter}", details, **{"at": at, "name": letter, **told})


def missed(*entries: Stored, sources: dict[int, str] | None = None) -> list[PastMiss]:
    scope = scope_of(entries=entries)
    code = GeneratedCode(scope.tables.entries.rows, lambda row: (sources or {}).get(row.entry))
    binaries = KernelBinaries(scope.tables.entries.rows, scope.linked.rows, lambda path: None)
    return past_misses(scope.history.entries, scope.history.keys, scope.tables.hash_details, code, binaries)


def table(*entries: Stored) -> list[tuple[Any, ...]]:
    return [(miss.entry, miss.verdict, miss.baseline_entry, miss.changed) for miss in missed(*entries)]


X2, XY, XYZ = {**G, "x": "2"}, {**G, "x": "2", "y": "2"}, {**G, "x": "2", "y": "2", "z": "2"}
BACKWARD = {**G, "fx_kwargs[is_backward]": "True"}

CASES: dict[str, tuple[list[Stored], list[tuple[Any, ...]]]] = {
    "one": ([fx("a")], []),
    "a field changed": ([fx("a", 1), fx("b", 2, X2)], [(1, "key_changed", 0, ("x",))]),
    "by the time they were made": ([fx("a", 2), fx("b", 1, X2)], [(0, "key_changed", 1, ("x",))]),
    "no field changed": ([fx("a", 1), fx("b", 2)], [(1, "no_detail_differs", 0, ())]),
    "other graphs": ([fx("a", 1), fx("b", 2, {**G, "gm": "h"})], []),
    "forward and backward": ([fx("a", 1), fx("b", 2, BACKWARD)], []),
    "damaged": ([fx("a", 1), fx("b", 2, X2, status="damaged")], []),
    "no details": ([fx("a", 1), fx("b", 2, None)], []),
    "AOTAutograd": ([entry("aotautograd", "aa", G, at=1), entry("aotautograd", "ab", X2, at=2)], []),
    # Of several the nearest, and of those the latest.
    "the nearest": ([fx("a", 1), fx("b", 2, XYZ), fx("c", 3, X2)], [(1, "key_changed", 0, ("x", "y", "z")), (2, "key_changed", 0, ("x",))]),
    "the latest": ([fx("a", 1), fx("b", 2, XY), fx("c", 3, X2)], [(1, "key_changed", 0, ("x", "y")), (2, "key_changed", 1, ("y",))]),
    # Of one key.
    "other guards": ([fx("a", 1), fx("a", 2, name="b", guards_expr="s")], [(1, "guard_failed", 0, ())]),
    "equal guards": ([fx("a", 1), fx("a", 2, name="b")], [(1, "entry_unavailable", 0, ())]),
    "guards seen before": (
        [fx("a", 1, guards_expr="s"), fx("a", 2, name="b", guards_expr="t"), fx("a", 3, name="c", guards_expr="s")],
        [(1, "guard_failed", 0, ()), (2, "entry_unavailable", 1, ())],
    ),
    "a key again after another": (
        [fx("a", 1), fx("b", 2, X2), fx("b", 3, X2, name="c", guards_expr="s"), fx("a", 4, name="d")],
        [(1, "key_changed", 0, ("x",)), (2, "guard_failed", 1, ()), (3, "entry_unavailable", 0, ())],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_why_there_is_another_entry(name: str) -> None:
    entries, wanted = CASES[name]
    assert table(*entries) == wanted


def test_what_is_known_of_a_miss() -> None:
    second = fx("b", 2, {**X2, "fx_kwargs[is_backward]": "True"}, time_taken_ns=7 * SECOND_NS)
    (row,) = missed(fx("a", 1, BACKWARD), second)
    assert (row.cache_key, row.graph, row.direction) == ("fb", 0, "backward")
    assert (row.time_taken_ns, row.made_time) == (7 * SECOND_NS, NOON_NS + 2 * SECOND_NS)
    numbers = missed(fx("a", 1), fx("b", 2, BACKWARD), fx("c", 3, X2), fx("d", 4, {**BACKWARD, "x": "3"}))
    assert [miss.graph for miss in numbers] == [0, 1]


@pytest.mark.parametrize(
    ("times", "roots", "is_known"),
    [
        ((1, 2), ("/c", "/c"), True),
        ((1, 1), ("/c", "/c"), False),
        ((1.25, 1.5), ("/c", "/c"), True),
        ((None, 1), ("/c", "/c"), False),
        # One directory keeps whole seconds, another maybe two of them: the coarser one decides.
        ((1, 3), ("/c", "/d"), True),
        ((1, 2), ("/c", "/d"), False),
        ((2, 3), ("/c", "/d"), False),
        ((1, 1), ("/c", "/d"), False),
    ],
)
def test_whether_the_order_is_known(
    times: tuple[float | None, float], roots: tuple[str, str], is_known: bool
) -> None:
    first, second = (
        fx(letter, at, details, root=root)
        for letter, at, details, root in zip("ab", times, (G, X2), roots, strict=True)
    )
    (miss,) = missed(first, second)
    assert miss.is_order_known is is_known


@pytest.mark.parametrize(
    ("keys", "sources", "same_code", "known_by"),
    [
        (("c1", "c1"), {}, True, SOURCE),
        (("c1", "c2"), {0: "x\n# 1\n", 1: "x\n# 2\n"}, True, SOURCE_BUT_FOR_THE_PROCESS),
        (("c1", "c2"), {0: "x", 1: "y"}, False, OTHER_SOURCE),
        (("c1", "c2"), {0: "x"}, None, "the generated source of one is not stored, or could not be read"),
        (("c1", None), {0: "x", 1: "x"}, None, "the generated source of one is not stored"),
    ],
)
def test_whether_the_code_is_the_same(
    keys: tuple[str | None, ...], sources: dict[int, str], same_code: bool | None, known_by: str
) -> None:
    entries = [
        fx(letter, at, details, code_key=key)
        for letter, at, details, key in zip("ab", (1, 2), (G, X2), keys, strict=True)
    ]
    (row,) = missed(*entries, sources=sources)
    assert row.same_code is same_code
    assert row.same_code_known_by.startswith(known_by)
    assert row.same_binaries is None
