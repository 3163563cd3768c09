"""How far times of modification are trusted: real directories whose times are changed as the world changes them, and intervals made by hand; and which entries a lookup may be compared with."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.history.entry_times import (
    LONG_AGO,
    NEVER,
    EntryTimes,
    StoredCandidates,
    resolution_ns,
)
from cachescope.analysis.history.history import is_miss
from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from tests.analysis.plain_rows import TEMPLATE, entry_row, history_of, lookup_row
from tests.analysis.preflight.test_predicting import remotely, stored_remotely
from tests.made import NOON_NS, Details, Made, aot, entry, fx, run, scope_of, set_of

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


@pytest.mark.parametrize(("change", "verdict", "outcome"), [
    (lambda ns: ns, "key_changed", "hit"),
    (lambda ns: ns // SECOND * SECOND, "key_changed", "hit"),
    (lambda ns: ns + HOUR, "first_lookup", None),
    (lambda ns: 10**18, "first_lookup", None),
], ids=["as torch wrote them", "whole seconds", "1 h late", "one time"])  # fmt: skip
def test_a_what_if_knows_of_an_entry_what_a_verdict_knows(
    change: Callable[[int], int], verdict: str, outcome: str | None, recording: Recording, tmp_path: Path
) -> None:
    """Of the second process alone, which missed in what the first one had stored."""
    folder = with_times(recording("2.13.0", "config_flip"), tmp_path, change)
    scope = cachescope.read(folder / "text" / "01_epilogue_fusion_off.log", folder / "cache")
    assert scope.misses["verdict"].iloc[-1] == verdict
    after = scope.what_if(without="inductor_config[epilogue_fusion]").frame["outcome_after"].iloc[-1]
    assert (None if after != after else after) == outcome


STORE = HashDetails()
OF_BACKWARD = {"gm": "A", "fx_kwargs[is_backward]": "True", "fx_kwargs[is_inference]": "False"}
OF_A, OF_B, BACKWARD, WITHOUT_GRAPH = (
    lookup_row(detail_set=set_of(STORE, one)) for one in ({"gm": "A"}, {"gm": "B"}, OF_BACKWARD, {"x": "1"})
)
# Times that are no whole seconds: those of entries are exact to 1 ns.
AT = 10**9 + 1


def lookup(key: str, time: int | None, graph: LookupRow = OF_A, **told: str | int | None) -> LookupRow:
    return replace(graph, **{"cache_key": key, "time": time, "time_taken_ns": 1, **told})  # type: ignore[arg-type]


def entry(
    number: int, key: str, modified: int | None, graph: LookupRow = OF_A, **told: str | int | None
) -> EntryRow:
    made = entry_row(
        number, "fxgraph", key, "/cache", f"/cache/{key}", modified, detail_set=graph.detail_set,
    )  # fmt: skip
    return replace(made, **told)  # type: ignore[arg-type]


def candidates(lookups: list[LookupRow], *entries: EntryRow) -> StoredCandidates:
    lookups = [replace(one, lookup=at) for at, one in enumerate(lookups)]
    return StoredCandidates(history_of(lookups, STORE, entries))


def ids(entries: list[EntryRow]) -> list[int]:
    return [0 if one.entry == 0 else 1 for one in entries]


def of_last(lookups: list[LookupRow], *entries: EntryRow) -> list[int]:
    return ids(candidates(lookups, *entries).of_kind(len(lookups) - 1))


OTHER = entry(9, "f9", 3)


@pytest.mark.parametrize(
    ("time", "there"), [(AT, []), (AT + 1, [0]), (AT + 2, [0]), (None, [])], ids=["then", "1 ns", "2 ns", "no"]
)  # fmt: skip
def test_an_entry_is_there_a_nanosecond_after_it_was_written(time: int | None, there: list[int]) -> None:
    assert of_last([lookup("f2", time)], entry(0, "f1", AT), replace(OTHER, cache="aotautograd")) == there


@pytest.mark.parametrize(("earlier", "there"), [
    ([], [0, 1]),
    # The first lookup of its key stands for an entry from then on, and wrote it if it missed.
    ([lookup("f1", 2 * AT, outcome="hit")], [1]),
    ([lookup("f1", AT - 1)], [1]),
    ([lookup("f3", 2 * AT)], [0, 1]),
    ([lookup("f1", 2 * AT, cache="aotautograd")], [0, 1]),
])  # fmt: skip
def test_a_lookup_stands_for_the_entry_of_its_key(earlier: list[LookupRow], there: list[int]) -> None:
    assert of_last([*earlier, lookup("f2", 3 * AT)], entry(0, "f1", AT), OTHER) == there


def test_until_its_first_lookup_an_entry_is_there_if_that_hit() -> None:
    later = lookup("f2", 2 * AT), lookup("f1", 3 * AT, outcome="hit"), lookup("f4", 4 * AT)
    found = candidates(list(later), entry(0, "f1", AT), OTHER)
    # Of its own key an entry is nothing to compare a lookup with.
    assert [ids(found.of_kind(at)) for at in range(3)] == [[0, 1], [1], [1]]
    missed = candidates([later[0], lookup("f1", 3 * AT), later[2]], entry(0, "f1", 3 * AT + 1), OTHER)
    assert [ids(missed.of_kind(at)) for at in range(3)] == [[1], [1], [1]]


def test_entries_are_those_of_the_cache_the_direction_and_the_graph() -> None:
    entries = [
        entry(0, "f10", AT), entry(1, "f11", AT + 1, OF_B), entry(2, "f12", AT + 2, BACKWARD),
        entry(3, "a13", AT + 3, cache="aotautograd"), entry(4, "f14", AT + 4, detail_set=None),
        entry(5, "f15", AT + 5, WITHOUT_GRAPH),
    ]  # fmt: skip
    asked = [
        lookup("f1", 2 * AT),
        lookup("f2", 2 * AT, OF_B),
        lookup("f3", 2 * AT, BACKWARD, direction="backward"),
        lookup("a4", 2 * AT, cache="aotautograd"),
        lookup("f5", 2 * AT, WITHOUT_GRAPH),
        lookup("f6", 2 * AT, direction="forward"),
    ]
    found = candidates([replace(one, lookup=at) for at, one in enumerate(asked)], *entries)
    of_kind = [[one.entry for one in found.of_kind(at)] for at in range(6)]
    assert of_kind == [[0, 1, 5], [0, 1, 5], [2], [3], [0, 1, 5], []]
    assert [[one.entry for one in found.of_graph(at)] for at in range(6)] == [[0], [1], [2], [3], [5], []]
    assert [[one.entry for one in found.with_kind(at)] for at in range(6)] == of_kind


def test_without_entries_there_are_none() -> None:
    found = candidates([lookup("f1", AT)])
    assert (found.of_kind(0), found.of_graph(0), found.with_kind(0)) == ([], [], [])
    assert found.doubt(0) is None


@pytest.mark.parametrize(("modified", "time", "may_be"), [
    # Of a directory whose times tell nothing an entry may always have been there.
    (None, AT, True), (None, None, True),
    # Within the nanosecond in which it was written, neither is known.
    (AT, AT - 1, True), (AT, AT, True), (AT, AT + 1, False), (AT, None, True),
])  # fmt: skip
def test_an_entry_may_have_been_there(modified: int | None, time: int | None, may_be: bool) -> None:
    stored = entry(0, "f1", modified)
    found = candidates([lookup("f2", time)], stored, replace(OTHER, detail_set=OF_B.detail_set))
    assert (found.doubt(0) is not None) is may_be


def test_an_entry_that_a_lookup_stands_for_may_not_have_been_there_by_itself() -> None:
    lookups = [lookup("f2", None), lookup("f1", None, outcome="hit"), lookup("f3", None)]
    found = candidates(lookups, entry(0, "f1", None))
    assert [found.doubt(at) is not None for at in range(3)] == [True, False, False]
    lookups[1] = replace(lookups[1], outcome="full_miss")
    found = candidates(lookups, entry(0, "f1", None))
    assert [found.doubt(at) for at in range(3)] == [None, None, None]


def test_the_first_of_several_lookups_of_a_key_stands_for_its_entry() -> None:
    hits = lookup("f1", 3 * AT, outcome="hit"), lookup("f1", 4 * AT, outcome="hit")
    found = candidates([lookup("f2", 2 * AT), *hits, lookup("f3", 5 * AT)], entry(0, "f1", AT), OTHER)
    assert [ids(found.of_kind(at)) for at in range(4)] == [[0, 1], [1], [1], [1]]
    lookups = [lookup("f2", None), lookup("f1", None), lookup("f1", None, outcome="hit"), lookup("f3", None)]
    assert not any(candidates(lookups, entry(0, "f1", None)).doubt(at) for at in range(4))


def written(key: str, modified: int | None, root: str = "/cache") -> EntryRow:
    return entry_row(0, "fxgraph", key, root, "p", modified)


def miss(key: str, at: int | None, took: int | None = SECOND, **told: object) -> LookupRow:
    made = {"cache_key": key, "time": at, "time_taken_ns": took, "compile_id": key, **told}
    return replace(TEMPLATE, **made)  # type: ignore[arg-type]


@pytest.mark.parametrize(("times", "resolution"), [
    ([], 2 * SECOND), ([4 * SECOND], 2 * SECOND), ([4 * SECOND, 2 * SECOND], 2 * SECOND), ([4 * SECOND, 3 * SECOND], SECOND), ([3 * SECOND], SECOND),
    ([4 * SECOND, 3 * SECOND + 1], 1), ([4 * SECOND + 1], 1), ([4 * SECOND, None], 2 * SECOND),
    # One time for all tells nothing, but that of one written does.
    ([4 * SECOND, 4 * SECOND], None), ([4 * SECOND, 4 * SECOND, None], None), ([4 * SECOND, 4 * SECOND, 6 * SECOND], 2 * SECOND),
])  # fmt: skip
def test_how_exact_the_times_of_a_directory_are(times: list[int | None], resolution: int | None) -> None:
    assert resolution_ns([written("f1", time) for time in times]) == resolution


# A moment that is no whole second: times are then exact to 1 ns.
T = 1_000 * SECOND + 7
ANY = LONG_AGO, NEVER


@pytest.mark.parametrize(("modified", "told", "wanted"), [
    # As it was written at the end of the compile, at most one step of the clock before the miss, 5 s late at most.
    (T + SECOND, {}, (T + SECOND, T + SECOND + 1)),
    (T - 1, {}, (T - 1, T)),
    (T - 2, {}, ANY),
    (T + 6 * SECOND, {}, (T + 6 * SECOND, T + 6 * SECOND + 1)),
    (T + 6 * SECOND + 1, {}, ANY),
    (None, {}, ANY),
    # Of a compile that is not known to have ended: its process wrote it while it ran; later, it may be a copy.
    (T + 60 * SECOND, {"compile_ended": False}, ANY),
    (T - 2, {"compile_ended": False}, ANY),
    (T + 60 * SECOND, {"compile_ended": False, "log_ended": T + HOUR}, (T + 60 * SECOND, T + 60 * SECOND + 1)),
    (T + 60 * SECOND, {"compile_ended": False, "log_ended": T + 54 * SECOND}, ANY),
    # By the time that it took, which the entry holds.
    (T + 60 * SECOND, {"compile_ended": False, "time_taken_ns": 55 * SECOND, "took": 55 * SECOND}, (T + 60 * SECOND, T + 60 * SECOND + 1)),
    # What did not write it says nothing.
    (T - HOUR, {"outcome": "hit"}, (LONG_AGO, T - HOUR + 1)),
    (T - HOUR, {"time": None}, (LONG_AGO, T - HOUR + 1)),
    (T - HOUR, {"cache": "aotautograd"}, (LONG_AGO, T - HOUR + 1)),
    (T - HOUR, {"cache_key": "f9"}, (LONG_AGO, T - HOUR + 1)),
])  # fmt: skip
def test_when_it_was_stored(modified: int | None, told: dict[str, object], wanted: tuple[int, int]) -> None:
    made = written("f1", modified)
    log_ended, made.time_taken_ns = told.get("log_ended"), told.get("took")  # type: ignore[assignment]
    told = {name: value for name, value in told.items() if name not in ("log_ended", "took")}
    missed = replace(miss("f1", T), **told)  # type: ignore[arg-type]
    history = history_of([missed], entries=[made], runs=[RunRow(end_time=log_ended)])  # type: ignore[arg-type]
    assert EntryTimes(history).interval(made) == wanted


def shifts(*before_end: int) -> list[int | None]:
    """By how much the time of each written is shifted, given how long before the end of its compile it seems to be written."""
    entries, lookups = [], []
    for number, shift in enumerate(before_end):
        began = 1_000 * SECOND * (number + 1) + 7
        lookups.append(miss(f"f{number}", began, 0))
        entries.append(written(f"f{number}", began - shift))
    times = EntryTimes(history_of(lookups, entries=entries))
    found = [times.interval(one) for one in entries]
    return [
        None if interval == ANY else interval[0] - (one.modified_time or 0)
        for interval, one in zip(found, entries, strict=True)
    ]


@pytest.mark.parametrize(("before_end", "shift"), [
    ((0, 0), 0), ((HOUR,), None), ((HOUR, HOUR), HOUR), ((-HOUR, -HOUR), -HOUR),
    # 3 s apart, and as much as the clock may be off.
    ((HOUR, HOUR + 3 * SECOND + 1), HOUR), ((HOUR + 3 * SECOND + 1, HOUR), HOUR), ((HOUR, HOUR + 3 * SECOND + 2), None),
    ((HOUR, HOUR + 2 * SECOND, HOUR + SECOND), HOUR + SECOND), ((HOUR, 0), None),
    # One of them off by more than a step of the clock.
    ((0, 1), 0), ((0, 2), 0), ((1, 2), 1), ((0, -5 * SECOND), 0), ((0, -5 * SECOND - 1), None),
    ((-3 * SECOND, -6 * SECOND), -6 * SECOND),
])  # fmt: skip
def test_by_how_much_a_clock_is_off(before_end: tuple[int, ...], shift: int | None) -> None:
    assert shifts(*before_end) == [shift] * len(before_end)


def test_a_key_that_several_missed_was_written_by_none_that_is_known() -> None:
    entries = [written("f1", T - HOUR), written("f2", 2 * T)]
    lookups = [miss("f1", T), miss("f1", T + SECOND), miss("f2", 2 * T)]
    for found in (lookups, lookups[1:]):
        assert EntryTimes(history_of(found, entries=entries)).interval(entries[0]) == ANY
    # Any of them may have, from the first miss until the last compile ended.
    times = [T, T + 4 * SECOND, T + 7 * SECOND, T + 7 * SECOND + 1]
    each = [written("f1", at) for at in times]
    found = [EntryTimes(history_of(lookups[:2], entries=[one])).interval(one)[0] for one in each]
    assert found == [*times[:3], LONG_AGO]


def test_each_directory_has_a_clock_of_its_own() -> None:
    first = written("f1", T - HOUR, "/late")
    entries = [first, written("f2", 2 * T, "/right"), written("f3", 4 * SECOND, "/whole")]
    times = EntryTimes(history_of([miss("f1", T), miss("f2", 2 * T)], entries=entries))
    assert [times.interval(one) for one in entries] == [ANY, (2 * T, 2 * T + 1), (LONG_AGO, 6 * SECOND)]


def test_what_was_copied_at_once_is_no_shifted_clock() -> None:
    for apart, wanted in ((SECOND, ANY), (4 * SECOND, (T, T + 1))):
        lookups = [miss("f1", T, 0), miss("f2", T + apart, 0)]
        entries = [written("f1", T + HOUR), written("f2", T + HOUR + apart)]
        assert EntryTimes(history_of(lookups, entries=entries)).interval(entries[0]) == wanted


def test_whole_seconds_may_lie_before_their_miss() -> None:
    made = written("f1", 7 * SECOND)
    for began, wanted in ((8 * SECOND, (7 * SECOND, 8 * SECOND)), (8 * SECOND + 1, ANY)):
        assert EntryTimes(history_of([miss("f1", began)], entries=[made])).interval(made) == wanted
