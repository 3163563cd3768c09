"""Opening entries, beside torch's own ``pickle.loads`` of the same bytes with the real classes.

Every round opens each of some sixty different entries once, as reading a directory does. The aim is 1.5
times ``pickle.loads``; `times_pickle_loads` says what it is. Nobody hashes there; what ``read_cache_dir``
takes for that is measured by itself.
"""

import gc
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest

from cachescope.keys.hashing import entry_name
from cachescope.readers.directory.cache_dir import read_cache_dir
from cachescope.readers.pickles.inert_pickle import Limits, loads_inert
from cachescope.readers.pickles.pickle_check import check_program
from cachescope.readers.reading import Reading
from tests.conftest import Recording

SCENARIOS = [
    "tour", "cold_warm", "config_flip", "combined", "inputs", "training", "four_graphs", "dynamic_guards",
    "graph_relu_tanh", "in_process", "cache_key_tag", "four_processes", "grad_mode", "rename_argument",
    "three_changes", "new_graph",
]  # fmt: skip
WAYS = ["pickle.loads", "loads_inert", "the check alone", "read_cache_dir", "content hash"]
ROUNDS = 31


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
    count = benchmark.pedantic(read, setup=pickle_loads_first, rounds=ROUNDS, warmup_rounds=2)
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
