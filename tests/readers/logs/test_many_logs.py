"""Logs read by workers give the frames that reading them one after the other gives, whatever happens to the workers."""

from __future__ import annotations

import os
import pickle
import random
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.errors import RecordError
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.index.log_tables import LogTables, to_arrow
from cachescope.readers.logs import many_logs as logs
from cachescope.readers.logs.byte_source import open_bytes
from cachescope.readers.logs.trace_log import read_trace_log
from cachescope.readers.reading import Process, Reading
from cachescope.readers.sources import logs_in, read_sources
from cachescope.scope import Scope
from tests.conftest import Recording
from tests.dask_cluster import dask_client
from tests.readers.logs.growing import kept
from tests.recordings import Recorded

__all__ = ["kept"]

pytestmark = pytest.mark.slow  # processes, Dask and every recording

SAMPLE = "tour"


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


class Lost(OutOfOrder):
    """An executor whose every worker is killed."""

    def run_all(self) -> None:
        for future, _, _ in self.waiting:
            future.set_exception(ConnectionError("killed"))
        self.waiting.clear()


def assert_same(a: Scope, b: Scope) -> None:
    for name in ("runs", "lookups", "entries", "contexts", "problems", "kernels", "autotune"):
        # When a directory was read is no part of what it holds.
        one, other = (
            getattr(each.tables, name).frame.drop(columns="seen_time", errors="ignore") for each in (a, b)
        )
        pd.testing.assert_frame_equal(one, other)
    one, other = a.tables.hash_details, b.tables.hash_details
    assert one.components == other.components
    assert one.fields == other.fields
    assert [codes.tolist() for codes in one.sets] == [codes.tolist() for codes in other.sets]
    assert one.hash_codes.tolist() == other.hash_codes.tolist()


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Traces of one job, and among them a cache directory, as a launcher leaves them."""
    for number, path in enumerate(sorted((cachescope.sample(SAMPLE) / "trace").iterdir())):
        with open_bytes(str(path)) as stream:
            (tmp_path / f"{number}_rank_{number}.log").write_bytes(stream.read())
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
        assert_told_the_same(read_with(paths, OutOfOrder()), alone)
        patch.setattr(logs, "_TASK_BYTES", 10**9)
        patch.setattr(logs, "_PART_BYTES", 50_000)
        executor = OutOfOrder()
        assert_told_the_same(read_with(paths, executor), alone)
    traces = [path for path in paths if Path(path).parent.name == "trace"]
    if any(Path(path).stat().st_size > 400_000 for path in traces):
        assert len(executor.ran) > len(set(executor.ran))


def assert_told_the_same(told: Reading, alone: Reading) -> None:
    assert (told.processes, told.problems) == (alone.processes, alone.problems)
    assert told.details.components == alone.details.components
    for one, other in zip(told.details.sets, alone.details.sets, strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_the_order_in_which_workers_finish_changes_nothing(seed: int, many: Path) -> None:
    sources = (*sorted(many.glob("*.log")), cachescope.sample("entry_truncated"))
    executor = OutOfOrder(seed)
    assert_same(cachescope.read(*sources), cachescope.read(*sources, executor=executor))
    logs_of_sample = [path for kind in ("trace", "text") for path in (sources[-1] / kind).iterdir()]
    assert len(executor.ran) == len(sources) - 1 + len(logs_of_sample)


def test_threads_give_the_same_frames(many: Path) -> None:
    with ThreadPoolExecutor(4) as executor:
        assert_same(cachescope.read(many), cachescope.read(many, executor=executor))


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


def test_processes_of_a_pool_send_no_more_than_a_path(
    many: Path, processes: ProcessPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A pool waits for ever for the rest of what a process sent in part before it was killed.
    told = []
    from_worker = logs._from_worker

    def noted(future: Future[Any]) -> Any:
        told.append(from_worker(future))
        return told[-1]

    monkeypatch.setattr(logs, "_from_worker", noted)
    cachescope.read(many, executor=processes)
    assert told
    assert {type(one) for one in told} == {str}
    assert not any(Path(one).parent.exists() for one in told)


@pytest.fixture
def divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One trace, of which each worker gets a part, between a small one and a text log."""
    traces = [open_bytes(str(path)).read() for path in (cachescope.sample(SAMPLE) / "trace").iterdir()]
    (tmp_path / "1_large.log").write_bytes(b"".join(traces))
    (tmp_path / "0_small.log").write_bytes(min(traces, key=len)[:60_000])
    text = next((cachescope.sample("entry_truncated") / "text").iterdir())
    (tmp_path / "2_text.log").write_bytes(open_bytes(str(text)).read())
    monkeypatch.setattr(logs, "_PART_BYTES", 500_000)
    return tmp_path


@pytest.mark.parametrize("seed", range(3))
def test_one_trace_is_read_by_all_workers(seed: int, divided: Path) -> None:
    executor = OutOfOrder(seed)
    assert_same(cachescope.read(divided), cachescope.read(divided, executor=executor))
    assert executor.ran.count(str(divided / "1_large.log")) > 5


def test_of_many_traces_each_is_read_by_one_worker(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_PART_BYTES", 100_000)
    traces = [path for path in many.glob("*.log") if path.stat().st_size > 10**6]
    executor = OutOfOrder()
    cachescope.read(*traces, executor=executor)
    assert len(executor.ran) > len(traces)
    monkeypatch.setattr(logs, "_MANY", 1)
    executor = OutOfOrder()
    cachescope.read(*traces, executor=executor)
    assert sorted(executor.ran) == sorted(map(str, traces))


def test_one_trace_is_read_by_processes(divided: Path, processes: ProcessPoolExecutor) -> None:
    assert_same(cachescope.read(divided), cachescope.read(divided, executor=processes))


def test_parts_whose_workers_are_killed_are_read_in_this_process(divided: Path) -> None:
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        os.kill(pool.submit(os.getpid).result(), signal.SIGKILL)
        with pytest.warns(RuntimeWarning, match="a worker was lost"):
            assert_same(cachescope.read(divided), cachescope.read(divided, executor=pool))


def test_some_parts_are_lost(divided: Path) -> None:
    class SomeLost(OutOfOrder):
        def run_all(self) -> None:
            for future, _, _ in self.waiting[::2]:
                future.set_running_or_notify_cancel()
                future.set_exception(ConnectionError("killed"))
            del self.waiting[::2]
            super().run_all()

    with pytest.warns(RuntimeWarning, match="ConnectionError"):
        assert_same(cachescope.read(divided), cachescope.read(divided, executor=SomeLost()))


def test_what_is_kept_of_a_trace_read_in_parts_is_what_one_process_keeps(
    divided: Path, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    large = divided / "1_large.log"
    data = large.read_bytes()
    large.write_bytes(data[: data.rindex(b"\nV") + 1])
    executor = OutOfOrder()
    cachescope.read(large, executor=executor)
    assert executor.ran
    large.write_bytes(data)
    # Gone on from, by nobody else.
    here = cachescope.read(large, executor=executor)
    assert kept == [str(large)]
    assert_same(here, cachescope.read(large, index=False))


def test_parts_that_have_not_begun_are_cancelled_at_the_first_problem_under_strict(divided: Path) -> None:
    large = divided / "1_large.log"
    data = large.read_bytes()
    large.write_bytes(data[: len(data) // 2] + b"\nwritten by something else\n" + data[len(data) // 2 :])
    executor = OneByOne()
    errors = []
    for one in (None, executor):
        with pytest.raises(RecordError) as caught:
            cachescope.read(large, executor=one, strict=True)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    states = [future.cancelled() for future in executor.futures]
    assert states == sorted(states)
    assert states[0] is False
    assert states[-1] is True


class OneByOne(Executor):
    """Runs what is asked for, when it is asked for."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        class Late(Future[Any]):
            def result(self, timeout: float | None = None) -> Any:
                if self.set_running_or_notify_cancel():
                    self.set_result(function(*args))
                return super().result(timeout)

        self.futures.append(Late())
        return self.futures[-1]


@pytest.fixture(scope="module", name="dask")
def running_dask() -> Iterator[Any]:
    """Dask with two workers on this machine."""
    with dask_client() as client:
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


def test_a_pool_that_is_broken_already_is_done_without(many: Path) -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        lost = pool.submit(os.abort)
        assert lost.exception() is not None
        with pytest.warns(RuntimeWarning, match="a worker was lost"):
            scope = cachescope.read(many, executor=pool)
    assert_same(cachescope.read(many), scope)


def test_workers_that_are_all_lost_lose_no_log(many: Path) -> None:
    with pytest.warns(RuntimeWarning, match="ConnectionError"):
        assert_same(cachescope.read(many), cachescope.read(many, executor=Lost()))


def test_progress_tells_of_every_source_in_order(many: Path) -> None:
    def told(executor: Executor | None) -> list[tuple[str, int, int]]:
        seen: list[tuple[str, int, int]] = []
        cachescope.read(many, executor=executor, progress=lambda *what: seen.append(what))
        return seen

    assert told(OutOfOrder()) == told(None)


def test_few_results_wait_for_their_turn(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_AHEAD", 3)
    monkeypatch.setattr(logs, "_TASK_BYTES", 1)
    most = 0

    class Counting(OutOfOrder):
        def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            nonlocal most
            future = super().submit(function, *args, **kwargs)
            most = max(most, len(self.waiting))
            return future

    assert_same(cachescope.read(many), cachescope.read(many, executor=Counting()))
    assert most == 3


def test_an_interrupt_cancels_what_has_not_begun(many: Path) -> None:
    executor = OutOfOrder()
    futures = []

    def interrupt(path: str, done: int, total: int) -> None:
        futures[:] = [future for future, _, _ in executor.waiting]
        if done == 1:
            raise KeyboardInterrupt

    # Asked for beside the cache directory, which comes first: all logs wait by then.
    with pytest.raises(KeyboardInterrupt):
        cachescope.read(many, executor=executor, progress=interrupt)
    executor.run_all()
    assert all(future.cancelled() for future in futures)


def test_problems_of_workers_are_rows_and_under_strict_the_first_is_raised(many: Path) -> None:
    first, second = sorted(many.glob("*.log"))[2:4]
    first.write_bytes(first.read_bytes()[:-100])
    second.write_bytes(second.read_bytes() + b"written by something else\n")
    alone, told = cachescope.read(many), cachescope.read(many, executor=OutOfOrder())
    assert len(told.problems) >= 2
    assert_same(alone, told)
    errors = []
    for executor in (None, OutOfOrder(), OutOfOrder(seed=1)):
        with pytest.raises(RecordError) as caught:
            cachescope.read(many, executor=executor, strict=True)
        errors.append((str(caught.value), caught.value.source, caught.value.where, caught.value.kind))
    assert errors[0] == errors[1] == errors[2]


def test_a_log_that_is_gone_when_its_turn_comes_is_a_problem_and_the_others_are_read(many: Path) -> None:
    victim = sorted(many.glob("*.log"))[2]

    class Late(OutOfOrder):
        def run_all(self) -> None:
            victim.unlink(missing_ok=True)
            super().run_all()

    logs = len(list(many.glob("*.log")))
    scope = cachescope.read(many, executor=Late())
    gone = scope.problems[scope.problems["source"] == str(victim)]
    assert gone["kind"].tolist() == ["unreadable"]
    assert len({source for sources in scope.runs["sources"] for source in sources}) == logs - 1


def test_columns_carry_everything_logs_told(recording: Recording) -> None:
    told = []
    for path in sorted((recording("2.13.0", "tour") / "trace").iterdir()):
        reading = Reading()
        read_trace_log(str(path), reading)
        told.append(LogTables.of(str(path), reading))
    # One that told nothing, between others.
    told.insert(1, LogTables("nothing", [], [], [], []))
    table = to_arrow(told)
    assert table is not None
    for back, log in zip(LogTables.from_arrow(table), told, strict=True):
        assert_equal(back, log)
    for row, log in enumerate(told):
        (back,) = LogTables.from_arrow(table.slice(row, 1))
        assert_equal(back, log)
    assert list(LogTables.from_arrow(table.slice(0, 0))) == []


def assert_equal(back: LogTables, log: LogTables) -> None:
    assert (back.source, back.processes, back.problems) == (log.source, log.processes, log.problems)
    assert back.components == log.components
    assert [codes.tolist() for codes in back.sets] == [codes.tolist() for codes in log.sets]


@pytest.mark.parametrize(
    "lookup",
    [
        LookupRow(cache="fxgraph", time=2**70),
        LookupRow(cache="fxgraph", guards_expr="a lone \ud800 surrogate"),
    ],
)
def test_what_fits_no_column_is_read_by_workers_all_the_same(lookup: LookupRow) -> None:
    def read(path: str, reading: Reading) -> None:
        reading.processes.append(Process(path, "trace", pid=1, lookups=[lookup]))

    for told in (
        logs.read_alone(read, "a", strict=False),
        logs.read_together([(read, "a")], strict=False)[0],
    ):
        assert isinstance(told, LogTables)
        assert pickle.loads(pickle.dumps(told)).processes[0].lookups == [lookup]
