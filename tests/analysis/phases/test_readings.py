"""What hits could save, what stays, and what hits saved; rows made by hand."""

from typing import Any

import pytest

from cachescope.analysis.phases.frame import Readings, compile_of, readings_of_runs
from cachescope.frames.compile_rows import PhaseRow
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import lookup_row


def phase(self_time_ns: int, is_skipped: bool | None, segment: int = 1, **other: object) -> PhaseRow:
    values: dict[str, Any] = {"run": 0, "compile_id": "0/0", "phase": "p", "event": "e", "count": 1, "unended": 0}  # fmt: skip
    times = {"time_ns": self_time_ns, "self_time_ns": self_time_ns}
    return PhaseRow(**values | times | {"segment": segment, "is_skipped_by_hit": is_skipped} | other)


def lookup(
    cache: str, outcome: str, saved: int | None = None, segment: int = 1, **other: object
) -> LookupRow:
    told = {"cache": cache, "outcome": outcome, "segment": segment, "time_saved_ns": saved}
    return lookup_row(**{"compile_id": "0/0"} | told | other)


def readings(rows: list[PhaseRow], lookups: list[LookupRow]) -> Readings:
    return readings_of_runs(rows, lookups)[0]


ROWS = [phase(10, True), phase(3, False), phase(1, None)]


@pytest.mark.parametrize(("lookups", "could_save", "saved", "hits", "without_time"), [
    # A miss could save the phases that a hit skips; of an AOTAutograd hit everything stays.
    ([lookup("aotautograd", "full_miss"), lookup("fxgraph", "full_miss")], 10, 0, 0, 0),
    ([lookup("aotautograd", "hit", 50), lookup("fxgraph", "hit", 40)], 0, 40, 1, 0),
    # Without FX lookups it saved its own time; an FX hit still traces for AOTAutograd.
    ([lookup("aotautograd", "hit", 50)], 0, 50, 1, 0),
    ([lookup("fxgraph", "hit", 40)], 10, 40, 1, 0),
    # What was compiled without a lookup could have been saved.
    ([], 10, 0, 0, 0),
    # A time that is not recorded is not zero.
    ([lookup("fxgraph", "hit")], 10, None, 1, 1),
    ([lookup("fxgraph", "hit"), lookup("fxgraph", "hit", 7)], 10, 7, 2, 1),
    # Events name no attempt: torch/_dynamo/utils.py prints the CompileId; envelopes have the attempt as well.
    ([lookup("aotautograd", "hit", segment=0, compile_id="0/0_1")], 0, None, 1, 1),
])  # fmt: skip
def test_what_hits_could_save_and_saved(
    lookups: list[LookupRow], could_save: int, saved: int | None, hits: int, without_time: int
) -> None:
    found = readings(ROWS, lookups)
    assert (found.total_ns, found.could_save_ns, found.stays_ns) == (14, could_save, 14 - could_save)
    assert (found.saved_ns, found.hits, found.hits_without_time) == (saved, hits, without_time)


def test_each_compile_under_one_compile_id_is_judged_by_its_own_lookup() -> None:
    rows = [phase(10, True), phase(20, True, segment=2)]
    made = [lookup("aotautograd", "hit"), lookup("aotautograd", "full_miss", segment=2)]
    assert readings(rows, made).could_save_ns == 20
    assert readings(rows, [lookup("aotautograd", "hit", run=1)]).could_save_ns == 30


@pytest.mark.parametrize(("compile_id", "segment", "wanted"), [
    (None, 2, (None, 2)), ("0/0", 2, ("0/0", 2)), ("0/0", 0, ("0/0", 0)),
    # Of an attempt, that of the first one.
    ("0/0_1", 0, ("0/0", 1)), ("0/0_2", 3, ("0/0", 3)),
])  # fmt: skip
def test_the_compile_of_one(compile_id: str | None, segment: int, wanted: tuple[str | None, int]) -> None:
    assert compile_of(lookup("fxgraph", "hit", segment=segment, compile_id=compile_id)) == wanted


def test_hits_of_both_caches_and_of_other_compiles() -> None:
    made = [
        lookup("aotautograd", "hit", 50), lookup("fxgraph", "hit", 40),
        lookup("aotautograd", "hit", 5, compile_id="1/0"), lookup("aotautograd", "hit", compile_id="2/0"),
        lookup("fxgraph", "full_miss", compile_id="3/0"), lookup("aotautograd", "hit", 9, compile_id="3/0"),
    ]  # fmt: skip
    found = readings([*ROWS, phase(6, True, compile_id="9/9", unended=2), phase(0, None, unended=1)], made)
    assert (found.saved_ns, found.hits, found.hits_without_time) == (45, 3, 1)
    assert (found.total_ns, found.could_save_ns, found.stays_ns, found.unended) == (20, 6, 14, 3)


def test_runs_are_read_apart() -> None:
    rows = [phase(1, True), phase(2, True, run=4)]
    found = readings_of_runs(rows, [lookup("fxgraph", "hit", 3, run=4)])
    assert {run: (one.total_ns, one.saved_ns) for run, one in found.items()} == {0: (1, 0), 4: (2, 3)}
