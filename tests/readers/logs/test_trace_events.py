"""The events of a trace: read from a real one, damaged, with values that no torch writes, packed; how long a bypassed compile took."""

import errno
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.errors import SourceError
from cachescope.readers.kinds import first_record
from cachescope.readers.logs import second_pass, trace_records
from cachescope.readers.logs.log_prefix import pid_of
from cachescope.readers.logs.second_pass import TraceEvent, TraceEvents
from tests.conftest import RECORDINGS, Recording
from tests.readers.logs.test_log_lines import Failing
from tests.readers.logs.test_trace_process import looked_up, prefix, record

DEEP = "[" * 100_000 + "]" * 100_000
LONG = "9" * 5_000


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


def test_begins_and_ends_come_in_their_order(whole: list[TraceEvent], trace: Path) -> None:
    assert whole[0].name == "dynamo"
    assert whole[0].is_begin
    assert whole[0].compile_id == "0/0"
    stamp = re.search(r'"ts": ([0-9.]+)', trace.read_text())
    assert whole[0].time_ns == round(float(stamp[1]) * 1000)
    assert sum(event.is_begin for event in whole) == len(whole) / 2
    assert {event.compile_id for event in whole} == {"0/0", None}


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


MOST_US = 7_258_118_400 * 10**6
PLAIN = {"name": "x", "ts": 1e15, "ph": "B", "args": {"compile_id": "0/0"}}
READ = TraceEvent("x", 10**18, True, "0/0")


def event(values: object, **told: Any) -> str:
    return record({"chromium_event": {}}, values if isinstance(values, str) else json.dumps(values), **told)


def with_stamp(text: str) -> str:
    """An event whose time is this JSON."""
    return json.dumps({**PLAIN, "ts": "@"}).replace('"@"', text)


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in PLAIN.items() if key != name}


@pytest.mark.parametrize(("values", "wanted", "said"), [
    (PLAIN, READ, None),
    ({**PLAIN, "ph": "E"}, READ._replace(is_begin=False), None),
    # What neither begins nor ends is no event of ours, and nothing is wrong with it.
    ({**PLAIN, "ph": "i"}, None, None),
    ({**PLAIN, "ph": "X"}, None, None),
    ({**PLAIN, "args": {"compile_id": "None"}}, READ._replace(compile_id=None), None),
    # As any writer of JSON may put it.
    ({**PLAIN, "ts": 10**15}, READ, None),
    ({**PLAIN, "ts": 10**15, "args": {"compile_id": "None"}}, READ._replace(compile_id=None), None),
    ({**PLAIN, "ts": 10**15, "ph": "E"}, READ._replace(is_begin=False), None),
    ({**PLAIN, "ts": 10**15, "ph": "i"}, None, None),
    (without("args"), READ._replace(compile_id=None), None),
    ({**PLAIN, "args": {}}, READ._replace(compile_id=None), None),
    ({**PLAIN, "args": {"compile_id": None}}, READ._replace(compile_id=None), None),
    # What is wrong is said, and the rest of it is read.
    ({**PLAIN, "args": 3}, READ._replace(compile_id=None), "3 where an object belongs"),
    ({**PLAIN, "args": {"compile_id": 3}}, READ._replace(compile_id=None), "compile_id is 3, not a text"),
    (without("name"), None, "name is missing"),
    ({**PLAIN, "name": 5}, None, "name is 5, not a text"),
    (without("ts"), None, "ts is missing"),
    ({**PLAIN, "ts": None}, None, "ts is missing"),
    ({**PLAIN, "ts": "x"}, None, "ts is the text 'x', not microseconds since the epoch"),
    (without("ph"), None, "ph is missing"),
    ({**PLAIN, "ph": 5}, None, "ph is 5, not a text"),
    ({}, None, "name is missing; ts is missing; ph is missing"),
    ([1], None, "a list where an object belongs; name is missing; ts is missing; ph is missing"),
    # The first and the last moment that a column holds.
    ({**PLAIN, "ts": 0.0}, READ._replace(time_ns=0), None),
    ({**PLAIN, "ts": float(MOST_US)}, READ._replace(time_ns=MOST_US * 1000), None),
    ({**PLAIN, "ts": MOST_US}, READ._replace(time_ns=MOST_US * 1000), None),
    ({**PLAIN, "ts": MOST_US + 1.0}, None, f"ts is {MOST_US + 1.0!r}, not microseconds since the epoch"),
    ({**PLAIN, "ts": -1.0}, None, "ts is -1.0, not microseconds since the epoch"),
    (with_stamp("1e400"), None, "ts is inf, not microseconds since the epoch"),
    (with_stamp(LONG), None, "ts is inf, not microseconds since the epoch"),
    (with_stamp("NaN"), None, "ts is nan, not microseconds since the epoch"),
    (with_stamp("true"), None, "ts is true, not microseconds since the epoch"),
    (with_stamp("[1]"), None, "ts is a list, not microseconds since the epoch"),
    # Half a character is an escape.
    ({**PLAIN, "name": "\ud800"}, READ._replace(name="\\ud800"), None),
])  # fmt: skip
def test_an_event_by_its_values(
    values: object, wanted: TraceEvent | None, said: str | None, tmp_path: Path
) -> None:
    before = looked_up()
    events, reading = read((before + event(values)).encode(), tmp_path)
    assert events == ([] if wanted is None else [wanted])
    assert [(one.where, one.kind, one.message) for one in reading.problems] == (
        [] if said is None else [(f"byte {len(before)}", "bad_value", f"chromium_event: {said}")]
    )


def stamped(*stamps: int) -> bytes:
    return "".join(event({**PLAIN, "ts": float(at)}) for at in stamps).encode()


def test_a_jump_of_months_is_told_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_pass, "MOST_NS_OF_A_DURATION", 5_000)
    for stamps, count in (((10, 15, 20), 0), ((10, 16), 1), ((16, 10, 3), 0), ((10, 16, 22), 2)):
        events, reading = read(stamped(*stamps), tmp_path)
        assert [one.time_ns for one in events] == [at * 1000 for at in stamps]
        said = "chromium_event: ts is months after that of the event before"
        first = [(f"byte {len(stamped(stamps[0]))}", said, count)] if count else []
        assert [(one.where, one.message, one.count) for one in reading.problems] == first


def test_problems_are_at_their_byte_in_later_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_records, "BLOCK_BYTES", 500)
    goods, bad = [event(PLAIN, second=n) for n in range(19)], event({**PLAIN, "name": 5})
    good = goods[0]
    damaged = good.replace('"ph"', '"ph')
    records = [*goods[:9], bad, *goods[9:18], damaged, goods[18]]
    events, reading = read("".join(records).encode(), tmp_path)
    assert events == [READ] * 19
    wrong, cut = reading.problems
    assert (wrong.where, wrong.kind) == (f"byte {9 * len(good)}", "bad_value")
    assert (cut.where, cut.kind) == (f"byte {18 * len(good) + len(bad)}", "not_json")
    assert {one.source for one in reading.problems} == {str(tmp_path / "one.log")}


def test_an_event_that_the_log_ends_in_is_no_problem(tmp_path: Path) -> None:
    whole = event(PLAIN)
    for cut in (1, 5, len(whole) - whole.index("\n"), len(whole) - whole.index("\n") + 5):
        events, reading = read((whole + whole[: len(whole) - cut]).encode(), tmp_path)
        assert (events[:1], reading.problems) == ([READ], [])
        assert len(events) == (2 if cut == 1 else 1)
    # Within the log it is one.
    for damaged in (whole[:-3] + "\n", event(DEEP)):
        _, reading = read((damaged + looked_up()).encode(), tmp_path)
        assert [(one.where, one.kind) for one in reading.problems] == [("byte 0", "not_json")], damaged[:90]


def test_a_record_too_long_hides_no_event_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_records, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(trace_records, "_MOST_BYTES_OF_A_RECORD", 2000)
    long = event({**PLAIN, "name": "y" * 5000})
    events, reading = read((event(PLAIN) + long + event(PLAIN, second=1)).encode(), tmp_path)
    assert (events, reading.problems) == ([READ, READ], [])


@pytest.mark.parametrize(("first", "pid"), [("", 7), ("no record\n", 7), (f"{prefix(pid=8)}{{}}\n", 8)])
def test_the_process_is_that_of_the_first_record(first: str, pid: int) -> None:
    record = first_record((first + event(PLAIN)).encode())
    assert record is not None and pid_of(record) == pid
    assert first_record(b"no record\n") is None


def test_a_file_that_is_lost_half_way_is_a_problem_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def problem(data: str) -> tuple[int, str, str]:
        stream = Failing([data.encode()] if data else [], OSError(errno.EIO, "broken"))
        monkeypatch.setattr(trace_records, "open_bytes", lambda path: stream)
        events = TraceEvents("/a.log")
        count = len(list(events))
        (found,) = events.problems
        return count, found.where, found.kind

    assert problem(event(PLAIN)) == (1, f"byte {len(event(PLAIN))}", "lost")
    assert problem(looked_up()) == (0, f"byte {len(looked_up())}", "lost")
    assert problem("") == (0, "byte 0", "lost")


RECORDED = [
    (version, name)
    for version in ("2.6.0", "2.10.0", "2.13.0", "2.15.0")
    for name in ("bypass_custom_pass", "bypass_custom_pass_fx", "bypass_freezing")
    if (RECORDINGS / version / f"{name}.tar.xz").exists()
]


def events(trace: Path) -> Iterator[dict[str, object]]:
    """The payload of every chromium event, read as plainly as can be."""
    for log in trace.iterdir():
        lines = log.read_text(errors="replace").split("\n")
        for at, line in enumerate(lines):
            if '] {"chromium_event"' in line:
                end = next(n for n in range(at + 1, len(lines)) if not lines[n].startswith("\t"))
                yield json.loads("\n".join(text[1:] for text in lines[at + 1 : end]))


@pytest.mark.parametrize(("version", "name"), RECORDED)
def test_a_bypassed_compile_took_as_long_as_its_event(version: str, name: str, recording: Recording) -> None:
    trace = recording(version, name) / "trace"
    said = []
    for one in events(trace):
        args = one.get("args") or {}
        assert isinstance(args, dict)
        if (one["name"], one["ph"], args.get("cache_state")) == ("inductor_compile", "E", "bypass"):
            said.append(round(float(str(one["ts"])) * 1000) - args["cache_event_time"])
    lookups = cachescope.read(trace).lookups
    found = lookups[(lookups["cache"] == "fxgraph") & (lookups["outcome"] == "bypass")]
    assert sorted(found["time_taken_ns"].tolist()) == pytest.approx(sorted(said), abs=1000)
    assert len(said) == len(found) > 0
