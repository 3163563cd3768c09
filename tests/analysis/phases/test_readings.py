"""What hits could save, what stays, and what hits saved; rows made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from cachescope.analysis.phases.readings import Readings, compile_of, readings_of_runs
from cachescope.frames.phases import PhaseRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.rows import columns_of


def phase(self_time_ns: int, is_skipped: bool | None, segment: int = 1, **other: object) -> PhaseRow:
    values: dict[str, Any] = {
        "run": 0,
        "compile_id": "0/0",
        "phase": "p",
        "event": "e",
        "count": 1,
        "unended": 0,
    }
    times = {"time_ns": self_time_ns, "self_time_ns": self_time_ns}
    return PhaseRow(**values | times | {"segment": segment, "is_skipped_by_hit": is_skipped} | other)


def lookup(
    cache: str, outcome: str, saved: int | None = None, segment: int = 1, **other: object
) -> LookupRow:
    blank: dict[str, Any] = dict.fromkeys(column.name for column in columns_of(LookupRow))
    told = {
        "run": 0,
        "cache": cache,
        "outcome": outcome,
        "compile_id": "0/0",
        "segment": segment,
        "time_saved_ns": saved,
    }
    return LookupRow(**blank | told | other)


def readings(rows: list[PhaseRow], lookups: list[LookupRow]) -> Readings:
    return readings_of_runs(rows, lookups)[0]


ROWS = [phase(10, True), phase(3, False), phase(1, None)]


def test_a_miss_could_save_the_phases_that_a_hit_skips() -> None:
    missed = readings(ROWS, [lookup("aotautograd", "full_miss"), lookup("fxgraph", "full_miss")])
    assert (missed.total_ns, missed.could_save_ns, missed.stays_ns) == (14, 10, 4)
    assert (missed.saved_ns, missed.hits) == (0, 0)


def test_of_an_aotautograd_hit_everything_stays() -> None:
    hit = readings(ROWS, [lookup("aotautograd", "hit", 50), lookup("fxgraph", "hit", 40)])
    assert (hit.could_save_ns, hit.stays_ns) == (0, 14)
    assert (hit.saved_ns, hit.hits, hit.hits_without_time) == (40, 1, 0)


def test_an_aotautograd_hit_without_fx_lookups_saved_its_own_time() -> None:
    assert readings(ROWS, [lookup("aotautograd", "hit", 50)]).saved_ns == 50


def test_an_fx_hit_still_traces_for_aotautograd() -> None:
    assert readings(ROWS, [lookup("fxgraph", "hit", 40)]).could_save_ns == 10


def test_what_was_compiled_without_a_lookup_could_have_been_saved() -> None:
    assert readings(ROWS, []).could_save_ns == 10


def test_each_compile_under_one_compile_id_is_judged_by_its_own_lookup() -> None:
    rows = [phase(10, True), phase(20, True, segment=2)]
    made = [lookup("aotautograd", "hit"), lookup("aotautograd", "full_miss", segment=2)]
    assert readings(rows, made).could_save_ns == 20
    other_run = [lookup("aotautograd", "hit", run=1)]
    assert readings(rows, other_run).could_save_ns == 30


def test_a_time_that_is_not_recorded_is_not_zero() -> None:
    none = readings(ROWS, [lookup("fxgraph", "hit")])
    assert (none.saved_ns, none.hits, none.hits_without_time) == (None, 1, 1)
    some = readings(ROWS, [lookup("fxgraph", "hit"), lookup("fxgraph", "hit", 7)])
    assert (some.saved_ns, some.hits_without_time) == (7, 1)


def test_a_later_attempt_is_of_the_compile_that_its_events_name() -> None:
    """Events name no attempt: torch/_dynamo/utils.py prints the CompileId; envelopes have the attempt as well."""
    hit = readings(ROWS, [lookup("aotautograd", "hit", segment=0, compile_id="0/0_1")])
    assert hit.could_save_ns == 0


@pytest.mark.parametrize(
    ("compile_id", "segment", "wanted"),
    [
        (None, 2, (None, 2)),
        ("0/0", 2, ("0/0", 2)),
        ("0/0", 0, ("0/0", 0)),
        # Of an attempt, that of the first one.
        ("0/0_1", 0, ("0/0", 1)),
        ("0/0_2", 3, ("0/0", 3)),
    ],
)
def test_the_compile_of_a_lookup(
    compile_id: str | None, segment: int, wanted: tuple[str | None, int]
) -> None:
    assert compile_of(lookup("fxgraph", "hit", segment=segment, compile_id=compile_id)) == wanted


def test_hits_of_both_caches_and_of_other_compiles() -> None:
    made = [
        lookup("aotautograd", "hit", 50),
        lookup("fxgraph", "hit", 40),
        lookup("aotautograd", "hit", 5, compile_id="1/0"),
        lookup("aotautograd", "hit", compile_id="2/0"),
        lookup("fxgraph", "full_miss", compile_id="3/0"),
        lookup("aotautograd", "hit", 9, compile_id="3/0"),
    ]
    found = readings([*ROWS, phase(6, True, compile_id="9/9", unended=2), phase(0, None, unended=1)], made)
    assert (found.saved_ns, found.hits, found.hits_without_time) == (45, 3, 1)
    assert (found.total_ns, found.could_save_ns, found.stays_ns, found.unended) == (20, 6, 14, 3)


def test_runs_are_read_apart() -> None:
    rows = [phase(1, True), phase(2, True, run=4)]
    found = readings_of_runs(rows, [lookup("fxgraph", "hit", 3, run=4)])
    assert {run: (one.total_ns, one.saved_ns) for run, one in found.items()} == {0: (1, 0), 4: (2, 3)}
