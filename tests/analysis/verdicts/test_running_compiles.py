"""Which compiles of other processes had not ended at a lookup: rows in, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import TEMPLATE, history_of


def row(run: int, time: int | None, taken: int = 10, outcome: str = "full_miss") -> LookupRow:
    return replace(TEMPLATE, detail_set=None, run=run, time=time, time_taken_ns=taken, outcome=outcome)


# Compiles that end at 10, 5, and an unknown time, a hit, and what run 1 looks up at 9, 10 and an unknown time.
LONG, SHORT, UNTIMED, HIT, BEFORE, AT_ITS_END, WITHOUT = range(7)
LOOKUPS = [row(0, 0), row(0, 1, 4), row(0, None), row(0, 3, 90, "hit"), row(1, 9), row(1, 10), row(1, None)]
HISTORY = history_of([replace(one, lookup=at) for at, one in enumerate(LOOKUPS)])
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
]


@pytest.mark.parametrize(("one", "at", "wanted"), CASES)
def test_whether_another_process_was_still_compiling(one: int, at: int, wanted: bool) -> None:
    assert HISTORY.was_running(one, at) is wanted
