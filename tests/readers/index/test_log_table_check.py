"""Logs in columns that somebody changed: one value in, what is said of it out; and what is kept of a log, as columns."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.index.log_folder import check_logs, write_logs
from cachescope.readers.index.log_tables import SCHEMA, KnownCodes, LogTables, to_arrow
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


def rows() -> list[dict[str, Any]]:
    table = to_arrow([log("/one"), log("/two", ("c",))])
    assert table is not None
    return table.to_pylist()


def checked(rows: list[dict[str, Any]]) -> str | None:
    try:
        check_logs(pa.Table.from_pylist(rows, schema=SCHEMA))
    except ValueError as error:
        return str(error)
    return None


def test_what_a_reader_returns_is_right() -> None:
    assert checked(rows()) is None
    assert checked([]) is None


Change = Callable[[dict[str, Any]], None]


def of(where: str, name: str, value: object, at: int = 0) -> Change:
    def change(row: dict[str, Any]) -> None:
        row[where][at][name] = value

    return change


def whole(name: str, value: object) -> Change:
    def change(row: dict[str, Any]) -> None:
        row[name] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (whole("source", None), "source is missing in a log"),
        (whole("problems", None), "problems is missing in a log"),
        (whole("processes", [None, None]), "processes has missing rows"),
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
        (whole("set_sizes", [2, None]), "set_sizes has missing values"),
        (whole("set_sizes", [5, -1]), "set_sizes has a negative one"),
        (whole("set_sizes", [4, 0]), None),
        (whole("set_sizes", [2, 1]), "set_codes are not as many as said"),
        (whole("set_codes", [0, 1, 2, None]), "set_codes has missing values"),
        (whole("set_codes", [0, 1, 2, 3]), "set_codes point nowhere"),
        (whole("set_codes", [0, 1, 2, -1]), "set_codes point nowhere"),
        (whole("components", ["a", "b"]), "set_codes point nowhere"),
        (whole("components", ["a", None, "b"]), "components has missing values"),
    ],
)  # fmt: skip
def test_a_value_that_no_reader_returns(change: Change, said: str | None) -> None:
    for at in (0, 1):
        both = rows()
        if at == 1:
            both.reverse()
        change(both[at])
        assert checked(both) == said


def test_codes_and_counts_are_those_of_each_log() -> None:
    """What one log lacks does not come from its neighbour."""
    both = rows()
    both[1]["lookups"][0]["detail_set"] = 1
    assert checked(both) == "detail_set point nowhere"
    both = rows()
    both[1]["set_codes"][0] = 2
    assert checked(both) == "set_codes point nowhere"
    both = rows()
    both[0]["processes"][0]["lookups"], both[1]["processes"][0]["lookups"] = 1, 2
    assert checked(both) == "lookups are not as many as said"
    both = rows()
    both[1]["set_sizes"], both[1]["set_codes"] = [1], [0, 1]
    assert checked(both) == "set_codes are not as many as said"


def test_a_log_comes_back_out_of_columns() -> None:
    table = to_arrow([log("/one"), log("/two", ("c",))])
    assert table is not None and table.schema == SCHEMA
    reading = Reading()
    for one in LogTables.from_arrow(table):
        one.merge_into(reading)
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
    (again,) = LogTables.from_arrow(table.slice(0, 1), "/now")
    assert {one.source for one in (*again.processes, *again.problems)} == {"/now"}
    assert list(LogTables.from_arrow(table.slice(0, 0))) == []


def test_what_fits_no_column_is_not_kept() -> None:
    huge = log()
    huge.processes[0].pid = 1 << 70
    assert to_arrow([huge]) is None
    half = log()
    half.processes[0].command = "\ud800"
    assert to_arrow([half]) is None
    nothing = LogTables.of("/log", Reading())
    table = to_arrow([nothing])
    assert table is not None and table.to_pylist()[0]["set_sizes"] == []


def test_logs_that_one_worker_read_build_on_those_before() -> None:
    reading = Reading()
    first, _ = reading.details.add([component("a", "x")])
    one = LogTables.of("/one", reading)
    known = len(reading.details.components), len(reading.details.sets)
    second, _ = reading.details.add([component("a", "x"), component("b", "x")])
    two = LogTables.of("/two", reading, *known)
    assert (len(two.components), len(two.sets)) == (1, 1)
    other, codes = Reading(), KnownCodes()
    both = [replace(log, known=codes) for log in (one, two)]
    assert [log.add_details_to(other.details)[-1] for log in both] == [first, second]
    assert [detail.field for detail in other.details.details(1)] == ["a", "b"]
    with pytest.raises(ValueError, match="no hash details"):
        LogTables("/log", [], [], ["no detail"], []).add_details_to(other.details)
