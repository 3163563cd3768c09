"""Values that no torch writes but a log can hold: a problem says what is wrong, and the rest is read.

The values are put by hand into real records; what torch wrote in their places is known from the record itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.report.as_json import explain_object
from cachescope.report.json_text import json_text
from cachescope.scope import Scope
from tests.conftest import Recording

pytestmark = pytest.mark.sweep  # everything is made of each of a hundred logs

LONG = "9" * 5_000
DEEP = "[" * 100_000 + "]" * 100_000
HALF = "\\ud800"
# As they stand in JSON.
HUGE = [str(1 << 64), str(-(1 << 64)), LONG, "Infinity", "1e400"]
NUMBERS = [*HUGE, "true", "1.5", "NaN", "[1]", "{}", '"7"', HALF]


@pytest.fixture(scope="module")
def trace(recording: Recording) -> bytes:
    traces = (recording("2.13.0", "training") / "trace").iterdir()
    return max(traces, key=lambda path: path.stat().st_size).read_bytes()


@pytest.fixture(scope="module")
def text_log(recording: Recording) -> bytes:
    return (recording("2.13.0", "training") / "text" / "00_cold.log").read_bytes()


@pytest.fixture(scope="module")
def whole_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], Scope]:
    """What a log says as it is, read once."""
    return cache(lambda data: read(data, tmp_path_factory.mktemp("whole")))


def read(data: bytes, folder: Path) -> Scope:
    """What a log says, once everything was made of it that is made of logs."""
    log = folder / "one.log"
    log.write_bytes(data)
    scope = cachescope.read(log)
    for frame in ("runs", "misses", "causes", "contexts", "rank_differences", "false_hits", "devices"):
        getattr(scope, frame)
    json.loads(json_text(explain_object(scope)).encode())
    scope.save(folder / "saved")
    again = cachescope.read(folder / "saved")
    pd.testing.assert_frame_equal(again.tables.lookups.frame, scope.tables.lookups.frame)
    shutil.rmtree(folder / "collected", ignore_errors=True)
    cachescope.collect(log, folder=folder / "collected")
    pd.testing.assert_frame_equal(
        cachescope.read(folder / "collected").tables.lookups.frame, scope.tables.lookups.frame
    )
    return scope


def keys(scope: Scope) -> list[tuple[object, object]]:
    return list(zip(scope.lookups["cache"], scope.lookups["cache_key"], strict=True))


def with_payload(trace: bytes, artifact: str, change: Callable[[dict[str, Any]], str]) -> bytes:
    """The trace with one payload changed, and its checksum with it."""
    match = re.search(
        rb'("name": "%b"[^\n]*"has_payload": ")([0-9a-f]{32})("[^\n]*\n)((?:\t[^\n]*\n?)+)'
        % artifact.encode(),
        trace,
    )
    assert match is not None
    payload = b"\n".join(line[1:] for line in match[4].rstrip(b"\n").split(b"\n"))
    text = change(json.loads(payload)).encode()
    digest = hashlib.md5(text, usedforsecurity=False).hexdigest().encode()
    record = match[1] + digest + match[3] + b"\n".join(b"\t" + line for line in text.split(b"\n")) + b"\n"
    return trace[: match.start()] + record + trace[match.end() :]


def with_value(field: str, value: str) -> Callable[[dict[str, Any]], str]:
    return lambda payload: json.dumps({**payload, field: "@"}).replace('"@"', value)


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize("field", ["time_taken_ns", "cache_event_time", "key", "compile_id", "cache_state"])
def test_a_bad_value_of_a_lookup_costs_no_more_than_itself(
    field: str, value: str, trace: bytes, whole_of: Callable[[bytes], Scope], tmp_path: Path
) -> None:
    if value == HALF:
        value = f'"{HALF}"'
    if value.startswith('"') and field in ("key", "compile_id", "cache_state"):
        pytest.skip("a text where one belongs")
    whole = whole_of(trace)
    scope = read(with_payload(trace, "fx_graph_cache_miss", with_value(field, value)), tmp_path)
    assert len(scope.problems) == len(whole.problems) + 1
    assert field in scope.problems["message"].iloc[-1]
    assert len(scope.lookups) == len(whole.lookups)
    if field != "key":
        assert keys(scope) == keys(whole)


@pytest.mark.parametrize("nanoseconds", [-62_135_596_800, -59_000_000_000, 10**14, 8_000_000_000])
def test_a_time_of_another_age_is_a_bad_value(nanoseconds: int, trace: bytes, tmp_path: Path) -> None:
    value = str(nanoseconds * 10**9)
    scope = read(with_payload(trace, "fx_graph_cache_miss", with_value("cache_event_time", value)), tmp_path)
    assert scope.problems["kind"].tolist() == ["bad_value"]
    assert scope.lookups["time"].notna().all()


@pytest.mark.parametrize("value", ["5", '""', "null", "[]", '"' + "2" * 5_000 + '"', DEEP])
def test_a_version_that_is_none_is_no_version(
    value: str, trace: bytes, whole_of: Callable[[bytes], Scope], tmp_path: Path
) -> None:
    whole = whole_of(trace)
    scope = read(with_payload(trace, "torch_version", with_value("pytorch_version", value)), tmp_path)
    assert keys(scope) == keys(whole)
    if value != "null":
        assert len(scope.problems) == 1
    # The metrics say it, too.
    assert set(scope.runs["torch_version"].dropna()) <= set(whole.runs["torch_version"])


ENVELOPE = '{"artifact": {"name": "fx_graph_cache_miss"}}'


@pytest.mark.parametrize(
    "envelope", ["[1]", "[]", "7", "null", '"text"', ENVELOPE, DEEP, f'{{"{HALF}": 1}}', "{"]
)
def test_an_envelope_of_any_form_costs_its_record(
    envelope: str, trace: bytes, whole_of: Callable[[bytes], Scope], tmp_path: Path
) -> None:
    whole = whole_of(trace)
    at = trace.index(b'{"artifact": {"name": "aotautograd_cache_miss"')
    end = trace.index(b"\n", at)
    # The readers tell what a record is by its first letters.
    head = b'{"artifact": {"name": "aotautograd_cache_miss", "x": ' + envelope.encode()
    scope = read(trace[:at] + head + trace[at + 1 : end] + b"}}" + trace[end:], tmp_path)
    assert len(scope.lookups) >= len(whole.lookups) - 1
    if len(scope.lookups) < len(whole.lookups):
        assert len(scope.problems) >= 1


@pytest.mark.parametrize("value", ["true", "-1", LONG, str(1 << 64), '"0"', "[0]", "1.5"])
@pytest.mark.parametrize("field", ["rank", "frame_id", "frame_compile_id", "attempt", "compiled_autograd_id"])
def test_a_bad_number_of_an_envelope_is_a_problem(
    field: str, value: str, trace: bytes, whole_of: Callable[[bytes], Scope], tmp_path: Path
) -> None:
    whole = whole_of(trace)
    match = re.search(rb'\{"artifact": \{"name": "fx_graph_cache_miss"[^\n]*', trace)
    assert match is not None
    told = json.loads(match[0])
    told.pop(field, None)
    line = (json.dumps(told)[:-1] + f', "{field}": {value}}}').encode()
    scope = read(trace.replace(match[0], line, 1), tmp_path)
    assert keys(scope) == keys(whole)
    assert len(scope.problems) == 1
    assert field in scope.problems["message"].iloc[0]
    if field == "rank":
        assert scope.runs["rank"].isna().all()


@pytest.mark.parametrize("pid", [str(1 << 63), str(1 << 64), LONG])
def test_a_pid_that_no_process_has(
    pid: str, trace: bytes, text_log: bytes, whole_of: Callable[[bytes], Scope], tmp_path: Path
) -> None:
    for name, data in (("trace", trace), ("text", text_log)):
        (tmp_path / name).mkdir()
        whole = whole_of(data)
        changed = re.sub(rb"(?m)^([VIWEC]\d{4} \S+ )(\d+) ", rb"\g<1>%b " % pid.encode(), data)
        scope = read(changed, tmp_path / name)
        assert keys(scope) == keys(whole)
        assert scope.runs["pid"].isna().all()
        assert "pid" in scope.problems["message"].iloc[0]
        assert len(scope.problems) == len(whole.problems) + 1


@pytest.mark.parametrize(
    "moment", ["0000 00:00:00", "0100 12:00:00", "1399 12:00:00", "1231 99:99:99", "0230 12:00:00"]
)
def test_a_moment_that_is_in_no_year(
    moment: str, trace: bytes, text_log: bytes, whole_of: Callable[[bytes], Scope], tmp_path: Path
) -> None:
    for name, data in (("trace", trace), ("text", text_log)):
        (tmp_path / name).mkdir()
        whole = whole_of(data)
        lines = data.split(b"\n")
        torchs = [at for at, line in enumerate(lines) if re.match(rb"[VIWEC]\d{4} ", line)]
        at = torchs[len(torchs) // 2]
        lines[at] = lines[at][:1] + moment.encode() + lines[at][14:]
        scope = read(b"\n".join(lines), tmp_path / name)
        assert len(scope.lookups) >= len(whole.lookups) - 1
        everywhere = re.sub(rb"(?m)^([VIWEC])\d{4} \d\d:\d\d:\d\d", rb"\g<1>" + moment.encode(), data)
        try:
            assert len(read(everywhere, tmp_path / name).lookups) == len(whole.lookups)
        except cachescope.SourceError:
            assert name == "text"


@pytest.mark.parametrize(
    "ts", ["1e30", "0", "0.0.0", ".", "9" * 400, "99999999999999999999", "-62135596800000000"]
)
def test_a_stamp_of_another_age_gives_no_clock(
    ts: str, trace: bytes, whole_of: Callable[[bytes], Scope], tmp_path: Path
) -> None:
    scope = read(re.sub(rb'"ts": [0-9.]+', b'"ts": ' + ts.encode(), trace), tmp_path)
    assert keys(scope) == keys(whole_of(trace))
    assert (scope.runs["start_time"].dt.year > 2000).all()


@pytest.mark.parametrize("status", [LONG, "true", '"1"', str(1 << 64), DEEP, "NaN", f'"{HALF}"'])
def test_a_note_of_a_run_with_a_bad_value(status: str, trace: bytes, tmp_path: Path) -> None:
    note = json.dumps({"cachescope_run": 1, "command": ["python", "x.py"], "exit_status": "@"})
    (tmp_path / "run.json").write_text(note.replace('"@"', status))
    scope = read(trace, tmp_path)
    assert scope.runs["exit_status"].isna().all()
    assert len(scope.problems) == 1
    assert scope.problems["source"].iloc[0].endswith("run.json")


def test_half_a_character_anywhere_in_a_trace(
    trace: bytes, whole_of: Callable[[bytes], Scope], tmp_path: Path
) -> None:
    half = trace.replace(b'"key": "f', b'"key": "\\ud800f').replace(b'"filename": "', b'"filename": "\\udcff')
    half = re.sub(rb'\{"str": \["', rb'{"str": ["\\ud800', half)
    half = re.sub(rb'("components": \["\[\w+\] \w+: )', rb"\1\\udfff", half)
    scope = read(half, tmp_path)
    assert len(scope.lookups) == len(whole_of(trace).lookups)


@pytest.mark.parametrize("seconds", [-(10**9), 10**10, 10**14])
def test_files_of_another_age(seconds: int, recording: Recording, trace: bytes, tmp_path: Path) -> None:
    shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache")
    text = (recording("2.13.0", "cold_warm") / "text" / "00_cold.log").read_bytes()
    (tmp_path / "text.log").write_bytes(text)
    (tmp_path / "trace.log").write_bytes(re.sub(rb'"ts": [0-9.]+', b'"ts": 0', trace))
    for file in tmp_path.rglob("*"):
        os.utime(file, (seconds, seconds))
    scope = cachescope.read(tmp_path)
    scope.save(tmp_path / "saved")
    assert len(scope.entries) == sum(file.is_file() for file in (tmp_path / "cache").rglob("*"))
    assert scope.entries["modified_time"].isna().all()
    assert scope.runs["start_time"].isna().all()
    json_text(explain_object(scope))


def test_a_rank_before_a_line_that_no_process_has(
    text_log: bytes, whole_of: Callable[[bytes], Scope], tmp_path: Path
) -> None:
    whole = whole_of(text_log)
    scope = read(re.sub(rb"(?m)^(?=[VIWEC]\d{4} )", b"[rank%b]:" % LONG.encode(), text_log), tmp_path)
    assert keys(scope) == keys(whole)
    assert scope.runs["rank"].isna().all()
    assert [message for message in scope.problems["message"] if "rank" in message]


@pytest.mark.parametrize(
    "line",
    [f'{{"log": {DEEP}}}', LONG, "[1]", "{", '{"log": 7}', f'{{"log": "{HALF}\\n"}}', f'{{"x": {LONG}}}'],
)
def test_a_line_of_a_container_log_that_is_none(
    line: str, text_log: bytes, whole_of: Callable[[bytes], Scope], tmp_path: Path
) -> None:
    lines = [json.dumps({"log": f"{text}\n", "stream": "stderr"}) for text in text_log.decode().split("\n")]
    lines.insert(1, line)
    scope = read("\n".join(lines).encode(), tmp_path)
    assert keys(scope) == keys(whole_of(text_log))


@pytest.mark.parametrize("number", [LONG, "9" * 30])
def test_compile_ids_with_a_huge_attempt(
    number: str, text_log: bytes, whole_of: Callable[[bytes], Scope], tmp_path: Path
) -> None:
    changed = re.sub(rb"\] \[(\d+/\d+)\]", rb"] [\g<1>_%b]" % number.encode(), text_log)
    assert changed != text_log
    scope = read(changed + changed, tmp_path)
    assert len(scope.lookups) >= len(whole_of(text_log).lookups)
