"""How far times of modification are trusted: real directories whose times are changed as the world changes them."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.history.entry_times import LONG_AGO, NEVER, EntryTimes
from cachescope.analysis.history.history import is_miss
from cachescope.frames.directory_rows import EntryRow
from tests.analysis.preflight.test_predicting import remotely, stored_remotely
from tests.made import NOON_NS, Details, Made, aot, entry, fx, run, scope_of

Recording = Callable[[str, str], Path]
Stored = tuple[EntryRow, Details | None]
SECOND = 10**9
HOUR = 3600 * SECOND


REMOTE, LOCAL = stored_remotely("f11"), entry("fxgraph", "f11", at=5)


@pytest.mark.parametrize(("lookups", "remote"), [
    ([remotely("f11"), remotely("f22")], (LONG_AGO, LONG_AGO)),
    # The order in which it asks is no matter, nor what it asks another cache.
    ([remotely("f11", remote=False), remotely("f22")], (LONG_AGO, NEVER)),
    ([remotely("f11"), remotely("f22", remote=False)], (LONG_AGO, NEVER)),
    ([aot("a11", preflight_note="{}"), remotely("f22")], (LONG_AGO, LONG_AGO)),
    ([], (LONG_AGO, NEVER)),
])  # fmt: skip
@pytest.mark.parametrize("others", [(), (LOCAL,)], ids=["alone", "beside a directory"])
def test_a_program_that_asks_a_remote_cache_finds_what_was_read_in_it(
    lookups: list[Made], remote: tuple[int, int], others: tuple[Stored, ...]
) -> None:
    """All of them are lookups of a pre-flight: of lookups that were made, nothing shows what lay there then."""
    made = [scope_of(run(*lookups, is_preflight=True), entries=[*others, REMOTE])]
    real = run(fx("f33", at=9))
    made.append(scope_of(run(*lookups, is_preflight=True), real, entries=[*others, REMOTE]))
    for scope, wanted in zip(made, (remote, (LONG_AGO, NEVER)), strict=True):
        *local, far = (EntryTimes(scope.history).interval(one) for one in scope.history.entries)
        assert far == wanted
        assert all(begin == NOON_NS + 5 * SECOND < end for begin, end in local)


def with_times(recorded: Path, folder: Path, change: Callable[[int], int]) -> Path:
    shutil.copytree(recorded, folder, dirs_exist_ok=True)
    for path in (folder / "cache").rglob("*"):
        if path.is_file():
            time = change(path.stat().st_mtime_ns)
            os.utime(path, ns=(time, time))
    return folder


def intervals_and_misses(folder: Path) -> list[tuple[tuple[int, int], int, int]]:
    """Of each entry with one recorded miss: when it may have been stored, and when its miss was and its compile ended."""
    history = cachescope.read(folder / "trace", folder / "text", folder / "cache").history
    times = EntryTimes(history)
    found = []
    for one in history.entries:
        missed = [
            at
            for at, row in enumerate(history.lookups)
            if row.cache_key == one.cache_key and is_miss(row) and row.time is not None
        ]
        if len(missed) == 1:
            time, end = history.lookups[missed[0]].time, history.timeline.end[missed[0]]
            found.append((times.interval(one), int(time), int(end)))
    assert found
    return found


@pytest.mark.parametrize("change", [
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
], ids=["as torch wrote them", "whole seconds", "two seconds", "8 h late", "8 h early", "3 min early"])  # fmt: skip
def test_an_entry_is_never_taken_to_be_older_than_the_miss_that_wrote_it(
    change: Callable[[int], int], recording: Recording, tmp_path: Path
) -> None:
    folder = with_times(recording("2.13.0", "config_flip"), tmp_path, change)
    for (begin, end), miss, ended in intervals_and_misses(folder):
        assert end > miss
        assert begin <= ended + 5 * SECOND
