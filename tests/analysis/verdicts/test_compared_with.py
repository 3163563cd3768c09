"""What a changed key is compared with: lookups and entries in, the baseline of the last miss out; made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cachescope.errors import NotFoundError
from cachescope.frames.directory_rows import EntryRow
from tests.made import CODE, Details, Made, Run, entry, fx, miss_rows, run, scope_of

G: Details = {"gm": CODE, "x": "1", "y": "1", "example_inputs[0]": "Tensor(4)"}
HERE = {"cache_dir": "/cache"}
OTHER = {**G, "gm": "def forward(self, y):\n    return (torch.fft.fft(torch.angle(y)).diff().cumsum(0),)"}


def key(name: str, at: float, fields: Details | None = None, of: Details | None = G, **told: Any) -> Made:
    details = None if of is None else {**of, **(fields or {})}
    return fx(f"f{name}", details=details, at=at, **{"took": 1.0, "function": "f", "file": "a.py", **told})


def last(
    *runs: Run, entries: Sequence[tuple[EntryRow, Details | None]] = (), **told: Any
) -> tuple[str | None, tuple[str, ...]]:
    row = miss_rows(scope_of(*runs, entries=entries, **told))[-1]
    return row["baseline"], tuple(sorted(row["changed"]))


X2, X3, Y2 = {"x": "2"}, {"x": "3"}, {"y": "2"}
BOTH = {"x": "2", "y": "2"}

CASES: dict[str, tuple[tuple[Run, ...], str | None, tuple[str, ...]]] = {
    "the run before": (
        (run(key("1", 0)), run(key("2", 10, X2)), run(key("3", 20, X3))),
        "lookup 1",
        ("x",),
    ),
    "the latest of equals, hit or missed": (
        (run(key("1", 0)), run(key("1", 10, outcome="hit", took=None)), run(key("3", 20, X3))),
        "lookup 1",
        ("x",),
    ),
    "the nearest, if the run before differs in more": (
        (run(key("1", 0)), run(key("2", 10, BOTH)), run(key("3", 20, Y2))),
        "lookup 1",
        ("x",),
    ),
    "an earlier one that differs in less": (
        (run(key("1", 0)), run(key("2", 10, BOTH)), run(key("3", 20, {"x": "3"}))),
        "lookup 0",
        ("x",),
    ),
    "the same compile id before another one": (
        (
            run(key("1", 0, Y2, compile_id="0/0"), key("2", 5, {"example_inputs[0]": "Tensor(5)"}, compile_id="1/0")),
            run(key("3", 20, {"example_inputs[0]": "Tensor(6)"}, compile_id="1/0")),
        ),
        "lookup 1",
        ("example_inputs[0]",),
    ),
    "of the same rank": (
        (
            run(key("1", 0), rank=0),
            run(key("2", 1, X2), rank=1),
            run(key("3", 20, X3), rank=0),
        ),
        "lookup 0",
        ("x",),
    ),
    "another graph is none": ((run(key("1", 0, of=OTHER)), run(key("2", 10, compile_id="7/0", function="g"))), None, ()),
    "one without details is none": (
        (run(key("1", 0)), run(key("2", 10, of=None)), run(key("3", 20, X2))),
        "lookup 0",
        ("x",),
    ),
    "what is still being compiled is none": (
        (run(key("1", 0)), run(key("2", 10, X2, took=30.0)), run(key("3", 20, X3))),
        "lookup 0",
        ("x",),
    ),
    "what has just ended is one": (
        (run(key("1", 0)), run(key("2", 10, X2, took=10.0)), run(key("3", 20, X3))),
        "lookup 1",
        ("x",),
    ),
    "what the process itself compiled is one": (
        (run(key("1", 0, compile_id="0/0"), key("2", 1, X2, took=50.0, compile_id="0/1")),),
        "lookup 0",
        ("x",),
    ),
    "what ends at the very moment has ended": (
        (run(key("1", 0, took=20.0)), run(key("2", 10, BOTH)), run(key("3", 20, X3))),
        "lookup 0",
        ("x",),
    ),
    "what ends a moment later has not": (
        (run(key("1", 0, took=20.1)), run(key("2", 10, BOTH)), run(key("3", 20, X3))),
        "lookup 1",
        ("x", "y"),
    ),
    "without compile ids the latest of the graph": (
        (
            run(key("1", 0, compile_id=None), rank=0),
            run(key("2", 1, X2, compile_id=None), rank=1),
            run(key("3", 20, X3, compile_id=None), rank=0),
        ),
        "lookup 1",
        ("x",),
    ),
    "another call in the same run on other inputs is none": (
        (
            run(
                key("1", 0, compile_id="0/0"),
                key("2", 5, {"example_inputs[0]": "Tensor(5)"}, compile_id="1/0", function="g"),
            ),
        ),
        None,
        (),
    ),
    "another compile of the same call is one": (
        (run(key("1", 0, compile_id="0/0"), key("2", 5, {"example_inputs[0]": "Tensor(5)"}, compile_id="0/1")),),
        "lookup 0",
        ("example_inputs[0]",),
    ),
    "another call by another option is compared with": (
        (run(key("1", 0, compile_id="0/0"), key("2", 5, X2, compile_id="1/0")),),
        "lookup 0",
        ("x",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_baseline(case: str) -> None:
    runs, baseline, changed = CASES[case]
    assert last(*runs) == (baseline, changed)


def test_where_the_run_before_differs_in_more_that_is_said() -> None:
    runs = run(key("1", 0)), run(key("2", 10, {"x": "2", "y": "2"})), run(key("3", 20, X3))
    row = miss_rows(scope_of(*runs))[-1]
    assert row["reason"].endswith(" (compared with the run before it, 2 fields differ)")
    runs = run(key("1", 0)), run(key("2", 10, X2)), run(key("3", 20, X3))
    assert "compared with the run before" not in miss_rows(scope_of(*runs))[-1]["reason"]


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (5.0, ("entry 0", ("x",))),
        (15.0, (None, ())),
        (None, (None, ())),
    ],
)
def test_an_entry_that_was_there_before(
    made: float | None, wanted: tuple[str | None, tuple[str, ...]]
) -> None:
    """Only the log of the second run was kept. An entry made since the lookup is none."""
    entries = [entry("fxgraph", "f1", G, at=made)]
    assert last(run(key("2", 10, X2), **HERE), entries=entries) == wanted


def test_a_lookup_goes_before_an_entry_that_is_as_near() -> None:
    entries = [entry("fxgraph", "f0", {**G, "x": "9"}, at=5)]
    assert last(run(key("1", 0), **HERE), run(key("2", 10, X2), **HERE), entries=entries)[0] == "lookup 0"
    nearer = [entry("fxgraph", "f0", {**G, "x": "9", "y": "2"}, at=5)]
    runs = run(key("1", 0), **HERE), run(key("2", 10, BOTH, compile_id="3/0"), **HERE)
    assert last(*runs, entries=nearer) == ("entry 0", ("x",))


RUNS = (
    run(key("1", 0)),
    run(key("2", 10, BOTH)),
    run(key("3", 20, Y2, compile_id="5/0")),
    run(key("4", 30, X3)),
)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("auto", ("lookup 0", ("x",))),
        ("nearest", ("lookup 0", ("x",))),
        (0, ("lookup 0", ("x",))),
        (1, ("lookup 1", ("x", "y"))),
        (2, ("lookup 2", ("x", "y"))),
        ("f2", ("lookup 1", ("x", "y"))),
    ],
)
def test_the_baseline_that_is_asked_for(asked: str | int, wanted: tuple[str, tuple[str, ...]]) -> None:
    scope = scope_of(*RUNS).with_baseline(asked)
    row = miss_rows(scope)[-1]
    assert (row["baseline"], tuple(sorted(row["changed"]))) == wanted


def test_a_baseline_that_is_not_there_is_said_to_be_none() -> None:
    scope = scope_of(*RUNS)
    for asked in (9, -1, "fnothing"):
        with pytest.raises(NotFoundError):
            scope.with_baseline(asked)


def test_a_run_that_is_asked_for_is_no_baseline_of_itself() -> None:
    rows = miss_rows(scope_of(*RUNS).with_baseline(0))
    assert [row["baseline"] for row in rows] == [None, "lookup 0", "lookup 0", "lookup 0"]


def test_nearest_goes_by_the_fewest_fields_whatever_the_graph() -> None:
    other = {"gm": OTHER["gm"]}
    runs = run(key("1", 0, {**X3, **Y2})), run(key("2", 10, other, compile_id="8/0", function="g"))
    assert last(*runs, baseline="nearest") == ("lookup 0", ("gm", "x", "y"))
    assert last(*runs)[0] is None


def test_an_entry_by_its_key() -> None:
    entries = [entry("fxgraph", "f77", {**G, "x": "9", "y": "9"}, at=-50)]
    runs = run(key("1", 0), **HERE), run(key("2", 10, X2), **HERE)
    assert last(*runs, entries=entries, baseline="f77") == ("entry 0", ("x", "y"))


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        # The entry of the recorded miss was written within its compile, or up to five seconds behind it.
        (0.5, "entry 1"),
        (1.0, "entry 1"),
        (6.0, "entry 1"),
        # Later, the clock of the directory is another one, and one entry does not tell by how much.
        (6.5, "lookup 0"),
        # Earlier than its own miss as well.
        (-3.0, "lookup 0"),
    ],
)
def test_times_of_entries_are_believed_where_those_of_recorded_misses_agree(
    written: float, wanted: str
) -> None:
    both = {"x": "9", "y": "9"}
    entries = [
        entry("fxgraph", "f1", {**G, **both}, at=written),
        entry("fxgraph", "f9", {**G, "x": "9"}, at=3.25),
    ]
    runs = run(key("1", 0, both), **HERE), run(key("2", 10, compile_id="4/0"), **HERE)
    assert last(*runs, entries=entries)[0] == wanted


def test_a_clock_that_is_hours_ahead_is_set_right_by_two_recorded_misses() -> None:
    """Both entries of run 0 seem to be written eight hours later; so was a third one, of which no log tells."""
    hours = 8 * 3_600
    both = {"x": "9", "y": "9"}
    first = run(key("1", 0, both), key("5", 20, both, of=OTHER, compile_id="6/0"), **HERE)
    entries = [
        entry("fxgraph", "f1", {**G, **both}, at=1.25 + hours),
        entry("fxgraph", "f5", {**OTHER, **both}, at=21.25 + hours),
        entry("fxgraph", "f9", {**G, "x": "9"}, at=30.25 + hours),
    ]
    for at, wanted in ((100.0, "entry 2"), (25.0, "lookup 0")):
        runs = first, run(key("2", at, compile_id="4/0"), **HERE)
        assert last(*runs, entries=entries)[0] == wanted
