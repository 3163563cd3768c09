"""Files made to fill a memory or to take for ever end in a row of `problems`, and what is around is read."""

from __future__ import annotations

import io
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

import cachescope
from cachescope.keys.device_text import device_parts, kernel_device_parts
from cachescope.readers.directory.generated_files import defined_kernels, kernels_of
from cachescope.readers.logs import log_lines, trace_records
from cachescope.readers.logs.byte_source import Pieces
from tests.conftest import Recording

pytestmark = pytest.mark.slow

MIB = b"a" * (1 << 20)
MEMORY_BYTES = 500_000_000
EXPLAIN = """
import re, sys, cachescope
scope = cachescope.read(sys.argv[1])
# What getrusage tells begins with the peak of whoever started this process.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
print(len(scope.lookups), int(peak[1]) * 1024, *sorted(set(scope.problems["kind"])))
"""


@pytest.fixture(scope="module")
def trace(recording: Recording) -> bytes:
    return min((recording("2.13.0", "config_flip") / "trace").iterdir()).read_bytes()


@pytest.fixture(scope="module")
def text(recording: Recording) -> bytes:
    return min((recording("2.13.0", "config_flip") / "text").iterdir()).read_bytes()


def artifact(trace: bytes) -> bytes:
    """The head of an artifact of a missed lookup, of another compile."""
    prefix = trace[: trace.index(b"] ") + 2]
    about = b'{"artifact": {"name": "fx_graph_cache_miss", "encoding": "json"}, "frame_id": 7, "frame_compile_id": 0, "attempt": 0, "has_payload": "%s"}\n'
    return prefix + about % (b"0" * 32)


def write(path: Path, parts: Iterable[bytes]) -> Path:
    if path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            for part in parts:
                stream.write(part)
    else:
        path.write_bytes(b"".join(parts))
    return path


def lookups(path: Path) -> list[tuple[str, str | None, str]]:
    found = cachescope.read(path).lookups
    return list(zip(found["cache"], found["cache_key"], found["outcome"], strict=True))


def test_a_record_that_is_too_long_is_told_and_the_others_are_read(trace: bytes, tmp_path: Path) -> None:
    true = lookups(write(tmp_path / "true.log", [trace]))
    long = [artifact(trace), b'\t{"key": "', *[MIB] * 40, b'"}\n']
    later = re.sub(rb"(?m)^(V\d{4}) \d\d:", rb"\1 23:", trace)
    assert later != trace
    path = write(tmp_path / "long.log", [trace, *long, later])
    assert sorted(lookups(path)) == sorted(true * 2)
    problems = cachescope.read(path).problems
    assert problems[["kind", "where"]].values.tolist() == [["limit", f"byte {len(trace)}"]]
    with pytest.raises(cachescope.RecordError, match="too long"):
        cachescope.read(path, strict=True)


def test_a_line_that_is_too_long_is_told_and_the_others_are_read(text: bytes, tmp_path: Path) -> None:
    true = lookups(write(tmp_path / "true.log", [text]))
    other_process = re.sub(rb"(?m)^([VIWEC]\d{4} [\d:.]+) \d+ ", rb"\1 4000000 ", text)
    assert other_process != text
    path = write(tmp_path / "long.log", [text, b": ", *[MIB] * 17, b"\n", other_process])
    assert sorted(lookups(path)) == sorted(true * 2)
    problems, number = cachescope.read(path).problems, text.count(b"\n") + 1
    assert problems[["kind", "where"]].values.tolist() == [["limit", f"line {number}"]]


def test_details_that_are_too_long_are_not_used(text: bytes, tmp_path: Path) -> None:
    """A message of 40 MiB is not kept, and what would be half of a key's fields is none of them."""
    lines = text.split(b"\n")
    at = next(n for n, line in enumerate(lines) if b"hash details for key" in line)
    prefix = lines[at][: lines[at].index(b"] ") + 2]
    if b"] [" in lines[at]:
        prefix = lines[at][: re.search(rb"\] \[[^]]*\] ", lines[at]).end()]  # type: ignore[union-attr]
    more = (prefix + b"goes on " + b"b" * 1000 + b"\n") * 40_000
    head, tail = (b"\n".join(part) for part in (lines[: at + 2], lines[at + 2 :]))
    scope = cachescope.read(write(tmp_path / "long.log", [head, b"\n", more, tail]))
    assert "limit" in set(scope.problems["kind"])
    assert scope.lookups["details"].iloc[0] == "incomplete"


@pytest.mark.parametrize(
    "bomb",
    {
        "payload": lambda trace, text: [trace, artifact(trace), b'\t{"key": "', *[MIB] * 900, b'"}\n', trace],
        "lists": lambda trace, text: [trace, artifact(trace), b"\t", *[b"[[],[]]," * 131072] * 900, b"\n"],
        "line": lambda trace, text: [text, *[MIB] * 200, b"\n", text],
        "prefixed line": lambda trace, text: [text, text[: text.index(b"] ") + 2], *[MIB] * 200, b"\n", text],
        "blank lines": lambda trace, text: [text, *[b"\n" * (1 << 20)] * 900],
        "short lines": lambda trace, text: [text, *[b"x\n" * (1 << 19)] * 900],
    }.items(),
    ids=lambda bomb: bomb[0],
)
def test_a_bomb_stops_with_a_row(
    bomb: tuple[str, Callable[[bytes, bytes], list[bytes]]], trace: bytes, text: bytes, tmp_path: Path
) -> None:
    path = write(tmp_path / "bomb.log.zst", bomb[1](trace, text))
    assert path.stat().st_size < 1 << 20
    done = subprocess.run(
        [sys.executable, "-c", EXPLAIN, path], capture_output=True, text=True, check=True, timeout=300
    )
    count, peak, *kinds = done.stdout.split()
    whole = text if bomb[1](trace, text)[0] == text else trace
    assert int(count) >= len(lookups(write(tmp_path / "true.log", [whole])))
    assert int(peak) < MEMORY_BYTES
    assert "limit" in kinds


def test_a_log_packed_in_itself_over_and_over_is_no_endless_one(text: bytes, tmp_path: Path) -> None:
    ended = text.replace(b"\n", b"\r" * 5000 + b"\n", 1).replace(b"\n", b"\r\n")
    path = write(tmp_path / "cr.log", [ended])
    assert lookups(path) == lookups(write(tmp_path / "true.log", [text]))


def test_lines_are_those_of_a_plain_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "_MOST_BYTES_OF_A_LINE", 100)
    monkeypatch.setattr(log_lines, "_READ_BYTES", 32)
    chance = random.Random(1)
    for _ in range(2000):
        sizes = [
            chance.choice([0, 1, 5, 50, 99, 100, 101, 102, 133, 300, 1000])
            for _ in range(chance.randrange(6))
        ]
        data = b"".join(
            bytes([chance.choice(b"ab:")]) * size + chance.choice([b"\n", b"\n", b""]) for size in sizes
        )
        want = data.split(b"\n")
        want = want[:-1] if not want[-1] else want
        assert taken(data) == (
            [line[:100] for line in want],
            [n for n, line in enumerate(want, 1) if len(line) > 100],
        )
        marked = [n for n, line in enumerate(want, 1) if b":" in line]
        assert set(marked) <= set(passed_to(data))


def taken(data: bytes) -> tuple[list[bytes], list[int]]:
    lines = log_lines.Lines(Pieces(io.BufferedReader(io.BytesIO(data))))  # type: ignore[arg-type]
    found = list(iter(lines.take, None))
    assert lines.bytes == len(data)
    return [line for line in found if line is not None], lines.too_long


def passed_to(data: bytes) -> list[int]:
    """The numbers of the lines that are taken where those without a colon are passed over."""
    lines = log_lines.Lines(Pieces(io.BufferedReader(io.BytesIO(data))))  # type: ignore[arg-type]
    found = []
    while lines.pass_over(b":") or lines.take() is not None:
        found.append(lines.number)
    return found


def test_records_are_those_of_the_log_whatever_their_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_records, "_MOST_BYTES_OF_A_RECORD", 300)
    monkeypatch.setattr(trace_records, "BLOCK_BYTES", 64)
    chance = random.Random(1)
    left_out = 0
    for _ in range(2000):
        records = [made_record(chance) for _ in range(chance.randrange(7))]
        found: set[tuple[int, bytes]] = set()
        too_long = set()
        stream = io.BufferedReader(io.BytesIO(b"".join(records)))  # type: ignore[arg-type]
        for offset, block in trace_records.read_records(Pieces(stream)):
            too_long |= {offset} if block.is_too_long else set()
            for start, following in pairwise((*block.starts, block.end)):
                found.add((offset + start, bytes(block.buffer[start:following]).removesuffix(b"\n")))
        places = [sum(map(len, records[:n])) for n in range(len(records))]
        for place, record in zip(places, records, strict=True):
            assert (place, record[:-1]) in found or (place in too_long and len(record) > 300)
        assert len(found) + len(too_long) == len(records)
        left_out += len(too_long)
    assert left_out > 100


def made_record(chance: random.Random) -> bytes:
    lines = [chance.choice([b"a", b"V"]) * chance.choice([1, 5, 50, 100, 300, 700, 2000])]
    lines += [b"\t" + b"p" * chance.choice([0, 1, 50, 64, 127, 1000]) for _ in range(chance.randrange(4))]
    return b"\n".join(lines) + b"\n"


def test_a_long_line_of_spaces_is_no_kernel() -> None:
    line = " " * 500_000 + "x\n"
    assert kernels_of(line) == []
    assert defined_kernels(line + "x" * 500_000 + " = " + " " * 500_000) == ()


def test_device_texts_of_any_number_and_length_are_read() -> None:
    assert device_parts("_CudaDeviceProperties(name='a', " + "k=[" * 100_000 + ")") == {}
    assert device_parts("_CudaDeviceProperties(name='a', " + "major=[" * 100_000 + ")") == {"name": "a"}
    assert device_parts("', major=" * 100_000) == {}
    many = "".join(f"DeviceProperties(type='cuda', index={n})\n" for n in range(30_000))
    assert len(kernel_device_parts(many)) == 30_000


def test_a_pipe_is_refused_in_words() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"V1120 nonsense\n")
    os.close(writing)
    try:
        with pytest.raises(cachescope.SourceError, match="a pipe; write it to a file first"):
            cachescope.read(f"/dev/fd/{reading}")
    finally:
        os.close(reading)
