"""Reading logs beside what else goes through the same bytes: grep, a line loop with orjson, tlparse.

``CACHESCOPE_LOG_MEGABYTES`` sets other sizes than 10 (``10,100,1000``); tlparse is left out above 1,000. The
logs are those of `made_logs`. What each costs in memory is the peak of a process of its own, less what the
same process needs for its imports.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from benchmarks.made_logs import MadeLog

import cachescope

Recording = Callable[[str, str], Path]

MEGABYTES = [int(size) for size in os.environ.get("CACHESCOPE_LOG_MEGABYTES", "10").split(",")]
_MOST_FOR_TLPARSE = 1000

_LINE_LOOP = """
import sys, orjson
count = 0
with open(sys.argv[1], "rb") as log:
    for line in log:
        if line[:1] == b"V" and b'{"artifact"' in line and b"graph_cache_" in line:
            count += orjson.loads(line[line.index(b"{"):])["artifact"]["name"] != ""
            orjson.loads(next(log)[1:])
print(count)
"""
_READ = "import sys, cachescope; s = cachescope.read(sys.argv[1]); print(len(s.lookups), len(s.misses))"


@pytest.fixture(scope="module")
def logs(
    recording: Recording, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, int], Path]]:
    """``logs(kind, megabytes)``: a trace of so many megabytes, or the text log of the same processes."""
    folder = tmp_path_factory.mktemp("made-logs")
    tour = recording("2.13.0", "tour")
    processes: dict[int, int] = {}

    def make(kind: str, megabytes: int) -> Path:
        path = folder / f"{kind}-{megabytes}.log"
        if not path.exists():
            made = MadeLog((tour / kind.split(".")[0]).iterdir())
            with path.open("wb") as out:
                if kind == "trace":
                    processes[megabytes] = made.write(out, megabytes * 1_000_000)
                else:
                    make("trace", megabytes)
                    made.write_processes(out, processes[megabytes])
        return path

    yield make
    shutil.rmtree(folder)


def _run(*command: str | Path) -> str:
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def _tlparse() -> str:
    beside = Path(sys.executable).with_name("tlparse")
    found = str(beside) if beside.exists() else shutil.which("tlparse")
    if found is None:
        pytest.skip("tlparse is not installed")
    return found


@pytest.mark.benchmark(group="trace")
@pytest.mark.parametrize("megabytes", MEGABYTES)
@pytest.mark.parametrize("reader", ["cachescope", "grep", "line loop", "tlparse"])
def test_trace(
    reader: str, megabytes: int, logs: Callable[[str, int], Path], tmp_path: Path, benchmark
) -> None:  # type: ignore[no-untyped-def]
    if reader == "tlparse" and megabytes > _MOST_FOR_TLPARSE:
        pytest.skip(f"tlparse is measured up to {_MOST_FOR_TLPARSE} MB")
    path = logs("trace", megabytes)
    benchmark.extra_info["megabytes"] = path.stat().st_size / 1e6
    run: dict[str, Callable[[], object]] = {
        "cachescope": lambda: _run(sys.executable, "-c", _READ, path),
        "grep": lambda: _run("grep", "-c", "-a", "fx_graph_cache", path),
        "line loop": lambda: _run(sys.executable, "-c", _LINE_LOOP, path),
        "tlparse": lambda: _run(
            _tlparse(), "--no-browser", "--plain-text", "--overwrite", "-o", tmp_path / "t", path
        ),
    }
    if reader == "tlparse":
        _tlparse()
    benchmark.pedantic(run[reader], rounds=3 if megabytes <= 100 else 1)


@pytest.mark.benchmark(group="text")
@pytest.mark.parametrize("megabytes", [size for size in MEGABYTES if size <= _MOST_FOR_TLPARSE])
@pytest.mark.parametrize("kind", ["trace", "text"])
def test_text_log_beside_the_trace_of_the_same_run(
    kind: str,
    megabytes: int,
    logs: Callable[[str, int], Path],
    benchmark,  # type: ignore[no-untyped-def]
) -> None:
    path = logs(kind, megabytes)
    benchmark.extra_info["megabytes"] = path.stat().st_size / 1e6
    scope = benchmark.pedantic(cachescope.read, (path,), rounds=3)
    assert len(scope.lookups) == len(cachescope.read(logs("trace", megabytes)).lookups)


@pytest.mark.benchmark(group="compressed")
@pytest.mark.parametrize("packing", ["plain", "gz", "zst"])
def test_compressed(packing: str, logs: Callable[[str, int], Path], tmp_path: Path, benchmark) -> None:  # type: ignore[no-untyped-def]
    plain = logs("trace", MEGABYTES[0])
    path = plain if packing == "plain" else tmp_path / f"log.{packing}"
    if packing == "gz":
        path.write_bytes(gzip.compress(plain.read_bytes(), compresslevel=1))
    elif packing == "zst":
        path.write_bytes(pa.compress(plain.read_bytes(), codec="zstd", asbytes=True))
    benchmark.extra_info["megabytes"] = plain.stat().st_size / 1e6
    benchmark.pedantic(cachescope.read, (path,), rounds=3)


_PEAK = """
import resource, sys
import numpy, orjson, pandas, pyarrow, cachescope.scope.scope, cachescope.readers.trace_log, cachescope.readers.text_log
from cachescope.readers.reading import Reading
from cachescope.readers.sources import read_sources
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
read_sources(sys.argv[1:], Reading())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("megabytes", MEGABYTES)
@pytest.mark.parametrize("kind", ["trace", "text"])
def test_memory_is_what_the_distinct_texts_need(
    kind: str, megabytes: int, logs: Callable[[str, int], Path]
) -> None:
    path = logs(kind, megabytes)
    grown_bytes = 1024 * int(_run(sys.executable, "-c", _PEAK, path))
    print(f"{kind} of {path.stat().st_size / 1e6:.0f} MB: {grown_bytes / 1e6:.0f} MB more than the imports")
    assert grown_bytes < 50e6 + path.stat().st_size // 20
