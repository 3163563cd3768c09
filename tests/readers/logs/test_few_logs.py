"""A few small logs read by workers and in parts, quickly: they tell what one process reads. test_many_logs.py has real ones."""

import gzip
import os
import pickle
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest

from cachescope.errors import RecordError, SourceError
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.index.kept_logs import Index
from cachescope.readers.index.log_tables import LogTables
from cachescope.readers.logs import many_logs, trace_records
from cachescope.readers.logs.log_events import LogKind
from cachescope.readers.logs.many_logs import read_alone, read_into_file, read_logs, read_together
from cachescope.readers.logs.text_log import TEXT
from cachescope.readers.logs.trace_log import TRACE, parts_of_trace
from cachescope.readers.reading import Process, Reading
from tests.made import component
from tests.readers.logs.growing import in_parts
from tests.readers.logs.test_trace_process import begins, disabled, looked_up, metrics


def trace(folder: Path, number: int, lookups: int = 6) -> Path:
    """A trace with some lookups, each with details, of which the last is of this trace alone."""
    path = folder / f"{number}.log"
    details = [component("gm", "g"), component("x", str(number))]
    sets = [[*details, component("at", str(at))] for at in range(lookups)]
    made = [looked_up(second=at, payload={"components": one}) for at, one in enumerate(sets)]
    made += [disabled(second=50), metrics(second=51), "no record\n", looked_up(second=52)]
    path.write_text("".join([begins(), *made]))
    os.utime(path, (1_795_348_860, 1_795_348_860))
    return path


def told(reading: Reading) -> list[Any]:
    store = reading.details
    return [
        *(
            (process.source, process.kind, process.pid, process.start_time, [
                (one.cache_key, one.outcome, one.time, one.compile_ended, one.function,
                 None if one.detail_set is None else [d.value_text for d in store.details(one.detail_set)])
                for one in process.lookups
            ])
            for process in reading.processes
        ),
        *((one.source, one.where, one.kind, one.message) for one in reading.problems),
    ]  # fmt: skip


class Now(Executor):
    """Runs at once what it is given, and counts it."""

    def __init__(self) -> None:
        self.given: list[list[str]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        self.given.append([Path(path).name for _, path in args[0]])
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **named))
        except Exception as error:
            future.set_exception(error)
        return future


class Lost(Now):
    """Every worker is killed."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(ConnectionError("killed"))
        return future


def read(
    paths: list[Path], executor: Executor | None, *, strict: bool = False, kind: LogKind = TRACE
) -> Reading:
    reading = Reading(strict=strict)
    for into in read_logs([(kind, str(path)) for path in paths], executor, None):
        into(reading)
    return reading


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    return [trace(tmp_path, number) for number in range(5)]


def test_small_logs_are_read_together(logs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    size = logs[0].stat().st_size

    def tasks(task_bytes: int) -> list[int]:
        monkeypatch.setattr(many_logs, "_TASK_BYTES", task_bytes)
        executor = Now()
        read(logs, executor)
        return [len(paths) for paths in executor.given]

    assert tasks(1) == [1] * 5
    assert tasks(2 * size) == [2, 2, 1]
    assert tasks(3 * size - 1) == [2, 2, 1]
    assert tasks(3 * size) == [3, 2]
    assert tasks(1 << 30) == [5]


def test_a_worker_that_is_lost_loses_nothing(logs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    alone = told(read(logs, None))
    with pytest.warns(RuntimeWarning, match="a worker was lost"):
        assert told(read(logs, Lost())) == alone
    monkeypatch.setattr(many_logs, "_PART_BYTES", 500)
    large = trace(logs[0].parent, 9, 60)
    with pytest.warns(RuntimeWarning, match="a worker was lost"):
        assert told(read([large], Lost())) == told(read([large], None))


def test_problems_are_rows_and_under_strict_the_first_is_raised(logs: list[Path]) -> None:
    errors = []
    for executor in (Now(), None):
        with pytest.raises(RecordError) as caught:
            read(logs, executor, strict=True)
        errors.append((str(caught.value), caught.value.source, caught.value.where, caught.value.kind))
    assert errors[0] == errors[1]
    logs[2].unlink()
    assert told(read(logs, Now())) == told(read(logs, None))
    assert any(problem.source == str(logs[2]) for problem in read(logs, Now()).problems)


def test_work_that_has_not_begun_is_cancelled(logs: list[Path]) -> None:
    class Never(Now):
        def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
            self.futures = [*getattr(self, "futures", ()), Future[Any]()]
            return self.futures[-1]

    executor = Never()
    waiting = read_logs([(TRACE, str(path)) for path in logs], executor, None)
    next(waiting)
    waiting.close()
    assert all(future.cancelled() for future in executor.futures[1:]) and len(executor.futures) >= 1


def test_logs_that_are_read_together_are_told_each_by_itself(logs: list[Path], tmp_path: Path) -> None:
    asked = [(TRACE.read, str(path)) for path in logs[:2]]
    lines = read_together(asked)
    assert lines == [line for one in asked for line in read_together([one])]
    assert all(orjson.loads(line)["components"] for line in lines)
    path = read_into_file(asked, str(tmp_path))
    assert isinstance(path, str) and Path(path).read_bytes().split(b"\n") == lines


def test_a_trace_in_parts_tells_what_the_whole_tells(tmp_path: Path) -> None:
    path = trace(tmp_path, 1, 40)
    size = path.stat().st_size
    whole = told(read([path], None))
    for part_bytes in (size // 2, size // 3, size // 9, 300):
        places = parts_of_trace(str(path), part_bytes)
        assert len(places) >= 3 or part_bytes == size // 2
        assert told(in_parts(path, places)) == whole
    assert parts_of_trace(str(path), size // 2 + 1) == []
    assert parts_of_trace(str(path), size) == []


def test_where_the_parts_of_a_trace_begin(tmp_path: Path) -> None:
    path = trace(tmp_path, 1, 40)
    data = path.read_bytes()
    places = parts_of_trace(str(path), len(data) // 4)
    assert places[0][0] == 0 and places[-1][1] is None
    assert [end for _, end in places[:-1]] == [start for start, _ in places[1:]]
    for start, _ in places[1:]:
        assert data[start - 1 : start + 1] == b"\nV"
    # The last two are halved.
    lengths = [(len(data) if end is None else end) - start for start, end in places]
    assert len(places) == 6
    assert min(lengths[:2]) > max(lengths[2:])
    assert abs(lengths[0] - len(data) / 4) < len(looked_up()) * 2


def test_what_is_read_by_one_process(tmp_path: Path) -> None:
    path = trace(tmp_path, 1, 40)
    packed = tmp_path / "packed.log"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert parts_of_trace(str(packed), 10) == []
    text = tmp_path / "text.log"
    text.write_text("other\n" * 1000)
    assert parts_of_trace(str(text), 10) == []
    assert parts_of_trace(str(tmp_path / "absent"), 10) == []
    assert parts_of_trace("memory://x.log", 10) == []
    # A log that is no trace is never divided.
    executor = Now()
    with pytest.raises(SourceError):
        read([text], None, strict=True, kind=TEXT)
    read([text], executor, kind=TEXT)
    assert executor.given == [["text.log"]]


def test_where_a_packed_trace_cannot_be_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_records, "BLOCK_BYTES", 4096)
    data = trace(tmp_path, 1, 49).read_bytes()
    packed = gzip.compress(data, compresslevel=0)
    path = tmp_path / "packed.log"
    path.write_bytes(packed[: len(packed) // 2])
    TRACE.read(str(path), reading := Reading())
    cut, ended = (int(problem.where.removeprefix("byte ")) for problem in reading.problems)
    assert data[cut - 1 : cut + 1] == b"\nV"
    assert 2 * 4096 < cut < ended <= len(packed) // 2


class Gone(Now):
    """The log is deleted once a worker has read its first part."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        if self.given:
            Path(args[0][0][1]).unlink(missing_ok=True)
        return super().submit(function, *args, **named)


@pytest.fixture
def index(any_log: None, tmp_path: Path) -> Index:
    return Index(tmp_path / "index")


def names(paths: list[str]) -> list[str]:
    return [Path(path).name for path in paths]


def read_kept(
    paths: list[Path], index: Index, executor: Executor | None = None, *, strict: bool = False
) -> Reading:
    reading = Reading(strict=strict)
    logs = [(TRACE, str(path)) for path in paths]
    for into in read_logs(logs, executor, lambda: index):
        into(reading)
    return reading


def test_a_trace_that_is_gone_when_its_parts_are_read(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = trace(tmp_path, 1, 40)
    monkeypatch.setattr(many_logs, "_PART_BYTES", path.stat().st_size // 2)
    for reads in (read, lambda paths, executor: read_kept(paths, index, executor)):
        found = reads([trace(tmp_path, 1, 40)], Gone())
        assert (found.processes, [one.source for one in found.problems]) == ([], [str(path)])
        assert "no such file" in found.problems[0].message
    with pytest.raises(SourceError, match="no such file"):
        read([trace(tmp_path, 1, 40)], Gone(), strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("with_workers", [False, True])
def test_kept_logs_are_read_once(with_workers: bool, tmp_path: Path, index: Index, parsed: list[str]) -> None:
    logs = [trace(tmp_path, number, 40) for number in range(3)]
    alone = told(read(logs, None))

    def given(paths: list[Path]) -> list[list[str]]:
        executor = Now() if with_workers else None
        parsed.clear()
        assert told(read_kept(paths, index, executor)) == told(read(paths, None))
        return [[name] for name in names(parsed)] if executor is None else executor.given

    assert given(logs[1:2]) == [["1.log"]]
    # One that is kept goes to the index by itself: workers get the others, each alone.
    assert given(logs) == [["0.log"], ["2.log"]]
    assert given(logs) == []
    assert told(read_kept(logs, index)) == alone
    # What has grown is read on, by this process.
    with open(logs[0], "a") as file:
        file.write(looked_up(second=53))
    os.utime(logs[0], (1_795_348_860, 1_795_348_860))
    assert (given(logs), parsed) == ([], [])
    assert given(logs) == []
    # And what was replaced is read anew.
    trace(tmp_path, 2, 41)
    assert given(logs) == [["2.log"]]
    # Damage in the index costs no more than a reading.
    for file in index.folder.glob("*.log_index"):
        *before, last = file.read_bytes()
        file.write_bytes(bytes([*before, last ^ 1]))
    parsed.clear()
    assert told(read_kept(logs, index)) == told(read(logs, None))
    assert names(parsed) == ["0.log", "1.log", "2.log"]


def test_a_lost_worker_keeps_nothing_from_the_index(tmp_path: Path, index: Index, parsed: list[str]) -> None:
    logs = [trace(tmp_path, number, 40) for number in range(2)]
    with pytest.warns(RuntimeWarning, match="a worker was lost"):
        assert told(read_kept(logs, index, Lost())) == told(read(logs, None))
    assert names(parsed) == ["0.log", "1.log"]
    assert told(read_kept(logs, index)) == told(read(logs, None))
    assert len(parsed) == 2


def test_under_strict_a_kept_problem_is_raised_too(tmp_path: Path, index: Index) -> None:
    log = trace(tmp_path, 0, 40)
    read_kept([log], index)
    assert [Path(one.path).name for one in index.logs()] == ["0.log"]
    with pytest.raises(RecordError) as kept:
        read_kept([log], index, strict=True)
    with pytest.raises(RecordError) as anew:
        read([log], None, strict=True)
    assert str(kept.value) == str(anew.value)


def test_a_large_trace_that_is_kept_is_read_in_parts_once(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_logs, "_PART_BYTES", 2_000)
    log, executor = trace(tmp_path, 0, 60), Now()
    assert told(read_kept([log], index, executor)) == told(read([log], None))
    assert len(executor.given) > 3
    executor = Now()
    assert told(read_kept([log], index, executor)) == told(read([log], None))
    assert executor.given == []


def test_the_index_is_trimmed_after_the_last_log(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [trace(tmp_path, number, 40) for number in range(2)]
    trimmed: list[int] = []
    monkeypatch.setattr(Index, "trim", lambda self: trimmed.append(len(self.logs())))
    read_kept(logs, index)
    assert trimmed == [2]
    # Also where reading ends early.
    waiting = read_logs([(TRACE, str(path)) for path in logs], None, lambda: index)
    next(waiting)
    waiting.close()
    assert trimmed == [2, 2]


def test_so_many_logs_are_given_to_workers_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of them is read before more are asked for: results take memory."""
    monkeypatch.setattr(many_logs, "_AHEAD", 4)
    monkeypatch.setattr(many_logs, "_TASK_BYTES", 1)
    logs = [trace(tmp_path, number) for number in range(10)]
    executor, given = Now(), []
    reading = Reading()
    for into in read_logs([(TRACE, str(path)) for path in logs], executor, None):
        given.append(len(executor.given))
        into(reading)
    assert given == [4, 4, 6, 6, 8, 8, 10, 10, 10, 10]
    assert [Path(one.source).name for one in reading.processes] == [f"{number}.log" for number in range(10)]


def test_large_logs_go_alone_and_small_ones_before_them_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_logs, "_PART_BYTES", 4_000)
    monkeypatch.setattr(many_logs, "_MANY", 2)
    logs = [trace(tmp_path, number) for number in range(2)]
    large, last = trace(tmp_path, 8, 60), trace(tmp_path, 9)
    executor = Now()
    assert told(read([*logs, large, last], executor)) == told(read([*logs, large, last], None))
    parts = [paths for paths in executor.given if paths == ["8.log"]]
    assert executor.given == [["0.log", "1.log"], *parts, ["9.log"]]
    assert len(parts) > 2
    # Of many alike, each is read by one worker.
    executor = Now()
    read([trace(tmp_path, number, 60) for number in range(3)], executor)
    assert executor.given == [["0.log", "1.log", "2.log"]]


def test_only_a_pool_of_processes_gets_results_through_files(logs: list[Path]) -> None:
    """A process that is killed while it sends a result would be waited for without end."""
    asked: list[tuple[Any, tuple[Any, ...]]] = []

    def submit(self: Executor, function: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        asked.append((function, args[1:]))
        future: Future[Any] = Future()
        future.set_result(function(*args))
        return future

    class Pool(ProcessPoolExecutor):
        """One that runs here what it is given."""

        def __init__(self) -> None: ...

    Pool.submit = submit  # type: ignore[assignment, method-assign]
    assert told(read(logs, Pool())) == told(read(logs, None))
    ((function, (folder,)),) = asked
    assert function is read_into_file
    assert not Path(folder).exists()
    asked.clear()
    here = type("Here", (Now,), {"submit": submit})
    assert told(read(logs, here())) == told(read(logs, None))
    assert asked == [(read_together, ())]


@pytest.mark.parametrize("told", [{"time": 2**70}, {"guards_expr": "a lone \ud800 surrogate"}])
def test_what_fits_no_column_is_read_by_workers_all_the_same(told: dict[str, Any]) -> None:
    lookup = LookupRow(cache="fxgraph", **told)

    def read_made(path: str, reading: Reading) -> None:
        reading.processes.append(Process(source=path, kind="trace", pid=1, lookups=[lookup]))

    for found in (read_alone(read_made, "a"), read_together([(read_made, "a")])[0]):
        assert isinstance(found, LogTables)
        assert pickle.loads(pickle.dumps(found)).processes[0].lookups == [lookup]
