"""Logs read by workers give the frames that reading them one after the other gives, whatever happens to the workers."""

import os
import pickle
import random
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import cachescope
from cachescope.readers.logs import many_logs as logs
from cachescope.readers.logs.byte_source import open_bytes
from cachescope.readers.reading import Reading
from cachescope.readers.sources import logs_in, read_sources
from cachescope.scope import Scope
from tests.readers.logs import growing
from tests.readers.logs.growing import assert_same_scopes, tour
from tests.recordings import Recorded

pytestmark = pytest.mark.slow  # processes, Dask and every recording


class OutOfOrder(Executor):
    """Runs nothing until a result is asked for, and then everything there is, the last first or in any order."""

    def __init__(self, seed: int = 0) -> None:
        self.chance = random.Random(seed)
        self.waiting: list[tuple[LateFuture, Callable[..., Any], tuple[Any, ...]]] = []
        self.ran: list[str] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        future = LateFuture(self)
        self.waiting.append((future, function, args))
        return future

    def run_all(self) -> None:
        self.chance.shuffle(self.waiting)
        for future, function, args in self.waiting:
            if not future.set_running_or_notify_cancel():
                continue
            self.ran += [path for _, path in args[0]]
            try:
                # Across a process boundary, as it were.
                future.set_result(pickle.loads(pickle.dumps(function(*args))))
            except Exception as error:
                future.set_exception(pickle.loads(pickle.dumps(error)))
        self.waiting.clear()


class LateFuture(Future[Any]):
    def __init__(self, executor: OutOfOrder) -> None:
        super().__init__()
        self.executor = executor

    def result(self, timeout: float | None = None) -> Any:
        if not self.done():
            self.executor.run_all()
        return super().result(timeout)


FRAMES = ("runs", "lookups", "entries", "contexts", "problems", "kernels", "autotune")


def assert_same(a: Scope, b: Scope) -> None:
    assert_same_scopes(a, b, FRAMES)
    one, other = a.tables.hash_details, b.tables.hash_details
    assert one.fields == other.fields
    assert one.hash_codes.tolist() == other.hash_codes.tolist()


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Traces of one job, and among them a cache directory, as a launcher leaves them."""
    for number, data in enumerate(tour()):
        (tmp_path / f"{number}_rank_{number}.log").write_bytes(data)
    (tmp_path / "3_cache").symlink_to(cachescope.sample("entry_truncated") / "cache")
    return tmp_path


def read_with(paths: list[str], executor: Executor | None) -> Reading:
    reading = Reading()
    read_sources(paths, reading, executor=executor)
    return reading


def check_workers_tell_what_one_process_reads(recorded: Recorded) -> None:
    paths = [path for _, path in logs_in([str(recorded.folder)], Reading())]
    alone = read_with(paths, None)
    assert alone.processes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "_TASK_BYTES", 1)
        growing.assert_same(read_with(paths, OutOfOrder()), alone)
        patch.setattr(logs, "_TASK_BYTES", 10**9)
        patch.setattr(logs, "_PART_BYTES", 50_000)
        executor = OutOfOrder()
        growing.assert_same(read_with(paths, executor), alone)
    traces = [path for path in paths if Path(path).parent.name == "trace"]
    if any(Path(path).stat().st_size > 400_000 for path in traces):
        assert len(executor.ran) > len(set(executor.ran))


@pytest.mark.parametrize("seed", range(3))
def test_the_order_in_which_workers_finish_changes_nothing(seed: int, many: Path) -> None:
    sources = (*sorted(many.glob("*.log")), cachescope.sample("entry_truncated"))
    executor = OutOfOrder(seed)
    assert_same(cachescope.read(*sources), cachescope.read(*sources, executor=executor))
    logs_of_sample = [path for kind in ("trace", "text") for path in (sources[-1] / kind).iterdir()]
    assert len(executor.ran) == len(sources) - 1 + len(logs_of_sample)


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield pool


def test_processes_give_the_same_frames(many: Path, processes: ProcessPoolExecutor) -> None:
    assert_same(cachescope.read(many), cachescope.read(many, executor=processes))


def test_a_killed_process_loses_no_log(many: Path) -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        os.kill(pool.submit(os.getpid).result(), signal.SIGKILL)
        with pytest.warns(RuntimeWarning, match="a worker was lost"):
            scope = cachescope.read(many, executor=pool)
    assert_same(cachescope.read(many), scope)


@pytest.fixture
def divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One trace, of which each worker gets a part, between a small one and a text log."""
    traces = tour()
    (tmp_path / "1_large.log").write_bytes(b"".join(traces))
    (tmp_path / "0_small.log").write_bytes(min(traces, key=len)[:60_000])
    text = next((cachescope.sample("entry_truncated") / "text").iterdir())
    (tmp_path / "2_text.log").write_bytes(open_bytes(str(text)).read())
    monkeypatch.setattr(logs, "_PART_BYTES", 500_000)
    return tmp_path


def test_one_trace_is_read_by_processes(divided: Path, processes: ProcessPoolExecutor) -> None:
    assert_same(cachescope.read(divided), cachescope.read(divided, executor=processes))


@pytest.fixture(scope="module", name="dask")
def running_dask() -> Iterator[Any]:
    """Dask with two workers on this machine."""
    from distributed import Client, LocalCluster

    quiet: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    # distributed/nanny.py, `WorkerProcess.start`, sets OMP_NUM_THREADS=1 in the process that starts workers, and
    # the number of threads is part of torch's keys.
    with patch.dict(os.environ), LocalCluster(n_workers=2, **quiet) as cluster, Client(cluster) as client:
        yield client


def test_dask_gives_the_same_frames(many: Path, dask: Any) -> None:
    assert_same(cachescope.read(many), cachescope.read(many, executor=dask.get_executor()))


def test_a_killed_worker_of_dask_loses_no_log(many: Path, dask: Any) -> None:
    worker, *_ = dask.run(os.getpid).values()

    def kill(path: str, done: int, total: int) -> None:
        if done == 0:  # all logs are with the workers by then
            os.kill(worker, signal.SIGKILL)

    assert_same(cachescope.read(many), cachescope.read(many, executor=dask.get_executor(), progress=kill))
    assert worker not in dask.run(os.getpid).values()


def test_progress_tells_of_every_source_in_order(many: Path) -> None:
    def told(executor: Executor | None) -> list[tuple[str, int, int]]:
        seen: list[tuple[str, int, int]] = []
        cachescope.read(many, executor=executor, progress=lambda *what: seen.append(what))
        return seen

    assert told(OutOfOrder()) == told(None)
