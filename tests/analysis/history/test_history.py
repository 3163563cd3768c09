"""What was stored when: columns against the rows that they are made of, and one history for whoever asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import MISSING, Lookups
from cachescope.analysis.history.rows import LookupRow
from cachescope.details import HashDetails
from tests.analysis.verdicts.test_graph_alignment import rows
from tests.made import aot, fx, miss_rows, run, scope_of

(TEMPLATE,) = rows(HashDetails(), ["def forward(): return ()"], 0)
BARE = replace(
    TEMPLATE,
    **dict.fromkeys(("time", "end_time", "time_taken_ns", "cache_key", "compile_id", "aot_lookup")),
    **dict.fromkeys(("direction", "detail_set", "gm", "details", "compile_ended", "function")),
)
FULL = replace(
    TEMPLATE, lookup=1, time=3, end_time=4, aot_lookup=0, bypass_reason="b", save_bypass="s", compile_ended=False
)  # fmt: skip
SYMBOLIC = {"example_inputs[0]": "TensorMetadata(dtype=torch.float32, shape=torch.Size([s77, 8]))"}


@pytest.mark.parametrize("row", [BARE, FULL, replace(FULL, compile_ended=True)])
def test_a_row_comes_back_as_it_was_put_in(row: LookupRow) -> None:
    assert list(Lookups.of_rows([row, BARE])) == [row, BARE]
    assert Lookups.of_rows([BARE, row])[1] == row


def test_a_lookup_that_a_clock_set_back_made_stays_behind_those_of_its_run_before_it() -> None:
    scope = scope_of(
        run(fx("f1", at=100), fx("f2", at=50), fx("f3")),
        run(fx("f4", at=70), fx("f5"), fx("f6", at=60)),
        run(fx("f7")),
        run(fx("f8", at=120)),
    )
    runs = scope.lookups.set_index("cache_key")["run"]
    found = [row.cache_key for row in scope.history.lookups]
    # By its start the second run is the first; the one without times keeps the place of its number.
    assert [key for key in found if runs[key] == runs["f1"]] == ["f1", "f2", "f3"]
    assert [key for key in found if runs[key] == runs["f4"]] == ["f4", "f5", "f6"]
    assert found.index("f6") < found.index("f1") < found.index("f8")


@pytest.mark.parametrize(
    ("told", "end"),
    [
        ({"time": None, "end_time": 9, "time_taken_ns": 2}, MISSING),
        ({"time": 5, "end_time": 9, "time_taken_ns": 2}, 7),
        ({"time": 5, "end_time": 9, "time_taken_ns": None}, 9),
        # The record was written at once, which says nothing of the end.
        ({"time": 5, "end_time": 5, "time_taken_ns": None}, 5 + 2_000_000_000),
        ({"time": 5, "end_time": None, "time_taken_ns": None}, 5 + 2_000_000_000),
    ],
)
def test_when_a_compile_ended(told: dict[str, Any], end: int) -> None:
    assert History.of_rows([replace(TEMPLATE, **told)]).end.tolist() == [end]


@pytest.mark.parametrize(
    ("graphs", "end"),
    [
        ([{"time": 6, "time_taken_ns": 10}], 16),
        ([{"time": 6, "time_taken_ns": 10}, {"time": 17, "time_taken_ns": 5}], 22),
        ([{"time": None, "time_taken_ns": 10}], 9),
    ],
)
def test_the_compile_of_autograd_ends_with_the_last_of_its_graphs(
    graphs: list[dict[str, Any]], end: int
) -> None:
    aot = replace(TEMPLATE, cache="aotautograd", time=5, end_time=9, time_taken_ns=None)
    inner = [
        replace(TEMPLATE, lookup=n, aot_lookup=0, end_time=None, **told) for n, told in enumerate(graphs, 1)
    ]
    assert History.of_rows([aot, *inner]).end[0] == end


def test_a_process_that_was_killed_stored_nothing_for_whoever_asks() -> None:
    """Its text log does not name the entry of its key, so that no guards of one can have failed in the process after it."""
    open_miss = {"details": SYMBOLIC, "status_detailed": None}
    written = fx("f11", at=1, took=1.0, entry_path="/cache/fxgraph/11/f11/entry", **open_miss)
    scope = scope_of(
        run(aot("a11", at=0, **open_miss), written, cache_dir="/cache", exit_status=137),
        run(aot("a11", at=100, **open_miss), cache_dir="/cache", exit_status=0),
    )
    assert scope.lookups["outcome"].tolist() == ["full_miss"] * 3
    assert scope.history.stored[:2].tolist() == [False, True]
    assert [row["kind"] for row in miss_rows(scope)][-1] == "process ended"
    assert 0 in scope.history.timeline.not_stored
