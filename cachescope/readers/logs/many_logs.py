"""Reads many logs, from the index, in workers or in this process, and yields them in the order of the request."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from cachescope.errors import SourceError
from cachescope.readers.index.log_state import is_large_enough
from cachescope.readers.logs.log_events import Fold, fold_events
from cachescope.readers.logs.trace_log import (
    parts_of_trace,
    read_on_trace_events,
    read_trace_events,
    read_trace_log,
)
from cachescope.readers.logs.trace_process import TraceProcess
from cachescope.readers.reading import Reading, read_or_note

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future
    from tempfile import TemporaryDirectory

    from cachescope.readers.index.kept_logs import Index, Kept
    from cachescope.readers.index.log_tables import LogTables

# How many logs workers may be ahead of the merge: a log of hundreds of megabytes gives a result of a few.
_AHEAD: Final = 256
# Small logs go to a worker together: what they have in common is sent back once.
_TASK_BYTES: Final = 16 << 20
# A trace is split among several workers if each gets this much. Every part has to learn again what the parts have in common,
# and its result has to be handed over: together this takes as long as reading 5 MB.
_PART_BYTES: Final = 64 << 20
# This many logs of equal size keep all workers busy without splitting.
_MANY: Final = 16

ReadLog = Callable[[str, Reading], None]


class _Task:
    """Logs whose events one worker reads; those of each are taken out in their order."""

    def __init__(self, executor: Executor, logs: list[tuple[ReadLog, str]], folder: str | None) -> None:
        from concurrent.futures import BrokenExecutor

        self.future: Future[Any] | None
        self._logs = deque(logs)
        self._results: deque[LogTables] | None = None
        try:
            if folder is None:
                self.future = executor.submit(read_together, logs)
            else:
                self.future = executor.submit(read_into_file, logs, folder)
        except BrokenExecutor as error:
            self.future = None
            _warn(error)

    def parts(self) -> Iterator[LogTables]:
        """The events of the next log; if the worker is lost, it is read in this process."""
        read, path = self._logs.popleft()
        if self._results is None and self.future is not None:
            self._results = _from_worker(self.future)
        yield self._results.popleft() if self._results is not None else read_alone(read, path)

    def cancel(self) -> None:
        """Cancel the task if it has not begun."""
        if self.future is not None:
            self.future.cancel()


class _Parts:
    """The events of one large trace, read by several workers in parts."""

    def __init__(
        self, executor: Executor, path: str, places: list[tuple[int, int | None]], folder: str | None
    ) -> None:
        reads = (partial(read_trace_events, start=start, end=end) for start, end in places)
        self._tasks = [_Task(executor, [(read, path)], folder) for read in reads]

    def parts(self) -> Iterator[LogTables]:
        """The parts in their order."""
        try:
            for task in self._tasks:
                yield from task.parts()
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Cancel the parts that have not begun."""
        for task in self._tasks:
            task.cancel()


@dataclass(slots=True)
class _Asked:
    """One requested log, and where its events come from: the index, workers, or not decided yet."""

    read: ReadLog
    path: str
    kept: Kept | None = None
    task: _Task | _Parts | None = None

    def into(self, reading: Reading) -> None:
        if self.kept is None and self.task is None:
            read_or_note(self.read, self.path, reading)
        else:
            fold = event_readers(self.read).fold(self.path, self.path, reading)
            # Closed if reading ends early: parts that have not begun are then cancelled.
            with contextlib.closing(self._parts()) as parts:
                read_or_note(lambda _, reading: fold_events(fold, reading, parts), self.path, reading)

    def _parts(self) -> Generator[LogTables]:
        """The events of the log, in one or several parts."""
        if self.kept is None:
            assert self.task is not None
            yield from self.task.parts()
            return
        log = self.kept.as_it_is(self.path)
        if log is None:
            log = self._read_to_keep()
            self.kept.store(log)
        yield log

    def _read_to_keep(self) -> LogTables:
        """The events of a log that the index does not have as it is."""
        if self.task is None:
            return self._read_on() or read_alone(event_readers(self.read).read, self.path)
        reading = Reading()
        for part in self.task.parts():
            if not part.processes:
                return part
            part.merge_into(reading)
        return _tables_of(self.path, reading)

    def _read_on(self) -> LogTables | None:
        """The kept events and those appended to the log since; None if the log has to be read from the start."""
        before = None if self.kept is None else self.kept.as_it_was(self.path)
        if before is None or self.kept is None:
            return None
        reading = Reading()
        before.merge_into(reading)
        try:
            is_read = event_readers(self.read).read_on(self.path, reading)
        except SourceError:
            return None
        # Valid only if the file was not replaced meanwhile.
        return _tables_of(self.path, reading) if is_read and self.kept.is_same_file() else None


def read_logs(
    logs: Iterable[tuple[ReadLog, str]],
    executor: Executor | None,
    index: Callable[[], Index | None] | None,
) -> Generator[Callable[[Reading], None]]:
    """Yield, for each log in order, a function that reads it into a reading.

    Notes
    -----
    If a worker is lost, its log is read in this process. Closing the iterator cancels work that has not begun.
    """
    rest = iter(logs)
    asked: deque[_Asked] = deque()
    opened: Index | None = None
    folder = None if executor is None else _folder_for(executor)
    try:
        while True:
            if len(asked) <= (_AHEAD // 2 if executor else 0):
                more = []
                for read, path in islice(rest, (_AHEAD if executor else 1) - len(asked)):
                    if opened is None and index is not None and is_large_enough(path):
                        opened = index()
                    more.append(_Asked(read, path, None if opened is None else opened.kept(path)))
                if executor is not None:
                    _hand_out(more, executor, None if folder is None else folder.name)
                asked += more
            if not asked:
                return
            yield asked.popleft().into
    finally:
        for one in asked:
            if one.task is not None:
                one.task.cancel()
        if folder is not None:
            folder.cleanup()
        if opened is not None:
            opened.trim()


def _folder_for(executor: Executor) -> TemporaryDirectory[str] | None:
    """A folder for the results of processes; other workers hand theirs over.

    A process of a pool sends a result through its pipe in pieces. If it is killed between two pieces,
    the pool waits for the rest for ever (CPython 3.11, `_ExecutorManagerThread`). A path is sent in one piece.
    """
    from concurrent.futures import ProcessPoolExecutor
    from tempfile import TemporaryDirectory

    return TemporaryDirectory(prefix="cachescope-") if isinstance(executor, ProcessPoolExecutor) else None


def _hand_out(more: list[_Asked], executor: Executor, folder: str | None) -> None:
    """Give workers the logs to read: a large log, or one that the index will keep, alone; small ones together.

    A trace with a large share of all bytes is split among several workers.
    """
    together: list[_Asked] = []
    together_bytes = 0
    all_bytes = sum(_size(one.path) for one in more)
    for one in more:
        if one.kept is not None and one.kept.is_of_use():
            continue
        is_large = one.read is read_trace_log and _MANY * _size(one.path) > all_bytes
        places = parts_of_trace(one.path, _PART_BYTES) if is_large else []
        if places:
            if together:
                _begin(together, executor, folder)
                together, together_bytes = [], 0
            one.task = _Parts(executor, one.path, places, folder)
            continue
        own_bytes = _TASK_BYTES if one.kept is not None else _size(one.path)
        if together and together_bytes + own_bytes > _TASK_BYTES:
            _begin(together, executor, folder)
            together, together_bytes = [], 0
        together.append(one)
        together_bytes += own_bytes
    if together:
        _begin(together, executor, folder)


def _begin(together: list[_Asked], executor: Executor, folder: str | None) -> None:
    task = _Task(executor, [(event_readers(one.read).read, one.path) for one in together], folder)
    for one in together:
        one.task = task


def _size(path: str) -> int:
    try:
        return max(os.path.getsize(path), 1)
    except OSError:
        # An address, or no longer there.
        return _TASK_BYTES


def read_together(logs: list[tuple[ReadLog, str]]) -> list[bytes | LogTables]:
    """Read logs, each with only its new components and sets: a line of JSON, or itself if it fits none."""
    from cachescope.readers.index.log_tables import LogTables

    reading = Reading()
    found: list[bytes | LogTables] = []
    for read, path in logs:
        reading = reading.with_same_details()
        components, sets = len(reading.details.components), len(reading.details.sets)
        read_or_note(read, path, reading)
        log = LogTables.of(path, reading, components, sets)
        found.append(log.to_json() or log)
    return found


def read_into_file(logs: list[tuple[ReadLog, str]], folder: str) -> str | list[bytes | LogTables]:
    """Like `read_together`, but write the lines to a file in `folder` and return its path."""
    from tempfile import mkstemp

    found = read_together(logs)
    lines = [line for line in found if isinstance(line, bytes)]
    if len(lines) < len(found):
        return found
    descriptor, path = mkstemp(dir=folder)
    with open(descriptor, "wb") as file:
        file.write(b"\n".join(lines))
    return path


def _from_worker(future: Future[Any]) -> deque[LogTables] | None:
    """What `read_together` or `read_into_file` returned in a worker; None if it is lost."""
    from cachescope.readers.index.log_tables import KnownCodes, LogTables

    try:
        result = future.result()
    except Exception as error:
        # Killed, out of memory, unreachable: each executor has its own exceptions for a lost worker.
        _warn(error)
        return None
    if isinstance(result, str):
        path = result
        with open(path, "rb") as file:
            result = file.read().split(b"\n")
        os.unlink(path)
    known = KnownCodes()
    logs = (LogTables.from_json(orjson.loads(log)) if isinstance(log, bytes) else log for log in result)
    return deque(replace(log, known=known) for log in logs)


def read_alone(read: ReadLog, path: str) -> LogTables:
    """Read one log by itself."""
    reading = Reading()
    read_or_note(read, path, reading)
    return _tables_of(path, reading)


def _tables_of(path: str, reading: Reading) -> LogTables:
    from cachescope.readers.index.log_tables import LogTables

    return LogTables.of(path, reading)


class EventReaders(NamedTuple):
    """What reads the events of a log of one kind, what reads on where it has grown, and what makes processes of them."""

    read: ReadLog
    read_on: Callable[[str, Reading], bool]
    fold: Callable[[str, str, Reading], Fold]


def event_readers(read: ReadLog) -> EventReaders:
    """Those of the kind of log that a function reads."""
    if read is read_trace_log:
        return EventReaders(read_trace_events, read_on_trace_events, TraceProcess)
    from cachescope.readers.logs.text_log import read_on_text_events, read_text_events
    from cachescope.readers.logs.text_lookups import TextProcesses

    return EventReaders(read_text_events, read_on_text_events, TextProcesses)


def _warn(error: Exception) -> None:
    message = f"a worker was lost ({type(error).__name__}): its logs are read in this process"
    warnings.warn(message, RuntimeWarning, stacklevel=3)
