"""How far times of modification are trusted: entries and the misses that wrote them in, intervals out; made by hand."""

from dataclasses import replace

import pytest

from cachescope.analysis.history.entry_times import LONG_AGO, NEVER, EntryTimes, resolution_ns
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import TEMPLATE, entry_row, history_of

S = 10**9
HOUR = 3600 * S


def entry(key: str, modified: int | None, root: str = "/cache") -> EntryRow:
    return entry_row(0, "fxgraph", key, root, "p", modified)


def miss(key: str, at: int | None, took: int | None = S, **told: object) -> LookupRow:
    made = {"cache_key": key, "time": at, "time_taken_ns": took, "compile_id": key, **told}
    return replace(TEMPLATE, **made)  # type: ignore[arg-type]


@pytest.mark.parametrize(("times", "resolution"), [
    ([], 2 * S), ([4 * S], 2 * S), ([4 * S, 2 * S], 2 * S), ([4 * S, 3 * S], S), ([3 * S], S),
    ([4 * S, 3 * S + 1], 1), ([4 * S + 1], 1), ([4 * S, None], 2 * S),
    # One time for all tells nothing, but that of one entry does.
    ([4 * S, 4 * S], None), ([4 * S, 4 * S, None], None), ([4 * S, 4 * S, 6 * S], 2 * S),
])  # fmt: skip
def test_how_exact_the_times_of_a_directory_are(times: list[int | None], resolution: int | None) -> None:
    assert resolution_ns([entry("f1", time) for time in times]) == resolution


# A moment that is no whole second: times are then exact to 1 ns.
T = 1_000 * S + 7
ANY = LONG_AGO, NEVER


@pytest.mark.parametrize(("modified", "told", "wanted"), [
    # As it was written at the end of the compile, at most one step of the clock before the miss, 5 s late at most.
    (T + S, {}, (T + S, T + S + 1)),
    (T - 1, {}, (T - 1, T)),
    (T - 2, {}, ANY),
    (T + 6 * S, {}, (T + 6 * S, T + 6 * S + 1)),
    (T + 6 * S + 1, {}, ANY),
    (None, {}, ANY),
    # Of a compile that is not known to have ended, only the miss counts.
    (T + 60 * S, {"compile_ended": False}, (T + 60 * S, T + 60 * S + 1)),
    (T - 2, {"compile_ended": False}, ANY),
    # What did not write it says nothing.
    (T - HOUR, {"outcome": "hit"}, (T - HOUR, T - HOUR + 1)),
    (T - HOUR, {"time": None}, (T - HOUR, T - HOUR + 1)),
    (T - HOUR, {"cache": "aotautograd"}, (T - HOUR, T - HOUR + 1)),
    (T - HOUR, {"cache_key": "f9"}, (T - HOUR, T - HOUR + 1)),
])  # fmt: skip
def test_when_it_was_stored(modified: int | None, told: dict[str, object], wanted: tuple[int, int]) -> None:
    made = entry("f1", modified)
    history = history_of([replace(miss("f1", T), **told)], entries=[made])  # type: ignore[arg-type]
    assert EntryTimes(history).interval(made) == wanted


def shifts(*before_end: int) -> list[int | None]:
    """By how much the time of each entry is shifted, given how long before the end of its compile it seems to be written."""
    entries, lookups = [], []
    for number, shift in enumerate(before_end):
        began = 1_000 * S * (number + 1) + 7
        lookups.append(miss(f"f{number}", began, 0))
        entries.append(entry(f"f{number}", began - shift))
    times = EntryTimes(history_of(lookups, entries=entries))
    found = [times.interval(one) for one in entries]
    return [
        None if interval == ANY else interval[0] - (one.modified_time or 0)
        for interval, one in zip(found, entries, strict=True)
    ]


@pytest.mark.parametrize(("before_end", "shift"), [
    ((0, 0), 0), ((HOUR,), None), ((HOUR, HOUR), HOUR), ((-HOUR, -HOUR), -HOUR),
    # 3 s apart, and as much as the clock may be off.
    ((HOUR, HOUR + 3 * S + 1), HOUR), ((HOUR + 3 * S + 1, HOUR), HOUR), ((HOUR, HOUR + 3 * S + 2), None),
    ((HOUR, HOUR + 2 * S, HOUR + S), HOUR + S), ((HOUR, 0), None),
    # One of them off by more than a step of the clock.
    ((0, 1), 0), ((0, 2), 0), ((1, 2), 1), ((0, -5 * S), 0), ((0, -5 * S - 1), None),
    ((-3 * S, -6 * S), -6 * S),
])  # fmt: skip
def test_by_how_much_a_clock_is_off(before_end: tuple[int, ...], shift: int | None) -> None:
    assert shifts(*before_end) == [shift] * len(before_end)


def test_a_key_that_several_missed_was_written_by_none_that_is_known() -> None:
    entries = [entry("f1", T - HOUR), entry("f2", 2 * T)]
    lookups = [miss("f1", T), miss("f1", T + S), miss("f2", 2 * T)]
    assert EntryTimes(history_of(lookups, entries=entries)).interval(entries[0]) == (T - HOUR, T - HOUR + 1)
    assert EntryTimes(history_of(lookups[1:], entries=entries)).interval(entries[0]) == ANY


def test_each_directory_has_a_clock_of_its_own() -> None:
    entries = [entry("f1", T - HOUR, "/late"), entry("f2", 2 * T, "/right"), entry("f3", 4 * S, "/whole")]
    times = EntryTimes(history_of([miss("f1", T), miss("f2", 2 * T)], entries=entries))
    assert [times.interval(one) for one in entries] == [ANY, (2 * T, 2 * T + 1), (4 * S, 6 * S)]


def test_whole_seconds_may_lie_before_their_miss() -> None:
    made = entry("f1", 7 * S)
    for began, wanted in ((8 * S, (7 * S, 8 * S)), (8 * S + 1, ANY)):
        assert EntryTimes(history_of([miss("f1", began)], entries=[made])).interval(made) == wanted
