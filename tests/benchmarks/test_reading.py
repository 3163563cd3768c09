"""Reading logs beside what else goes through the same bytes: grep, a line loop with orjson, tlparse.

``CACHESCOPE_LOG_MEGABYTES`` sets other sizes than 10 (``100,10,1000``), of which the first is the one that is
packed and opened again; tlparse is left out above 1,000. The logs are those of `made_logs`: a lookup for each
0.23 MB, of which its own record is 0.1 MB, as a small model makes them; with larger ones more of the bytes say
nothing of a cache. Readers in Python are timed in this process, without their start, and programs with theirs. What each costs in memory is the peak of a process
of its own, less what the same process needs for its imports.
"""

import gzip
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from benchmarks.made_logs import MadeLog

import cachescope
from cachescope.readers.index import kept_logs
from cachescope.readers.logs.byte_source import Pieces
from cachescope.readers.logs.trace_log import TRACE
from cachescope.readers.logs.trace_records import BLOCK_BYTES, read_records
from cachescope.readers.reading import Reading
from tests.conftest import Recording
from tests.programs import ran

Logs = Callable[[str, int], Path]

MEGABYTES = [int(size) for size in os.environ.get("CACHESCOPE_LOG_MEGABYTES", "10").split(",")]
_MOST_FOR_TLPARSE = 1000


@pytest.fixture(scope="module")
def logs(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logs]:
    """``logs(kind, megabytes)``: a trace of so many megabytes, or the text log of the same processes."""
    folder = tmp_path_factory.mktemp("made-logs")
    tour = recording("2.13.0", "tour")
    processes: dict[int, int] = {}

    def make(kind: str, megabytes: int) -> Path:
        path = folder / f"{kind}-{megabytes}.log"
        if not path.exists():
            made = MadeLog((tour / kind).iterdir())
            if kind == "text":
                make("trace", megabytes)
            with path.open("wb") as out:
                if kind == "trace":
                    processes[megabytes] = made.write(out, megabytes * 1_000_000)
                else:
                    made.write_processes(out, processes[megabytes])
        return path

    yield make
    shutil.rmtree(folder)


def read_lines(path: Path) -> int:
    """What anybody would write: each line looked at, each artifact of a cache parsed."""
    count = 0
    with path.open("rb") as log:
        for line in log:
            if line[:1] == b"V" and b'{"artifact"' in line and b"graph_cache_" in line:
                count += orjson.loads(line[line.index(b"{") :])["artifact"]["name"] != ""
                orjson.loads(next(log)[1:])
    return count


def run(*command: str | Path) -> str:
    return ran(command).stdout


def run_tlparse(path: Path, folder: Path) -> None:
    beside = Path(sys.executable).with_name("tlparse")
    program = str(beside) if beside.exists() else shutil.which("tlparse")
    if program is None:
        pytest.skip("tlparse is not installed")
    run(program, "--no-browser", "--plain-text", "--overwrite", "-o", folder, path)


READERS: dict[str, Callable[[Path, Path], object]] = {
    "cachescope": lambda log, _: cachescope.read(log),
    "cachescope with misses": lambda log, _: cachescope.read(log).misses,
    "grep": lambda log, _: run("grep", "-c", "-a", "fx_graph_cache", log),
    "line loop": lambda log, _: read_lines(log),
    "tlparse": run_tlparse,
}


@pytest.mark.parametrize("megabytes", MEGABYTES)
@pytest.mark.parametrize("reader", READERS)
def test_trace(reader: str, megabytes: int, logs: Logs, tmp_path: Path, benchmark: Any) -> None:
    if reader == "tlparse" and megabytes > _MOST_FOR_TLPARSE:
        pytest.skip(f"tlparse is measured up to {_MOST_FOR_TLPARSE} MB")
    path = logs("trace", megabytes)
    benchmark.group = f"trace of {megabytes} MB"
    benchmark.extra_info["megabytes"] = path.stat().st_size / 1e6
    measure(benchmark, lambda: READERS[reader](path, tmp_path / "report"), megabytes)


def read_blocks(path: Path) -> None:
    space = memoryview(bytearray(BLOCK_BYTES))
    with path.open("rb") as log:
        while log.readinto(space):
            pass


def find_records(path: Path) -> None:
    with path.open("rb") as log:
        for _ in read_records(Pieces(log)):
            pass


def choose_records(path: Path) -> None:
    with path.open("rb") as log:
        for _, records in read_records(Pieces(log)):
            for _ in records.spans():
                pass


STAGES: dict[str, Callable[[Path], object]] = {
    "bytes": read_blocks,
    "and records": find_records,
    "and which may tell": choose_records,
    "and lookups": lambda log: TRACE.read(str(log), Reading()),
    "and frames": lambda log: cachescope.read(log, index=False),
}


@pytest.mark.parametrize("stage", STAGES)
def test_stages_of_a_trace(stage: str, logs: Logs, benchmark: Any) -> None:
    """Where the time of reading goes: each stage with those before it."""
    path = logs("trace", MEGABYTES[0])
    benchmark.group = f"stages of a trace of {MEGABYTES[0]} MB"
    benchmark.extra_info["megabytes"] = path.stat().st_size / 1e6
    measure(benchmark, lambda: STAGES[stage](path), MEGABYTES[0])


def start(_: int) -> int:
    """In a process of a pool: import what reading takes, as on a cluster, and wait for the others."""
    cachescope.read(cachescope.sample("config_flip"), index=False)
    time.sleep(0.2)
    return os.getpid()


def of_process(pid: int, name: str) -> int:
    """A number of ``/proc/PID/status``: memory in kB."""
    found = re.search(rf"{name}:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1])


def cpu_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("megabytes", [max(MEGABYTES)])
@pytest.mark.parametrize("processes", [1, 2])
def test_one_trace(processes: int, megabytes: int, logs: Logs, benchmark: Any) -> None:
    """One log read by one process, and by two that have started; on a busy machine the time of the processors tells."""
    path = logs("trace", megabytes)
    benchmark.group = f"one trace of {megabytes} MB"
    benchmark.extra_info["megabytes"] = path.stat().st_size / 1e6
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        executor = pool if processes > 1 else None
        pids = {os.getpid(), *(pool.map(start, range(8)) if executor else ())}
        start(0)
        memory = {pid: of_process(pid, "VmRSS") for pid in pids}
        before = {pid: cpu_s(pid) for pid in pids}
        rounds = 5
        scope = benchmark.pedantic(
            lambda: cachescope.read(path, index=False, executor=executor), rounds=rounds
        )
        benchmark.extra_info["cpu_s"] = sum(cpu_s(pid) - before[pid] for pid in pids) / rounds
        assert len(scope.lookups) == len(cachescope.read(path, index=False).lookups) > 0
        if benchmark.stats is None:  # run as a test only
            return
        benchmark.extra_info["best_s"] = benchmark.stats.stats.min
        # What this process took for other logs before is no part of it.
        workers = pids - {os.getpid()}
        grown = sum(max(of_process(pid, "VmHWM") - memory[pid], 0) for pid in workers)
        benchmark.extra_info["workers_peak_megabytes"] = grown * 1024 / 1e6


@pytest.mark.parametrize("megabytes", [size for size in MEGABYTES if size <= _MOST_FOR_TLPARSE])
@pytest.mark.parametrize("kind", ["trace", "text"])
def test_text_log_beside_the_trace_of_the_same_run(
    kind: str, megabytes: int, logs: Logs, benchmark: Any
) -> None:
    path = logs(kind, megabytes)
    benchmark.group = f"text log beside the trace of {megabytes} MB"
    benchmark.extra_info["megabytes"] = path.stat().st_size / 1e6
    scope = measure(benchmark, lambda: cachescope.read(path), megabytes)
    benchmark.extra_info["lookups"] = len(scope.tables.lookups.frame)
    traced = cachescope.read(logs("trace", megabytes)).tables.lookups.frame
    assert len(scope.tables.lookups.frame) == len(traced)


@pytest.mark.benchmark(group="compressed")
@pytest.mark.parametrize("packing", ["plain", "gz", "zst"])
def test_compressed(packing: str, logs: Logs, tmp_path: Path, benchmark: Any) -> None:
    plain = logs("trace", MEGABYTES[0])
    path = plain if packing == "plain" else tmp_path / f"log.{packing}"
    if packing == "gz":
        path.write_bytes(gzip.compress(plain.read_bytes(), compresslevel=1))
    elif packing == "zst":
        path.write_bytes(pa.compress(plain.read_bytes(), codec="zstd", asbytes=True))
    benchmark.extra_info["megabytes"] = plain.stat().st_size / 1e6
    measure(benchmark, lambda: cachescope.read(path), MEGABYTES[0])


@pytest.mark.benchmark(group="opened again")
@pytest.mark.parametrize("kind", ["trace", "text"])
@pytest.mark.parametrize("state", ["read anew", "unchanged", "grown"])
def test_opened_again(
    state: str, kind: str, logs: Logs, recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    benchmark: Any,
) -> None:  # fmt: skip
    monkeypatch.delenv("CACHESCOPE_NO_INDEX")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(kept_logs, "_QUIET_NS", -(10**18))
    path = Path(shutil.copy(logs(kind, MEGABYTES[0]), tmp_path))
    more = min((recording("2.13.0", "tour") / kind).iterdir()).read_bytes()

    def written_on() -> None:
        with path.open("ab") as log:
            log.write(more if state == "grown" else b"")

    cachescope.read(path)
    benchmark.extra_info["megabytes"] = path.stat().st_size / 1e6
    benchmark.pedantic(lambda: cachescope.read(path, index=state != "read anew"), setup=written_on, rounds=5)


def measure(benchmark: Any, work: Callable[[], Any], megabytes: int) -> Any:
    """The first time the file comes from the disk and modules are imported."""
    many = megabytes <= 100
    return benchmark.pedantic(work, rounds=5 if many else 1, warmup_rounds=1 if many else 0)


_PEAK = r"""
import re, sys
import numpy, orjson, pandas, pyarrow, cachescope.scope.scope, cachescope.readers.logs.trace_log, cachescope.readers.logs.text_log
from cachescope.readers.reading import Reading
from cachescope.readers.sources import read_sources
def peak():
    # Not ru_maxrss: that one begins with what the process had before it became this program.
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\s*(\d+) kB", status.read())[1])
before = peak()
read_sources(sys.argv[1:], Reading())
print(peak() - before)
"""


@pytest.mark.benchmark(group="memory, in a process of its own")
@pytest.mark.parametrize("megabytes", MEGABYTES)
@pytest.mark.parametrize("kind", ["trace", "text"])
def test_memory_is_what_distinct_texts_need(kind: str, megabytes: int, logs: Logs, benchmark: Any) -> None:
    path = logs(kind, megabytes)
    told = benchmark.pedantic(lambda: run(sys.executable, "-c", _PEAK, path), rounds=1)
    grown_bytes = 1024 * int(told)
    benchmark.extra_info |= {"log_megabytes": path.stat().st_size / 1e6, "peak_megabytes": grown_bytes / 1e6}
    assert grown_bytes < 50e6 + path.stat().st_size // 20
