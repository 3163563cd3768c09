"""The ranks of a job read by one process, by two, by Dask, and again from the index: the same frames, and in what time.

``CACHESCOPE_FLEET_RANKS=1000`` sets another number of ranks than 24; a thousand have 1.3 GB. Every rank's trace is
the real one of the recording `four_graphs_fx` that compiled all four, with its own pid, rank, clock, and one setting
that holds the rank: so every key is its own, and nothing of it could be taken from another rank but the texts that
are equal.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import active_children, get_context
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.keys.hashing import entry_name
from cachescope.readers.index import kept_logs as index
from cachescope.readers.index import log_state
from cachescope.scope import Scope
from tests.conftest import Recording
from tests.dask_cluster import dask_client

RANKS = int(os.environ.get("CACHESCOPE_FLEET_RANKS", "24"))
LEAK = "inductor_config[cpp.threads]"
WORKERS = 2

_PREFIX = re.compile(rb"^([VIWEC]\d{4} \d\d:\d\d:\d\d\.)(\d{3})(\d{3}) (\d+) ", re.MULTILINE)
_LEAK = re.compile(rb"\[[a-z2-7]{51}\] " + re.escape(LEAK).encode() + rb': [^"\\]*')
_KEY = re.compile(rb"\b([af])[a-z2-7]{51}\b")


def rank_log(trace: bytes, rank: int) -> bytes:
    """What this rank would have written."""
    own = b"%d" % rank
    leaked = b"[%s] %s: %s" % (entry_name(b"leak" + own).encode(), LEAK.encode(), own)
    data = _PREFIX.sub(rb"\g<1>%03d\g<3> %d " % (rank % 1000, 50_000 + rank), trace)
    data = _LEAK.sub(leaked.replace(b"\\", rb"\\"), data)
    return _KEY.sub(lambda key: key[1] + entry_name(key[0] + own).encode(), data)


@pytest.fixture(scope="module")
def fleet(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    # Who looked up first compiled, and so wrote the most.
    traces = (recording("2.13.0", "four_graphs_fx") / "trace").iterdir()
    trace = max(traces, key=lambda path: path.stat().st_size).read_bytes()
    for rank in range(RANKS):
        (folder / f"dedicated_log_torch_trace_rank_{rank:05}_.log").write_bytes(rank_log(trace, rank))
    return folder


@pytest.fixture(scope="module")
def alone(fleet: Path) -> Scope:
    return cachescope.read(fleet, index=False)


def assert_same(a: Scope, b: Scope) -> None:
    for name in ("runs", "lookups", "problems"):
        pd.testing.assert_frame_equal(getattr(a.tables, name).frame, getattr(b.tables, name).frame)
    one, other = a.tables.hash_details, b.tables.hash_details
    assert one.components == other.components
    assert all(map((lambda x, y: x.tobytes() == y.tobytes()), one.sets, other.sets))


@contextmanager
def one_process() -> Iterator[tuple[None, int | None]]:
    yield None, None


@contextmanager
def two_processes() -> Iterator[tuple[Executor, int | None]]:
    others = set(active_children())
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
        # Started and with everything imported, as on a cluster.
        (pid, *_) = pool.map(_ready, range(2 * WORKERS))
        yield pool, pid
        # Once in a while Python's pool waits forever for what is left after a worker was killed.
        for child in set(active_children()) - others:
            child.kill()


@contextmanager
def dask() -> Iterator[tuple[Executor, int | None]]:
    with dask_client() as client:
        (pid, *_) = client.run(_ready, 0).values()
        yield client.get_executor(), pid


def _ready(_: int) -> int:
    cachescope.read(cachescope.sample("config_flip"), index=False)
    time.sleep(0.2)
    return os.getpid()


Workers = Callable[[], AbstractContextManager[tuple[Executor | None, int | None]]]


@pytest.mark.benchmark(group="fleet")
@pytest.mark.parametrize("workers", [one_process, two_processes, dask])
def test_ranks_read(workers: Workers, fleet: Path, alone: Scope, benchmark) -> None:  # type: ignore[no-untyped-def]
    benchmark.extra_info["ranks"] = RANKS
    benchmark.extra_info["megabytes"] = sum(path.stat().st_size for path in fleet.iterdir()) / 1e6
    with workers() as (executor, _):
        told = benchmark.pedantic(
            lambda: cachescope.read(fleet, executor=executor, index=False), rounds=3, iterations=1
        )
    assert_same(alone, told)


@pytest.mark.benchmark(group="fleet")
def test_ranks_read_again(fleet: Path, alone: Scope, tmp_path: Path, monkeypatch, benchmark) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.delenv(index.OFF)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(log_state, "_LEAST_BYTES", 1)
    monkeypatch.setattr(log_state, "_QUIET_NS", 0)
    cachescope.read(fleet)
    told = benchmark.pedantic(lambda: cachescope.read(fleet), rounds=3, iterations=1)
    assert_same(alone, told)


@pytest.mark.benchmark(group="fleet")
@pytest.mark.filterwarnings("ignore:a worker was lost")
@pytest.mark.parametrize("workers", [two_processes, dask])
def test_ranks_read_while_a_worker_is_killed(workers: Workers, fleet: Path, alone: Scope, benchmark) -> None:  # type: ignore[no-untyped-def]
    def kill(path: str, done: int, total: int) -> None:
        if done == total // 4 and pid is not None:
            os.kill(pid, signal.SIGKILL)

    with workers() as (executor, pid):
        told = benchmark.pedantic(
            lambda: cachescope.read(fleet, executor=executor, index=False, progress=kill),
            rounds=1,
            iterations=1,
        )
    assert_same(alone, told)
    assert len(told.runs) == RANKS


@pytest.mark.benchmark(group="fleet")
def test_the_leaking_field_is_named(alone: Scope, benchmark) -> None:  # type: ignore[no-untyped-def]
    found = benchmark.pedantic(lambda: alone.with_baseline("auto").rank_differences, rounds=1, iterations=1)
    (row,) = found.to_dict("records")
    assert row["field"] == LEAK
    assert row["ranks"] == tuple(range(RANKS))
    assert (row["values"], row["ranks_compared"], row["has_majority"]) == (RANKS, RANKS, False)
