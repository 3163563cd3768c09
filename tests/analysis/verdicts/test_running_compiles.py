"""Which compiles of other processes had not ended at a lookup: rows in, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cachescope.analysis.history.history import History
from cachescope.analysis.history.places_by_group import NONE
from cachescope.analysis.history.rows import LookupRow
from cachescope.analysis.verdicts.running_compiles import RunningCompiles
from cachescope.details import HashDetails
from tests.analysis.verdicts.test_graph_alignment import rows

(TEMPLATE,) = rows(HashDetails(), ["def forward(): return ()"], 0)


def row(run: int, time: int | None, taken: int = 10, outcome: str = "full_miss") -> LookupRow:
    return replace(TEMPLATE, run=run, time=time, time_taken_ns=taken, outcome=outcome)


# Compiles that end at 10, 5, and an unknown time, a hit, and what run 1 looks up at 9, 10 and an unknown time.
LONG, SHORT, UNTIMED, HIT, BEFORE, AT_ITS_END, WITHOUT = range(7)
ROWS = [row(0, 0), row(0, 1, 4), row(0, None), row(0, 3, 90, "hit"), row(1, 9), row(1, 10), row(1, None)]
CASES = [
    (LONG, BEFORE, True),
    (LONG, AT_ITS_END, False),
    (SHORT, BEFORE, False),
    # Without a time nothing was running.
    (UNTIMED, BEFORE, False),
    (LONG, WITHOUT, False),
    # A hit compiles nothing, and nobody waits for a compile of the own process.
    (HIT, BEFORE, False),
    (BEFORE, AT_ITS_END, False),
    (LONG, SHORT, False),
    (AT_ITS_END, SHORT, True),
    (NONE, BEFORE, False),
]


@pytest.fixture(scope="module")
def running() -> RunningCompiles:
    return RunningCompiles(History.of_rows(ROWS))


@pytest.mark.parametrize(("one", "at", "wanted"), CASES)
def test_whether_another_process_was_still_compiling(
    one: int, at: int, wanted: bool, running: RunningCompiles
) -> None:
    assert running.was_running(one, at) is wanted


def test_of_many_at_once(running: RunningCompiles) -> None:
    compiles, at, wanted = (np.array(column) for column in zip(*CASES, strict=True))
    assert running.were_running(compiles, at).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("at", "finished"),
    [
        (BEFORE, [SHORT, UNTIMED, HIT]),
        (AT_ITS_END, [LONG, SHORT, UNTIMED, HIT]),
        (HIT, [LONG, SHORT, UNTIMED, HIT]),
    ],
)
def test_those_that_had_ended(at: int, finished: list[int], running: RunningCompiles) -> None:
    assert running.finished(np.arange(4), at).tolist() == finished
