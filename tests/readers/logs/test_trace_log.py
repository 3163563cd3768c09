"""Trace logs: any bytes give rows or problems, and damage costs only what it hit."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachescope.errors import RecordError, SourceError
from cachescope.readers.kinds import looks_like_trace_log
from cachescope.readers.logs import trace_records
from cachescope.readers.logs.trace_log import read_trace_log
from cachescope.readers.reading import Reading
from tests.conftest import Recording


@pytest.fixture(scope="module")
def trace(recording: Recording) -> bytes:
    paths = sorted((recording("2.13.0", "four_graphs") / "trace").iterdir(), key=lambda p: p.stat().st_size)
    return paths[-1].read_bytes()


def read(data: bytes, tmp_path: Path, name: str = "t.log", strict: bool = False) -> Reading:
    path = tmp_path / name
    path.write_bytes(data)
    reading = Reading(strict=strict)
    read_trace_log(str(path), reading)
    return reading


def told(reading: Reading) -> list[tuple[object, ...]]:
    return [
        (lookup.cache, lookup.cache_key, lookup.outcome, lookup.time, lookup.detail_set)
        for process in reading.processes
        for lookup in process.lookups
    ]


def test_gzip_and_zstandard_read_like_plain(trace: bytes, tmp_path: Path) -> None:
    plain = read(trace, tmp_path)
    assert len(told(plain)) == 8
    assert told(read(gzip.compress(trace), tmp_path, "a.gz")) == told(plain)
    zstandard = pa.compress(trace, codec="zstd", asbytes=True)
    assert told(read(zstandard, tmp_path, "a.zst")) == told(plain)


@pytest.mark.parametrize("block_bytes", [1000, 70_000, 1_000_000])
def test_blocks_of_any_size_give_the_same(
    trace: bytes, tmp_path: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = told(read(trace, tmp_path))
    monkeypatch.setattr(trace_records, "BLOCK_BYTES", block_bytes)
    assert told(read(trace, tmp_path)) == whole


def test_truncation_anywhere_keeps_the_records_before_it(trace: bytes, tmp_path: Path) -> None:
    whole = read(trace, tmp_path)
    starts = [trace.find(b'"key": "' + str(row[1]).encode()) for row in told(whole)]
    for share in (0.2, 0.5, 0.8, 0.97):
        cut = int(len(trace) * share)
        reading = read(trace[:cut], tmp_path)
        kept = {row[1] for row in told(reading)}
        # A lookup is told once its artifact is whole; it follows an event with the same key and payload.
        sure = {row[1] for row, at in zip(told(whole), starts, strict=True) if 0 <= at < cut - 300_000}
        assert sure <= kept
        assert [p.kind for p in reading.problems if p.kind == "truncated"]


def test_a_payload_that_is_no_json_costs_one_lookup(trace: bytes, tmp_path: Path) -> None:
    at = trace.index(b"\t", trace.index(b'{"artifact": {"name": "fx_graph_cache_miss"'))
    damaged = trace[: at + 1] + b"}" + trace[at + 2 :]
    reading = read(damaged, tmp_path)
    assert len(told(reading)) == len(told(read(trace, tmp_path))) - 1
    assert [problem.kind for problem in reading.problems] == ["truncated"]
    assert reading.problems[0].where.startswith("byte ")
    with pytest.raises(RecordError, match="fx_graph_cache"):
        read(damaged, tmp_path, strict=True)


def test_a_payload_whose_checksum_holds_and_is_no_json_says_so(trace: bytes, tmp_path: Path) -> None:
    import hashlib

    prefix = trace[: trace.index(b"{")]
    digest = hashlib.md5(b"no json", usedforsecurity=False).hexdigest()
    header = {"artifact": {"name": "fx_graph_cache_hit", "encoding": "json"}, "has_payload": digest}
    record = prefix + json.dumps(header).encode() + b"\n\tno json\n"
    reading = read(record, tmp_path)
    assert [problem.kind for problem in reading.problems] == ["not_json"]


def test_strange_lines_are_problems_and_the_rest_is_read(trace: bytes, tmp_path: Path) -> None:
    lines = trace.split(b"\n")
    at = next(i for i, line in enumerate(lines) if i > 50 and line.startswith(b"V"))
    lines.insert(at, b"Segmentation fault \x1b[31m\x00")
    reading = read(b"\n".join(lines), tmp_path)
    assert told(reading) == told(read(trace, tmp_path))
    assert [problem.kind for problem in reading.problems] == ["not_a_record"]


def test_a_text_inside_a_payload_is_no_record(trace: bytes, tmp_path: Path) -> None:
    fake = b'\tV1120 10:00:00.000000 1 torch/x.py:1] {"artifact": {"name": "fx_graph_cache_hit"}}\n'
    at = trace.index(b"\n\t{") + 1
    reading = read(trace[:at] + fake + trace[at:], tmp_path)
    assert len(told(reading)) == len(told(read(trace, tmp_path)))


def test_the_epoch_of_the_records_comes_from_the_trace_itself(trace: bytes, tmp_path: Path) -> None:
    reading = read(trace, tmp_path)
    process = reading.processes[0]
    stamp = float(trace.split(b'"ts": ', 1)[1].split(b",", 1)[0])
    assert abs(process.start_time_ns / 1000 - stamp) < 5e6


@pytest.mark.parametrize("data", [b"", b"\x00\xff" * 1000, b"hello\n", b"V1120 nonsense"])
def test_what_is_no_trace_is_refused_in_one_line(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no record of torch's trace log"):
        read(data, tmp_path)


def test_a_file_that_is_not_there_is_refused_in_one_line() -> None:
    with pytest.raises(SourceError, match="no such file"):
        read_trace_log("/nowhere/at/all.log", Reading())


@pytest.mark.slow
@pytest.mark.parametrize("tail", [b"", b"\xff" * 5000])
def test_damaged_compression_keeps_what_came_before(tail: bytes, trace: bytes, tmp_path: Path) -> None:
    packed = gzip.compress(trace * 3)
    reading = read(packed[: len(packed) // 2] + tail, tmp_path)
    assert told(reading)
    assert "damaged_compression" in {problem.kind for problem in reading.problems}


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=400))
def test_any_bytes_give_rows_or_problems(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    header = b'V1120 15:24:13.250000 3327 torch/_dynamo/utils.py:2350] {"chromium_event": {}}\n'
    reading = read(header + data, tmp_path_factory.mktemp("any"))
    assert len(reading.processes) == 1


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, 1_500_000), junk=st.binary(min_size=1, max_size=30))
def test_damage_at_any_place_raises_nothing(
    trace: bytes, at: int, junk: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    at %= len(trace)
    try:
        reading = read(trace[:at] + junk + trace[at + len(junk) :], tmp_path_factory.mktemp("mutated"))
    except SourceError:
        assert at < 100
        return
    assert len(told(reading)) >= 6


def test_a_record_at_the_start_of_a_line_makes_a_trace(trace: bytes) -> None:
    assert looks_like_trace_log(trace[:200])
    assert looks_like_trace_log(b"x\n" + trace[:200])
    assert not looks_like_trace_log(b"x" + trace[:200])
    assert not looks_like_trace_log(b"")
