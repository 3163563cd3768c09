"""How far times of modification are trusted: real directories whose times are changed as the world changes them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.history.entry_times import LONG_AGO, NEVER, EntryTimes

Recording = Callable[[str, str], Path]
SECOND = 10**9
HOUR = 3600 * SECOND


def with_times(recorded: Path, folder: Path, change: Callable[[int], int]) -> Path:
    shutil.copytree(recorded, folder, dirs_exist_ok=True)
    for path in (folder / "cache").rglob("*"):
        if path.is_file():
            time = change(path.stat().st_mtime_ns)
            os.utime(path, ns=(time, time))
    return folder


def intervals_and_misses(folder: Path) -> list[tuple[tuple[int, int], int, int]]:
    """Of each entry with one recorded miss: when it may have been stored, and when its miss was and its compile ended."""
    scope = cachescope.read(folder / "trace", folder / "text", folder / "cache")
    history = scope.history
    times = EntryTimes(history)
    found = []
    for entry in history.entries:
        missed = [
            at
            for at, row in enumerate(history.lookups)
            if row.cache_key == entry.cache_key and row.is_miss and row.time is not None
        ]
        if len(missed) == 1:
            time, end = history.lookups.time[missed[0]], history.end[missed[0]]
            found.append((times.interval(entry), int(time), int(end)))
    assert found
    return found


@pytest.mark.parametrize(
    "change",
    [
        lambda ns: ns,
        lambda ns: ns // SECOND * SECOND,
        *(
            pytest.param(change, marks=pytest.mark.slow)
            for change in (
                lambda ns: ns // (2 * SECOND) * 2 * SECOND,
                lambda ns: ns + 8 * HOUR,
                lambda ns: ns - 8 * HOUR,
                lambda ns: ns - 180 * SECOND,
            )
        ),
    ],
    ids=["as torch wrote them", "whole seconds", "two seconds", "8 h late", "8 h early", "3 min early"],
)
def test_an_entry_is_never_taken_to_be_older_than_the_miss_that_wrote_it(
    change: Callable[[int], int], recording: Recording, tmp_path: Path
) -> None:
    folder = with_times(recording("2.13.0", "config_flip"), tmp_path, change)
    for (begin, end), miss, ended in intervals_and_misses(folder):
        assert end > miss
        assert begin <= ended + 5 * SECOND


@pytest.mark.parametrize("time", [0, 1_700_000_000 * SECOND], ids=["zero", "SOURCE_DATE_EPOCH"])
def test_one_time_for_all_tells_nothing(time: int, recording: Recording, tmp_path: Path) -> None:
    folder = with_times(recording("2.13.0", "config_flip"), tmp_path, lambda _: time)
    assert {interval for interval, *_ in intervals_and_misses(folder)} == {(LONG_AGO, NEVER)}
    past = cachescope.read(folder / "cache").past_misses
    assert not past.empty
    assert not past["is_order_known"].any()


def test_the_order_of_entries_is_known_by_the_times_that_torch_left(recording: Recording) -> None:
    past = cachescope.read(recording("2.13.0", "config_flip") / "cache").past_misses
    assert not past.empty
    assert past["is_order_known"].all()
