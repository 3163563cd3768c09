"""What was stored when: one history for whoever asks."""

from dataclasses import replace
from typing import Any

import pytest

from cachescope.analysis.history.history import program_of
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import TEMPLATE, entry_row, history_of, run_row
from tests.made import aot, fx, miss_rows, run, scope_of

SYMBOLIC = {"example_inputs[0]": "TensorMetadata(dtype=torch.float32, shape=torch.Size([s77, 8]))"}


@pytest.mark.parametrize(("told", "end"), [
    ({"time": None, "end_time": 9, "time_taken_ns": 2}, None),
    ({"time": 5, "end_time": 9, "time_taken_ns": 2}, 7),
    ({"time": 5, "end_time": 9, "time_taken_ns": None}, 9),
    # The record was written at once, which says nothing of the end.
    ({"time": 5, "end_time": 5, "time_taken_ns": None}, 5 + 2_000_000_000),
    ({"time": 5, "end_time": None, "time_taken_ns": None}, 5 + 2_000_000_000),
])  # fmt: skip
def test_when_a_compile_ended(told: dict[str, Any], end: int | None) -> None:
    assert history_of([replace(TEMPLATE, **told)]).timeline.end == [end]


@pytest.mark.parametrize(
    ("last_record", "end"), [(7, 7), (3_000_000_000, 5 + 2_000_000_000), (None, 5 + 2_000_000_000)]
)
def test_a_failed_compile_ended_with_the_records_of_its_process(last_record: int | None, end: int) -> None:
    """A process that fails and is started again at once has raced with nothing."""
    failed = replace(TEMPLATE, time=5, end_time=5, time_taken_ns=None, compile_error="no")
    assert history_of([failed], runs=[run_row(0, end_time=last_record)]).timeline.end == [end]


@pytest.mark.parametrize(("graphs", "end"), [
    ([{"time": 6, "time_taken_ns": 10}], 16),
    ([{"time": 6, "time_taken_ns": 10}, {"time": 17, "time_taken_ns": 5}], 22),
    ([{"time": None, "time_taken_ns": 10}], 9),
])  # fmt: skip
def test_a_compile_of_autograd_ends_with_its_last_graph(graphs: list[dict[str, Any]], end: int) -> None:
    aot = replace(TEMPLATE, cache="aotautograd", time=5, end_time=9, time_taken_ns=None)
    inner = []
    for number, told in enumerate(graphs, 1):
        inner.append(replace(TEMPLATE, lookup=number, aot_lookup=0, end_time=None, **told))
    assert history_of([aot, *inner]).timeline.end[0] == end


def test_a_process_that_was_killed_stored_nothing_for_whoever_asks() -> None:
    """Its text log does not name the entry of its key, so that no guards of one can have failed in the process after it."""
    open_miss = {"details": SYMBOLIC, "status_detailed": None}
    written = fx("f11", at=1, took=1.0, entry_path="/cache/fxgraph/11/f11/entry", **open_miss)
    scope = scope_of(
        run(aot("a11", at=0, **open_miss), written, cache_dir="/cache", exit_status=137),
        run(aot("a11", at=100, **open_miss), cache_dir="/cache", exit_status=0),
    )
    assert scope.lookups["outcome"].tolist() == ["full_miss"] * 3
    assert [scope.history.has_stored(at) for at in (0, 1)] == [False, True]
    assert [row["kind"] for row in miss_rows(scope)][-1] == "process ended"
    assert 0 in scope.history.timeline.not_stored


def order_of(*told: tuple[int, float | None]) -> list[int]:
    """The order of lookups of some runs, each with its time; by their numbers."""
    made = [(fx(f"f{at}", at=time), one) for at, (one, time) in enumerate(told)]
    runs = [run(*(row for row, one in made if one == number)) for number in range(3)]
    return [int((row.cache_key or "")[1:]) for row in scope_of(*runs).history.lookups]


@pytest.mark.parametrize(("told", "wanted"), [
    ([(0, 1), (1, 2), (0, 3)], [0, 1, 2]),
    ([(0, 5), (1, 2), (0, 6)], [1, 0, 2]),
    # A clock that was set back, or that is not there, leaves the order of its run.
    ([(0, 5), (0, 2), (1, 4)], [2, 0, 1]),
    ([(0, 5), (0, None), (1, 6)], [0, 1, 2]),
    ([(0, 5), (1, 6), (0, None), (0, 7)], [0, 2, 1, 3]),
])  # fmt: skip
def test_lookups_are_in_time_order(told: list[tuple[int, float | None]], wanted: list[int]) -> None:
    assert order_of(*told) == wanted


def lookups(*told: dict[str, Any]) -> list[LookupRow]:
    return [replace(TEMPLATE, **{"lookup": at, **one}) for at, one in enumerate(told)]


def test_the_latest_lookup_of_a_key() -> None:
    keys = ("k", "l", "k", None, "k", None, "l")
    found = history_of(lookups(*({"cache_key": key} for key in keys)))
    assert [found.latest_of_key(at) for at in range(7)] == [None, None, 0, None, 2, None, 1]
    found = history_of(lookups({"cache_key": "k"}, {"cache_key": "k", "cache": "aotautograd"}))
    assert [found.latest_of_key(at) for at in (0, 1)] == [None, None]


def test_the_guards_that_lookups_of_a_key_show() -> None:
    told = [
        ("k", "hit", "a"), ("k", "guard_miss", "b"), ("l", "hit", "c"), ("k", "full_miss", "d"), ("k", "hit", "a"),
        ("k", "hit", None), (None, "hit", "e"), ("k", "hit", "f"), ("k", "hit", None), (None, "hit", None),
    ]  # fmt: skip
    names = ("cache_key", "outcome", "guards_expr")
    found = history_of(lookups(*(dict(zip(names, one, strict=True)) for one in told)))
    assert [found.guards_before(at) for at in (0, 1, 2, 4, 7, 8)] == [
        [], ["a"], [], ["a", "b"], ["a", "b"], ["a", "b", "f"],
    ]  # fmt: skip
    assert found.guards_before(9) == []


def test_the_lookups_of_an_entry() -> None:
    entries = [entry_row(0, "fxgraph", "k"), entry_row(1, "aotautograd", "k"), entry_row(2, "fxgraph", "m")]
    of_k = {"cache_key": "k"}
    keys = [of_k, {"cache_key": "l"}, {**of_k, "cache": "aotautograd"}, of_k]
    found = history_of(lookups(*keys), entries=entries)
    assert [list(found.lookups_of(one)) for one in entries] == [[0, 3], [2], []]


def test_which_misses_stored_a_result() -> None:
    told: list[dict[str, Any]] = [
        {}, {"outcome": "hit"}, {"save_bypass": "no"}, {"outcome": "guard_miss"}, {"outcome": "bypass"},
    ]  # fmt: skip
    found = history_of(lookups(*told))
    assert [found.has_stored(at) for at in range(5)] == [True, False, False, True, False]
    assert list(found.timeline.not_stored) == [2]


@pytest.mark.parametrize(("command", "program"), [
    (None, None),
    ("", None),
    ("python train.py --lr 1", "train.py"),
    ("python -u -m train --lr 1", "train"),
    ("python -m", ""),
    ("torchrun --nproc 2 'my train.py' x.py", "my train.py"),
    ("pytest -q", "pytest"),
    ("it's not closed", None),
])  # fmt: skip
def test_the_program_of_a_run(command: str | None, program: str | None) -> None:
    assert program_of(run_row(0, command=command)) == program


def row(run: int, time: int | None, taken: int = 10, outcome: str = "full_miss") -> LookupRow:
    return replace(TEMPLATE, detail_set=None, run=run, time=time, time_taken_ns=taken, outcome=outcome)


# Compiles that end at 10, 5, and an unknown time, a hit, and what run 1 looks up at 9, 10 and an unknown time.
LONG, SHORT, UNTIMED, HIT, BEFORE, AT_ITS_END, WITHOUT = range(7)
LOOKUPS = [row(0, 0), row(0, 1, 4), row(0, None), row(0, 3, 90, "hit"), row(1, 9), row(1, 10), row(1, None)]
HISTORY = history_of([replace(one, lookup=at) for at, one in enumerate(LOOKUPS)])
CASES = [
    (LONG, BEFORE, True), (LONG, AT_ITS_END, False), (SHORT, BEFORE, False),
    # Without a time nothing was running.
    (UNTIMED, BEFORE, False), (LONG, WITHOUT, False),
    # A hit compiles nothing, and nobody waits for a compile of the own process.
    (HIT, BEFORE, False), (BEFORE, AT_ITS_END, False), (LONG, SHORT, False), (AT_ITS_END, SHORT, True),
]  # fmt: skip


@pytest.mark.parametrize(("one", "at", "wanted"), CASES)
def test_whether_another_process_was_still_compiling(one: int, at: int, wanted: bool) -> None:
    assert HISTORY.was_running(one, at) is wanted
