"""Logs in columns that somebody changed: one value in, what is said of it out; and what is kept of a log, as columns."""

import struct
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.index.log_folder import check_log, is_of_this_version, write_logs
from cachescope.readers.index.log_tables import LogTables
from cachescope.readers.json_record import MOST_NS, MOST_NS_OF_A_DURATION, MOST_OF_A_COLUMN
from cachescope.readers.reading import Process, Reading
from tests.made import component


def log(source: str = "/log", components: tuple[str, ...] = ("a", "b")) -> LogTables:
    """Two processes, of which one has two lookups with details, and a problem."""
    reading = Reading()
    codes = [reading.details.add([component(name, "x"), component("all", "y")])[0] for name in components]
    one = Process(source, "trace", 7)
    one.lookups = [LookupRow(cache="fxgraph", time=5, cache_key="f1", detail_set=code) for code in codes]
    reading.processes = [one, Process(source, "text", 8)]
    reading.problem(source, "line 1", "truncated", "why")
    return LogTables.of(source, reading)


def test_so_many_logs_are_written(tmp_path: Path) -> None:
    for count in (0, 1, 2):
        assert write_logs(tmp_path / f"{count}", [log(f"/{at}") for at in range(count)]) == count


def held(log: LogTables) -> dict[str, Any]:
    """What the line of a log holds."""
    line = log.to_json()
    assert line is not None and b"\n" not in line
    found: dict[str, Any] = orjson.loads(line)
    return found


def checked(held: dict[str, Any]) -> str | None:
    assert is_of_this_version(held)
    try:
        check_log(held)
    except ValueError as error:
        return str(error)
    return None


def test_what_a_reader_returns_is_right() -> None:
    assert checked(held(log())) is None
    assert checked(held(LogTables.of("/log", Reading()))) is None


Change = Callable[[dict[str, Any]], None]


def of(where: str, name: str, value: object, at: int = 0) -> Change:
    def change(held: dict[str, Any]) -> None:
        held[where][name][at] = value

    return change


def whole(name: str, value: object) -> Change:
    def change(held: dict[str, Any]) -> None:
        held[name] = value

    return change


def codes(*numbers: int) -> str:
    return b64encode(struct.pack(f"<{len(numbers)}i", *numbers)).decode()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (whole("source", None), "source is no str"),
        (whole("components", "ab"), "components is no list"),
        (lambda held: held["problems"].update(kind="other"), "problems has what is no list"),
        (lambda held: held["problems"].update(kind=[]), "problems has columns of several lengths"),
        (of("processes", "kind", 1), "processes has a kind of another type"),
        (of("processes", "pid", True), "processes has a pid of another type"),
        (of("lookups", "cache", ["fxgraph"]), "lookups has a cache of another type"),
        (of("processes", "kind", None), "processes has no kind in a row"),
        (of("processes", "kind", "other"), "processes has a kind that is none"),
        (of("processes", "is_cut", None), "processes has no is_cut in a row"),
        (of("processes", "pid", None), None),
        (of("processes", "pid", -1), f"processes has a pid beyond 0 and {MOST_OF_A_COLUMN}"),
        (of("processes", "exit_status", -1), None),
        (of("processes", "clock_first_us", 400 * 86_400_000_000), None),
        (of("processes", "clock_first_us", 400 * 86_400_000_000 + 1), f"processes has a clock_first_us beyond 0 and {400 * 86_400_000_000}"),
        (of("processes", "start_time_ns", MOST_NS), None),
        (of("processes", "start_time_ns", MOST_NS + 1), f"processes has a start_time_ns beyond 0 and {MOST_NS}"),
        (of("processes", "start_time_ns", 0), None),
        (of("processes", "start_time_ns", -1), f"processes has a start_time_ns beyond 0 and {MOST_NS}"),
        (of("processes", "lookups", 1), "lookups are not as many as said"),
        (of("processes", "lookups", 1, 1), "lookups are not as many as said"),
        (of("lookups", "cache", "other"), "lookups has a cache that is none"),
        (of("lookups", "outcome", "other"), "lookups has a outcome that is none"),
        (of("lookups", "outcome", "hit"), None),
        (of("lookups", "segment", None), "lookups has no segment in a row"),
        (of("lookups", "time_taken_ns", -MOST_NS_OF_A_DURATION), None),
        (of("lookups", "time_taken_ns", -MOST_NS_OF_A_DURATION - 1), f"lookups has a time_taken_ns beyond {-MOST_NS_OF_A_DURATION} and {MOST_NS_OF_A_DURATION}"),
        (of("lookups", "detail_set", None), None),
        (of("lookups", "detail_set", 1), None),
        (of("lookups", "detail_set", 2), "detail_set point nowhere"),
        (of("lookups", "detail_set", -1), f"lookups has a detail_set beyond 0 and {MOST_OF_A_COLUMN}"),
        (of("problems", "kind", None), "problems has no kind in a row"),
        (whole("set_sizes", [2, None]), "set_sizes has what is no size"),
        (whole("set_sizes", [5, -1]), "set_sizes has what is no size"),
        (whole("set_sizes", [4, 0]), None),
        (whole("set_sizes", [2, 1]), "set_codes are not as many as said"),
        (whole("set_codes", codes(0, 1, 2, 0)), None),
        (whole("set_codes", codes(0, 1, 2)), "set_codes are not as many as said"),
        (whole("set_codes", codes(0, 1, 2, 3)), "set_codes point nowhere"),
        (whole("set_codes", codes(0, 1, 2, -1)), "set_codes point nowhere"),
        (whole("set_codes", "AAA="), "buffer size must be a multiple of element size"),
        (whole("components", ["a", "b"]), "set_codes point nowhere"),
        (whole("components", ["a", None, "b"]), "components has what is no text"),
    ],
)  # fmt: skip
def test_a_value_that_no_reader_returns(change: Change, said: str | None) -> None:
    changed = held(log())
    change(changed)
    assert checked(changed) == said


def test_what_another_version_wrote() -> None:
    for change in (
        lambda held: held.pop("set_codes"),
        lambda held: held.update(more=1),
        lambda held: held["lookups"].pop("order", None) or held["lookups"].pop("segment"),
        lambda held: held["processes"].update(more=[1, 2]),
        lambda held: held.update(problems=None),
    ):
        other = held(log())
        change(other)
        assert not is_of_this_version(other)
    assert not is_of_this_version([])


def test_a_log_comes_back_out_of_columns() -> None:
    reading = Reading()
    for one in (log("/one"), log("/two", ("c",))):
        LogTables.from_json(held(one)).merge_into(reading)
    processes = [(one.source, one.kind, len(one.lookups)) for one in reading.processes]
    assert processes[:2] == [("/one", "trace", 2), ("/one", "text", 0)]
    assert processes[2:] == [("/two", "trace", 1), ("/two", "text", 0)]
    found = [
        [detail.field for detail in reading.details.details(lookup.detail_set)]
        for process in reading.processes
        for lookup in process.lookups
        if lookup.detail_set is not None
    ]
    assert found == [["a", "all"], ["b", "all"], ["c", "all"]]
    problems = [(problem.source, problem.where) for problem in reading.problems]
    assert problems == [("/one", "line 1"), ("/two", "line 1")]
    # Under the source that it is read from now.
    again = LogTables.from_json(held(log("/one")), "/now")
    assert {one.source for one in (*again.processes, *again.problems)} == {"/now"}


def test_what_fits_no_column_is_not_kept() -> None:
    huge = log()
    huge.processes[0].pid = 1 << 70
    assert huge.to_json() is None
    half = log()
    half.processes[0].command = "\ud800"
    assert half.to_json() is None


def test_the_details_of_a_log_get_the_codes_of_the_store_that_they_are_added_to() -> None:
    other = Reading()
    other.details.add([component("a", "x")])
    for name in ("/one", "/two"):
        log(name).merge_into(other)
    found = [lookup.detail_set for process in other.processes for lookup in process.lookups]
    assert found == [1, 2, 1, 2]
    with pytest.raises(ValueError, match="no hash details"):
        LogTables("/log", [], [], ["no detail"], []).add_details_to(Reading().details)
