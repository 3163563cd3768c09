"""Files made to fill a memory or to take for ever end in a row of `problems`, and what is around is read."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest

import cachescope
from cachescope.keys.device_text import device_parts, kernel_device_parts
from cachescope.readers.directory.generated_files import defined_kernels, kernels_of
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
