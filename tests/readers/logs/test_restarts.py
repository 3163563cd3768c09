"""Where one log goes on with another process under the same pid: lookups in, where processes begin out; made by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.logs.restarts import run_starts
from tests.made import component

HOUR_US = 3_600 * 10**6


def starts(*made: tuple[str, int, float | None, Mapping[str, str]]) -> list[int]:
    """Of lookups by compile id, segment, hours after some time, and hash details."""
    store = HashDetails()
    lookups, clocks = [], []
    for compile_id, segment, hours, fields in made:
        lookup = LookupRow(cache="aotautograd", cache_key="a1", compile_id=compile_id, segment=segment)
        if fields:
            lookup.detail_set, _ = store.add(component(name, text) for name, text in fields.items())
        lookups.append(lookup)
        clocks.append(None if hours is None else int(hours * HOUR_US))
    return run_starts(lookups, clocks, store)


ONE, TWO = {"torch_version": "b'one'"}, {"torch_version": "b'two'"}
NONE: dict[str, str] = {}


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ([("0/0", 1, 10, NONE)], [0]),
        ([("0/0", 1, 10, NONE), ("0/0", 2, 11, NONE)], [0]),
        # The clock goes back where compile ids begin again: another process.
        ([("0/0", 1, 10, NONE), ("1/0", 1, 12, NONE), ("0/0", 2, 9, NONE)], [0, 2]),
        ([("0/0", 1, 10, NONE), ("1/0", 1, 12, NONE), ("1/0", 2, 9, NONE)], [0]),
        ([("0/0", 1, 10, NONE), ("1/0", 1, None, NONE), ("0/0", 2, 9, NONE)], [0]),
        # By a little it may have been set, and by a year it went on.
        ([("0/0", 1, 10, NONE), ("1/0", 1, 12, NONE), ("0/0", 2, 11.9999999, NONE)], [0]),
        ([("0/0", 1, 10, NONE), ("1/0", 1, 24 * 360, NONE), ("0/0", 2, 1, NONE)], [0]),
        # Another torch is another process, which began where compile ids did.
        ([("0/0", 1, 10, ONE), ("1/0", 1, 11, ONE), ("0/0", 2, 12, TWO)], [0, 2]),
        ([("0/0", 1, 10, ONE), ("0/0", 2, 11, NONE), ("1/0", 1, 12, TWO)], [0, 1]),
        ([("0/0", 1, 10, ONE), ("0/0", 2, 11, ONE), ("0/0", 3, 12, TWO), ("0/0", 4, 13, TWO)], [0, 2]),
        ([("0/0", 1, 10, ONE), ("1/0", 1, 11, TWO)], [0]),
        ([("0/0", 1, 10, ONE), ("0/0", 2, 11, NONE), ("0/0", 3, 12, NONE), ("1/0", 1, 13, TWO)], [0, 2]),
        ([("0/0", 1, 10, ONE), ("0/0", 2, 12, TWO), ("0/0", 3, 14, ONE)], [0, 1, 2]),
        # Two lookups of one first compile are one beginning.
        ([("0/0", 1, 10, ONE), ("0/0", 2, 11, TWO), ("0/0", 2, 11, TWO)], [0, 1]),
        ([("0/0", 0, 10, NONE), ("0/0", 0, 9, NONE)], [0, 1]),
        ([("0/0", 1, 10, NONE), ("0/0", 1, 9, NONE)], [0]),
    ],
)
def test_where_processes_begin(
    made: list[tuple[str, int, float | None, Mapping[str, str]]], wanted: list[int]
) -> None:
    assert starts(*made) == wanted
