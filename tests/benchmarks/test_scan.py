"""Scanning a directory, beside `find` printing the same fields, in one run.

The tree is made by hand in torch's layout: names of the right shape and files of a few bytes, for it is names,
sizes and times that are measured. The aim is 1.5 times ``find``; `times_find` says what it is.
``CACHESCOPE_SCAN_FILES`` sets another number than 20,000.

Opening entries, beside torch's own ``pickle.loads`` of the same bytes with the real classes.

Every round opens each of some sixty different entries once, as reading a directory does. The aim is 1.5
times ``pickle.loads``; `times_pickle_loads` says what it is. Nobody hashes there; what ``read_cache_dir``
takes for that is measured by itself.
"""

import base64
import gc
import os
import pickle
import re
import shutil
import subprocess
import tracemalloc
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter

import pandas as pd
import pytest

from cachescope.columns import frame_of
from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.hashing import entry_name
from cachescope.readers.assemble import entry_rows
from cachescope.readers.directory.cache_dir import CacheWalk, read_cache_dir
from cachescope.readers.pickles.inert_pickle import Limits, loads_inert
from cachescope.readers.pickles.pickle_check import check_program
from cachescope.readers.reading import Reading
from tests.conftest import Recording

FILES = int(os.environ.get("CACHESCOPE_SCAN_FILES", "20000"))
ROUNDS = 9


def name_of(number: int) -> str:
    return base64.b32encode(sha256(str(number).encode()).digest()).decode().lower()[:51]


def places(number: int) -> Iterator[str]:
    """Of ten files: three of generated code and their lock, an FX and an AOTAutograd entry, four of Triton."""
    name = name_of(number)
    yield from (f"{name[:2]}/c{name}{ending}" for ending in (".py", ".main.cpp", ".main.so"))
    yield f"locks/c{name}.lock"
    yield f"fxgraph/{name[:2]}/f{name}/{name}"
    yield f"aotautograd/a{name}/{name}"
    yield from (f"triton/0/{name.upper()}A/kernel.{e}" for e in ("json", "ttir", "ptx", "cubin"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("scan")
    for number in range(FILES // 10):
        for place in places(number):
            path = root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"{}")
    return root


def find(tree: Path) -> float:
    """Seconds that ``find`` takes."""
    began = perf_counter()
    command = ["find", str(tree), "-printf", "%p %s %T@\n"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - began


def walk_and_stat(tree: Path) -> int:
    """No more than has to be done in Python: folders are listed, files are asked for size and time."""
    waiting, size = [str(tree)], 0
    while waiting:
        for item in os.scandir(waiting.pop()):
            if item.is_dir(follow_symlinks=False):
                waiting.append(item.path)
            else:
                size += item.stat(follow_symlinks=False).st_size
    return size


def scan(tree: Path) -> CacheWalk:
    walk = CacheWalk(str(tree), Reading())
    walk.scan()
    return walk


def scan_to_frame(tree: Path) -> pd.DataFrame:
    """On to the frame of all files, of which none is opened."""
    return frame_of(entry_rows(scan(tree).files), EntryRow)


@pytest.mark.benchmark(group="scan")
@pytest.mark.parametrize("way", [walk_and_stat, scan, scan_to_frame])
def test_scan(way: Callable[[Path], object], tree: Path, benchmark) -> None:  # type: ignore[no-untyped-def]
    times: list[float] = []  # of `find`, each beside a round: what else runs slows both
    kept: list[object] = []

    def find_first() -> None:
        kept.clear()  # nothing of the round before is in the way
        times.append(find(tree))

    benchmark.pedantic(lambda: kept.append(way(tree)), setup=find_first, rounds=ROUNDS, warmup_rounds=1)
    if benchmark.stats is None:  # run as a test only
        return
    times_find = benchmark.stats.stats.median / median(times)
    benchmark.extra_info |= {"files": FILES, "times_find": times_find}
    print(f"{way.__name__}: {FILES} files, {times_find:.2f} times find")


SCENARIOS = [
    "tour", "cold_warm", "config_flip", "combined", "inputs", "training", "four_graphs", "dynamic_guards",
    "graph_relu_tanh", "in_process", "cache_key_tag", "four_processes", "grad_mode", "rename_argument",
    "three_changes", "new_graph",
]  # fmt: skip
WAYS = ["pickle.loads", "loads_inert", "the check alone", "read_cache_dir", "content hash"]
ROUNDS_OF_ENTRIES = 31


@pytest.fixture(scope="module", params=["fxgraph", "aotautograd"])
def cache(
    request: pytest.FixtureRequest, recording: Recording, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The entries of one kind from many recordings, in one directory."""
    pytest.importorskip("torch._inductor.codecache")
    pytest.importorskip("torch._functorch._aot_autograd.autograd_cache")
    root = tmp_path_factory.mktemp("entries")
    for scenario in SCENARIOS:
        folder = recording("2.13.0", scenario) / "cache" / request.param
        if folder.is_dir():
            shutil.copytree(folder, root / request.param, dirs_exist_ok=True)
    for path in [path for path in root.rglob("*") if path.is_file()]:
        try:
            pickle.loads(path.read_bytes())
        except Exception:  # recorded damaged, or with a kernel that is not here
            path.unlink()
    return root


@pytest.mark.benchmark(group="entries")
@pytest.mark.parametrize("way", WAYS)
def test_open_entries(  # type: ignore[no-untyped-def]
    way: str, cache: Path, request: pytest.FixtureRequest, benchmark
) -> None:
    entries = [path.read_bytes() for path in sorted(cache.rglob("*")) if path.is_file()]
    (kind,) = (path.name for path in cache.iterdir())

    kept: list[object] = []

    def read() -> int:
        if way == "read_cache_dir":
            reading = Reading()
            read_cache_dir(str(cache), reading)
            kept[:] = reading.entries
        else:
            kept[:] = [open_one(data) for data in entries]
        return len(kept)

    known: dict[str, Callable[[bytes], object]] = {
        "pickle.loads": pickle.loads,
        "content hash": entry_name,
        "the check alone": lambda data: check_program(data, Limits()),
    }
    open_one = known.get(way, loads_inert)

    times: list[float] = []  # of `pickle.loads`, each beside a round: what else runs slows both

    def pickle_loads_first() -> None:
        kept.clear()
        for _ in range(2):  # the second in memory that the first gave back, and with all it needs at hand
            gc.collect()
            began = perf_counter()
            values = [pickle.loads(data) for data in entries]
            taken = perf_counter() - began
            del values
        times.append(taken)
        read()  # so that the way itself is no worse off
        kept.clear()
        gc.collect()

    # Each pays for the garbage that it makes, and none for looking through all that torch loaded.
    gc.freeze()
    request.addfinalizer(gc.unfreeze)
    count = benchmark.pedantic(read, setup=pickle_loads_first, rounds=ROUNDS_OF_ENTRIES, warmup_rounds=2)
    assert count >= len(entries)
    if benchmark.stats is None:  # run as a test only
        return
    taken = benchmark.stats.stats.median
    times_pickle_loads = taken / median(times)
    benchmark.extra_info |= {
        "kind": kind,
        "entries": len(entries),
        "megabytes": sum(map(len, entries)) / 1e6,
        "microseconds_per_entry": taken / len(entries) * 1e6,
        "times_pickle_loads": times_pickle_loads,
    }
    print(f"{kind}: {way}: {taken / len(entries) * 1e6:.0f} us an entry, {times_pickle_loads:.2f} times")


# What opening many entries keeps: the distinct texts, and nothing of the files. A quarter is read before, so that what is
# taken once does not count.
IN_MEMORY = int(os.environ.get("CACHESCOPE_MEMORY_FILES", "400"))
BYTES_A_FILE = 8 << 10
"""Codes of some 650 hash details, the line that no other entry has, and the row."""


def write_entries(entry: Path, root: Path, count: int) -> int:
    """Write entries of one key that differ in one hash detail; the bytes of one."""
    key = entry.parent.name
    folder = root / "fxgraph" / key[1:3] / key
    folder.mkdir(parents=True)
    data = entry.read_bytes()
    detail = re.search(rb"\[([a-z2-7]{51})\] inductor_config\[cpp\.", data)
    for number in range(count):
        own = entry_name(str(number).encode()).encode()
        changed = data[: detail.start(1)] + own + data[detail.end(1) :]
        (folder / entry_name(changed)).write_bytes(changed)
    return len(data)


def peak_of_reading(root: Path, count: int) -> int:
    tracemalloc.start()
    try:
        reading = Reading()
        read_cache_dir(str(root), reading)
        assert len(reading.entries) == len(reading.details.sets) == count
        assert not reading.problems
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["fxgraph"])
def test_memory_does_not_grow_with_bytes_of_files(kind: str, recording: Recording, tmp_path: Path) -> None:
    entry = next(path for path in (recording("2.13.0", "tour") / "cache" / kind).rglob("*") if path.is_file())
    size = write_entries(entry, tmp_path / "few", IN_MEMORY // 4)
    write_entries(entry, tmp_path / "many", IN_MEMORY)
    peak_of_reading(tmp_path / "few", IN_MEMORY // 4)  # what is learned and imported once
    few, many = (
        peak_of_reading(tmp_path / "few", IN_MEMORY // 4),
        peak_of_reading(tmp_path / "many", IN_MEMORY),
    )
    grown = (many - few) / (IN_MEMORY - IN_MEMORY // 4)
    print(
        f"{grown / 1024:.1f} KiB a file of {size / 1024:.0f} KiB; peak {many / 2**20:.1f} MiB for {IN_MEMORY}"
    )
    assert grown < BYTES_A_FILE
