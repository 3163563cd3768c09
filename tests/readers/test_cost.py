"""No input is worth more than five times what as many bytes of a real recording cost, in processor time and in memory. Files made to fill a memory or to take for ever end in a row of `problems`, and what is around is read."""

import gc
import gzip
import json
import random
import re
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest

import cachescope
from cachescope.keys.device_text import device_parts, kernel_device_parts
from cachescope.readers.directory.generated_files import defined_kernels, kernels_of
from tests.conftest import Recording
from tests.programs import python

pytestmark = pytest.mark.slow

SIZE = 1 << 20
TIMES = 5
# Below them noise and what is the same for every file, as the space into which a snapshot is read, weigh more than the input.
FLOOR_S = 1
# Of a busy machine, which counts more processor time for the same: as many times a loop of half a million turns, 0.04 s on a quiet one.
# A row for each of half a million lines needs as much as 40 of them; what grows with the square of its length, hours.
FLOOR_LOOPS = 64
# How often is tried, since what else runs on a machine comes and goes.
TRIES = 3
FLOOR_BYTES = 72 << 20

PREFIX = b"V1115 10:00:00.000000 1234 torch/_logging/structured.py:22] "
TRACE = PREFIX + b'{"str": ["a", 1]}\n'
TEXT = b"V1115 10:00:00.000000 1234 torch/_inductor/codecache.py:1] "
KEY = b"f" + b"a" * 51
MISS = b'{"artifact": {"name": "fx_graph_cache_miss", "encoding": "json"}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, "has_payload": "0"}\n\t'
CRI = b"2026-11-15T10:00:00.0Z stdout "
OF_A_COMPILE = b', "frame_id": 0, "frame_compile_id": 0, "attempt": 0}\n'
VLLM = b"INFO 11-15 10:00:00 [backends.py:1] "


def filled(line: bytes, head: bytes = b"") -> bytes:
    return head + line * ((SIZE - len(head)) // len(line))


def numbered(line: bytes, head: bytes = b"") -> bytes:
    """Lines that are all different."""
    return head + b"".join(line % number for number in range((SIZE - len(head)) // (len(line) + 4)))


def noise(alphabet: bytes, head: bytes = b"") -> bytes:
    return head + bytes(random.Random(1).choices(alphabet, k=SIZE - len(head)))


LOGS: dict[str, Callable[[], bytes]] = {
    "empty lines": lambda: filled(b"\n", TRACE),
    "empty lines between records": lambda: filled(TRACE + b"\n" * 100),
    "short lines": lambda: filled(b"x\n", TRACE),
    "different short lines": lambda: numbered(b"%d\n", TRACE),
    "lines that may be records": lambda: filled(b"V\n", TRACE),
    "lines of both": lambda: filled(b"V\nx\n", TRACE),
    "lines of payload": lambda: filled(b"\t\n", TRACE),
    "short payloads": lambda: filled(b"x\n\ty\n", TRACE),
    "prefixes alone": lambda: filled(PREFIX + b"\n"),
    "records without JSON": lambda: filled(PREFIX + b'{"artifact": {"name": "fx_graph_cache_miss"\n'),
    "different records without JSON": lambda: numbered(PREFIX + b'{"compilation_metrics": %d\n', TRACE),
    "lookups without payload": lambda: filled(PREFIX + MISS + b"\n"),
    "lookups with empty payload": lambda: filled(PREFIX + MISS + b"{}\n"),
    "lookups of many keys": lambda: numbered(PREFIX + MISS + b'{"key": "f%051d"}\n'),
    "one lookup of short details": lambda: (
        TRACE + PREFIX + MISS + b'{"key": "%b", "components": [' % KEY + b'"[a] b: c", ' * (SIZE // 12) + b'""]}\n'
    ),
    "one lookup of details that are none": lambda: TRACE + PREFIX + MISS + b'{"components": [' + b'"",' * (SIZE // 3) + b'""]}\n',
    "one lookup of numbers": lambda: TRACE + PREFIX + MISS + b'{"components": [' + b"1," * (SIZE // 2) + b"1]}\n",
    "nested lists": lambda: TRACE + PREFIX + MISS + b"[" * SIZE + b"\n",
    "strings": lambda: filled(PREFIX + b'{"str": ["", 0]}\n'),
    "starts of compiles": lambda: filled(PREFIX + b'{"dynamo_start": {"stack": []}, "frame_id": 0, "frame_compile_id": 0}\n'),
    "starts of many compiles": lambda: numbered(PREFIX + b'{"dynamo_start": {"stack": []}, "frame_id": %d, "frame_compile_id": 0}\n'),
    "events": lambda: filled(PREFIX + b'{"chromium_event": {}}\n\t{"name": "a", "ts": 1, "ph": "B", "args": {}}\n'),
    "damaged events": lambda: filled(PREFIX + b'{"chromium_event": {}}\n\t{\n'),
    "a line without end": lambda: TRACE + b"x" * SIZE,
    "zeros": lambda: TRACE + bytes(SIZE),
    "noise": lambda: noise(bytes(range(256)), TRACE),
    "noise of few letters": lambda: noise(b'VIW\t\n]{}" :1', TRACE),
    "tabs and line ends": lambda: noise(b"\t\n", TRACE),
    "carriage returns": lambda: filled(b"\r\n", TRACE.replace(b"\n", b"\r\n")),
    "UTF-16": lambda: b"\xff\xfe" + filled(b"x\n", TRACE).decode()[: SIZE // 2].encode("utf-16-le"),
    "a text log of empty messages": lambda: filled(TEXT + b"\n"),
    "a text log of short lines": lambda: filled(b"x\n", TEXT + b"x\n"),
    "a text log of details": lambda: filled(TEXT + b"[0/0] [a] b: c\n"),
    "a text log of keys": lambda: numbered(TEXT + b"[0/0] FX graph cache hash details for key f%051d:\n"),
    "a text log of processes": lambda: numbered(b"V1115 10:00:00.000000 %d torch/_inductor/codecache.py:1] x\n"),
    "a text log of errors": lambda: filled(TEXT + b"[0/0] fx graph cache miss for key\n"),
    "a text log of bypasses": lambda: numbered(TEXT + b"[%d/0] Bypassing FX Graph Cache because 'x'\n"),
    "a text log of guards": lambda: numbered(
        TEXT + b"[0/0] fx graph cache miss for key f%051d\n" + TEXT + b"[1/0] fx graph cache key x post-load guards: y\n"
    ),
    "a text log of short streams": lambda: numbered(b"[x%d]:WARNING:torch._inductor.codecache:x\n[y]: z\n"),
    "symbols of one compile": lambda: numbered(
        PREFIX + b'{"create_symbol": {"symbol": "s%d", "vr": "[2, int_oo]", "user_stack": []}' + OF_A_COMPILE
        + PREFIX + b'{"guard_added_fast": {"expr": "Eq(s1, s2)", "user_stack": []}' + OF_A_COMPILE
        + PREFIX + b'{"symbolic_shape_specialization": {"symbol": "s1", "value": "5"}' + OF_A_COMPILE,
        PREFIX + b'{"dynamo_start": {"stack": []}' + OF_A_COMPILE,
    ),
    "reasons of compiles that do not begin": lambda: numbered(
        PREFIX + b'{"artifact": {"name": "recompile_reasons", "encoding": "json"}, "frame_id": %d, "frame_compile_id": 1, "has_payload": "0"}\n\tx\n'
        + PREFIX + b'{"dynamo_start": {"stack": []}' + OF_A_COMPILE
    ),
    "compiles without end": lambda: numbered(
        PREFIX + MISS.replace(b"fx_graph", b"aotautograd").replace(b'"frame_id": 0', b'"frame_id": %d') + b"{}\n"
        + PREFIX + b'{"compilation_metrics": {}' + OF_A_COMPILE
    ),
    "events of many threads": lambda: numbered(
        PREFIX + b'{"chromium_event": {}}\n\t{"name": "entire_backward_compile", "ts": 1, "ph": "B", "args": {"compile_id": "%d/1"}}\n',
        TRACE + PREFIX + b'{"chromium_event": {}}\n\t{"name": "dynamo", "ts": 1, "ph": "B", "args": {"compile_id": "0/0"}}\n',
    ),
    "docker lines": lambda: filled(b'{"log":"\\n"}\n', b'{"log":"' + TEXT + b'"}\n'),
    "lines of containers": lambda: filled(CRI + b"F \n", CRI + b"F " + TRACE),
    "parts of lines": lambda: filled(CRI + b"P x\n", CRI + b"F " + TRACE),
    "a vLLM log": lambda: filled(VLLM + b"x\n"),
    "starts of vLLM": lambda: filled(VLLM + b"Dynamo bytecode transform time: 1.00 s\n"),
    "a dump of empty lines": lambda: filled(b"\n", b'{"key": "pt2:a", "value": {}}\n'),
    "a dump of empty objects": lambda: filled(b"{}\n", b'{"key": "pt2:a", "value": {}}\n'),
    "a dump of small values": lambda: numbered(b'{"key": "pt2:fx-graph-v1::f%051d:c1", "value": {}}\n'),
    "a snapshot of numbers": lambda: b'{"cachescope_snapshot": 1, "x": [' + b"1," * (SIZE // 2) + b"1]}",
    "a snapshot of settings": lambda: json.dumps({"cachescope_snapshot": 1, "settings": {str(n): "" for n in range(SIZE // 12)}}).encode(),
    "an entry of small numbers": lambda: b"\x80\x04(" + b"K\x01" * (SIZE // 2) + b"l.",
    "an entry of empty lists": lambda: b"\x80\x04(" + b"]" * SIZE + b"l.",
    "an entry of marks": lambda: b"\x80\x04" + b"(" * SIZE + b".",
}  # fmt: skip


def floor_s() -> float:
    """The seconds that any form may cost, here and now."""
    start_s = time.process_time()
    turns: dict[int, int] = {}
    for turn in range(1 << 19):
        turns[turn & 7] = turns.get(turn & 7, 0) + 1
    return max(FLOOR_S, FLOOR_LOOPS * (time.process_time() - start_s))


def read(path: Path) -> None:
    """Read a source, and make its frames."""
    try:
        scope = cachescope.read(path)
    except cachescope.SourceError:
        return
    for name in ("lookups", "causes", "entries", "compiles", "phases", "problems"):
        getattr(scope, name)


def seconds_of(path: Path) -> float:
    """The seconds of the processor that it takes."""
    # What other tests left in memory is no cost of the input, but garbage collection goes through it.
    gc.collect()
    gc.freeze()
    start_s = time.process_time()
    read(path)
    seconds = time.process_time() - start_s
    gc.unfreeze()
    return seconds


def bytes_of(path: Path) -> int:
    """The most bytes of Python's that it takes at once."""
    tracemalloc.start()
    read(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def check(path: Path, ordinary: tuple[float, int]) -> None:
    """Fail if reading it costs more than the limits."""
    tries = []
    while len(tries) < TRIES and not any(seconds <= limit for seconds, limit in tries):
        tries.append((seconds_of(path), max(TIMES * ordinary[0], floor_s())))
    assert any(seconds <= limit for seconds, limit in tries), tries
    assert bytes_of(path) <= max(TIMES * ordinary[1], FLOOR_BYTES)


@pytest.fixture(scope="module")
def ordinary(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> tuple[float, int]:
    """What as many bytes of a real trace cost, each of whose processes is another."""
    log = min((recording("2.13.0", "config_flip") / "trace").iterdir()).read_bytes()
    path = tmp_path_factory.mktemp("ordinary") / "log"
    hours = (log.replace(b" 1", b" %d" % (n % 9 + 1), 1) for n in range(SIZE // len(log) + 1))
    path.write_bytes(b"".join(hours)[:SIZE])
    read(path)
    return seconds_of(path), bytes_of(path)


@pytest.mark.parametrize("form", LOGS)
def test_no_bytes_cost_more_than_five_times_real_ones(
    form: str, ordinary: tuple[float, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHESCOPE_NO_INDEX", "1")
    path = tmp_path / (f"fxgraph/aa/{KEY.decode()}/entry" if form.startswith("an entry") else "log")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(LOGS[form]())
    check(tmp_path, ordinary)


@pytest.mark.parametrize("form", ["empty lines", "short lines", "noise of few letters"])
def test_packed_it_costs_what_it_unpacks_to(form: str, ordinary: tuple[float, int], tmp_path: Path) -> None:
    (tmp_path / "log.gz").write_bytes(gzip.compress(LOGS[form]()))
    check(tmp_path, ordinary)


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
    count, peak, *kinds = python(EXPLAIN, path).stdout.split()
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
