"""The events of a trace: read from a real one, damaged, with values that no torch writes, packed."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.errors import SourceError
from cachescope.readers.logs import trace_records
from cachescope.readers.logs.trace_events import TraceEvent, TraceEvents
from tests.conftest import Recording

DEEP = "[" * 100_000 + "]" * 100_000
LONG = "9" * 5_000
FIRST = re.compile(
    rb'("name": )("\w+")(,\n\t"ts": )([0-9.]+)(,\n\t"args": )(\{\n\t"compile_id": "0/0"\n\t\})(,\n\t"ph": )("B")'
)
PARTS = {"name": 2, "ts": 4, "args": 6, "ph": 8}


@pytest.fixture(scope="module")
def trace(recording: Recording) -> Path:
    folder = recording("2.13.0", "training") / "trace"
    return max(folder.iterdir(), key=lambda path: path.stat().st_size)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("noise")


@pytest.fixture(scope="module")
def whole(trace: Path) -> list[TraceEvent]:
    return list(TraceEvents(str(trace)))


def read(data: bytes, folder: Path) -> tuple[list[TraceEvent], TraceEvents]:
    log = folder / "one.log"
    log.write_bytes(data)
    events = TraceEvents(str(log))
    return list(events), events


def with_part(data: bytes, part: str, value: str) -> bytes:
    """The trace with one part of its first event changed by hand."""
    match = FIRST.search(data)
    assert match is not None
    start, end = match.span(PARTS[part])
    return data[:start] + value.encode() + data[end:]


def test_begins_and_ends_come_in_their_order(whole: list[TraceEvent], trace: Path) -> None:
    assert whole[0].name == "dynamo"
    assert whole[0].is_begin
    assert whole[0].compile_id == "0/0"
    stamp = re.search(r'"ts": ([0-9.]+)', trace.read_text())
    assert stamp is not None
    assert whole[0].time_ns == round(float(stamp[1]) * 1000)
    assert sum(event.is_begin for event in whole) == len(whole) / 2
    assert {event.compile_id for event in whole} == {"0/0", None}


@pytest.mark.parametrize("value", ["5", "null", "[]", DEEP, "true", "{}"])
@pytest.mark.parametrize("part", ["name", "ph", "args"])
def test_a_bad_value_costs_no_more_than_its_event(
    part: str, value: str, trace: Path, whole: list[TraceEvent], tmp_path: Path
) -> None:
    events, reading = read(with_part(trace.read_bytes(), part, value), tmp_path)
    if part == "args" and value in ("null", "{}"):
        assert not reading.problems  # it may have none
    else:
        (problem,) = reading.problems
        assert problem.kind in ("bad_value", "not_json")
        assert problem.where == "byte 0"
    assert events[-len(whole) + 1 :] == whole[1:]


@pytest.mark.parametrize(
    "value",
    ["-1.0", LONG, "1e400", "NaN", "Infinity", "true", "[1]", "{}", '"7"', "null", str(1 << 64), "1e19"],
)
def test_a_time_that_is_none_is_a_problem(
    value: str, trace: Path, whole: list[TraceEvent], tmp_path: Path
) -> None:
    events, reading = read(with_part(trace.read_bytes(), "ts", value), tmp_path)
    (problem,) = reading.problems
    assert (problem.kind, problem.where) == ("bad_value", "byte 0")
    assert events == whole[1:]


def test_a_time_of_another_age_is_told(trace: Path, whole: list[TraceEvent], tmp_path: Path) -> None:
    events, reading = read(with_part(trace.read_bytes(), "ts", "0.0"), tmp_path)
    (problem,) = reading.problems
    assert "months" in problem.message
    assert events[1:] == whole[1:]


def test_a_whole_number_and_another_order_are_read(
    trace: Path, whole: list[TraceEvent], tmp_path: Path
) -> None:
    """As any writer of JSON may put it."""
    data = trace.read_bytes()
    match = re.search(rb"\n((?:\t[^\n]*\n)+)", data)
    assert match is not None
    event = json.loads(match[1])
    changed = json.dumps({**dict(reversed(event.items())), "ts": int(event["ts"])}).encode()
    events, reading = read(data[: match.start(1)] + b"\t" + changed + b"\n" + data[match.end(1) :], tmp_path)
    assert not reading.problems
    assert (events[0].name, events[0].time_ns) == ("dynamo", int(event["ts"]) * 1000)
    assert events[1:] == whole[1:]


def test_half_a_character_is_an_escape(trace: Path, tmp_path: Path) -> None:
    events, reading = read(with_part(trace.read_bytes(), "name", '"\\ud800"'), tmp_path)
    assert not reading.problems
    assert events[0].name == "\\ud800"


def test_payload_that_imitates_an_event_is_none(trace: Path, whole: list[TraceEvent], tmp_path: Path) -> None:
    data = trace.read_bytes()
    line = data[: data.index(b"\n")]
    fake = line.replace(b"chromium_event", b"artifact") + b"\n\t" + line + b'\n\t{"name": "x"}\n'
    assert read(data + fake, tmp_path)[0] == whole


def test_a_packed_trace_is_read_alike_and_a_cut_one_to_its_end(
    trace: Path, whole: list[TraceEvent], tmp_path: Path
) -> None:
    packed = gzip.compress(trace.read_bytes())
    assert read(packed, tmp_path)[0] == whole
    events, reading = read(packed[: len(packed) // 2], tmp_path)
    assert events == whole[: len(events)]
    assert [problem.kind for problem in reading.problems] == ["damaged_compression"]
    events, reading = read(trace.read_bytes()[:-5], tmp_path)
    assert events == whole[: len(events)]
    assert not reading.problems  # the run says that its log is cut


def test_no_more_is_read_than_was_asked_for(trace: Path, whole: list[TraceEvent]) -> None:
    size = trace.stat().st_size // 2
    some = list(TraceEvents(str(trace), size))
    assert 0 < len(some) < len(whole)
    assert some == whole[: len(some)]


@pytest.mark.parametrize("size", [1 << 7, 1 << 10, 1 << 14])
def test_blocks_of_any_size_give_the_same_events(
    size: int, trace: Path, whole: list[TraceEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_records, "BLOCK_BYTES", size)
    assert list(TraceEvents(str(trace))) == whole


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        list(TraceEvents(str(tmp_path / "none.log")))


@given(st.binary(max_size=300), st.integers(0, 1 << 20), st.integers(0, 300))
def test_any_bytes_give_events_or_problems(
    trace: Path, folder: Path, noise: bytes, at: int, lost: int
) -> None:
    data = trace.read_bytes()[:60_000]
    at %= len(data)
    log = folder / "noise.log"
    log.write_bytes(data[:at] + noise + data[at + lost :])
    for event in TraceEvents(str(log)):
        assert isinstance(event, TraceEvent)
