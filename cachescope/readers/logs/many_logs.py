"""Reads many logs, from the index, in workers or in this process, and yields them in the order of the request."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from cachescope.errors import SourceError
from cachescope.readers.index.kept_logs import is_large_enough
from cachescope.readers.json_record import load_json
from cachescope.readers.logs.log_events import LogKind, fold_events
from cachescope.readers.logs.trace_log import TRACE, parts_of_trace, read_trace_part
from cachescope.readers.reading import Reading, read_or_note

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future
    from tempfile import TemporaryDirectory

    from cachescope.readers.index.kept_logs import Index, Kept
    from cachescope.readers.index.log_tables import LogTables

# How many logs workers may be ahead of the merge: a log of hundreds of megabytes gives a result of a few.
_AHEAD: Final = 256
# Small logs go to a worker together: each task takes a moment.
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
        from concurrent.futures import BrokenExecutor, Future

        self._logs = deque(logs)
        self._results: deque[LogTables] | None = None
        call: tuple[Any, ...] = (read_together, logs) if folder is None else (read_into_file, logs, folder)
        try:
            self.future: Future[Any] = executor.submit(*call)
        except BrokenExecutor as error:
            self.future = Future()
            self.future.set_exception(error)

    def next_log(self) -> LogTables:
        """The events of the next log; if the worker is lost, it is read in this process."""
        read, path = self._logs.popleft()
        if self._results is None:
            self._results = _from_worker(self.future)
        return self._results.popleft() if self._results is not None else read_alone(read, path)


@dataclass(slots=True)
class _Asked:
    """One requested log, and where its events come from: the index, workers (a large trace in parts), or not decided yet."""

    kind: LogKind
    path: str
    kept: Kept | None = None
    tasks: list[_Task] = field(default_factory=list)

    def into(self, reading: Reading) -> None:
        if self.kept is None and not self.tasks:
            read_or_note(self.kind.read, self.path, reading)
            return
        fold = self.kind.fold(self.path, reading)
        parts = self._from_workers() if self.kept is None else self._from_index(self.kept)
        read_or_note(lambda _, reading: fold_events(fold, reading, parts), self.path, reading)

    def _from_workers(self) -> Iterator[LogTables]:
        """The events of the log, in one or several parts."""
        return (task.next_log() for task in self.tasks)

    def cancel(self) -> None:
        """Cancel what workers have not begun."""
        for task in self.tasks:
            task.future.cancel()

    def _from_index(self, kept: Kept) -> Iterator[LogTables]:
        """The events of a log that the index has, or is to have."""
        log = kept.as_it_is()
        if log is None:
            log = self._read_whole() if self.tasks else self._read_on(kept)
            kept.store(log)
        yield log

    def _read_whole(self) -> LogTables:
        """The parts that workers read, as one."""
        reading = Reading()
        for part in self._from_workers():
            if not part.processes:
                return part
            part.merge_into(reading)
        return _tables_of(self.path, reading)

    def _read_on(self, kept: Kept) -> LogTables:
        """The kept events and those appended to the log since; all of them anew if reading cannot continue."""
        if (before := kept.as_it_was()) is not None:
            reading = Reading()
            before.merge_into(reading)
            with contextlib.suppress(SourceError):
                # Valid only if the file was not replaced meanwhile.
                if self.kind.read_on(self.path, reading) and kept.is_same_file():
                    return _tables_of(self.path, reading)
        return read_alone(self.kind.read_events, self.path)


def read_logs(
    logs: Iterable[tuple[LogKind, str]], executor: Executor | None, index: Callable[[], Index | None] | None
) -> Generator[Callable[[Reading], None]]:
    """Yield, for each log in order, a function that reads it into a reading.

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
                for kind, path in islice(rest, (_AHEAD if executor else 1) - len(asked)):
                    if opened is None and index is not None and is_large_enough(path):
                        opened = index()
                    more.append(_Asked(kind, path, None if opened is None else opened.kept(path)))
                if executor is not None:
                    _hand_out(more, executor, None if folder is None else folder.name)
                asked += more
            if not asked:
                return
            yield asked[0].into
            # If reading it ended early, parts have not begun.
            asked.popleft().cancel()
    finally:
        for one in asked:
            one.cancel()
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
    """Give workers the logs to read."""
    for group in _groups(more):
        task = _Task(executor, [(read, one.path) for one, read in group], folder)
        for one, _ in group:
            one.tasks.append(task)


def _groups(more: list[_Asked]) -> Iterator[Sequence[tuple[_Asked, ReadLog]]]:
    """What a worker reads at once: a large log, or one that the index will keep, alone; small ones together.

    A trace with a large share of all bytes is split among several workers.
    """
    together: list[tuple[_Asked, ReadLog]] = []
    together_bytes = 0
    all_bytes = sum(_size(one.path) for one in more)
    for one in more:
        if one.kept is not None and one.kept.is_of_use():
            continue
        is_large = one.kind is TRACE and _MANY * _size(one.path) > all_bytes
        places = parts_of_trace(one.path, _PART_BYTES) if is_large else []
        own_bytes = _TASK_BYTES if one.kept is not None or places else _size(one.path)
        if together and together_bytes + own_bytes > _TASK_BYTES:
            yield together
            together, together_bytes = [], 0
        if places:
            yield from ([(one, partial(read_trace_part, start=start, end=end))] for start, end in places)
        else:
            together.append((one, one.kind.read_events))
            together_bytes += own_bytes
    if together:
        yield together


def _size(path: str) -> int:
    try:
        return max(os.path.getsize(path), 1)
    except OSError:
        # An address, or no longer there.
        return _TASK_BYTES


def read_together(logs: list[tuple[ReadLog, str]]) -> list[bytes | LogTables]:
    """Read logs, each by itself: a line of JSON, or itself if it fits none."""
    return [log.to_json() or log for log in (read_alone(read, path) for read, path in logs)]


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
    from cachescope.readers.index.log_tables import LogTables

    try:
        result = future.result()
    except Exception as error:
        # Killed, out of memory, unreachable: each executor has its own exceptions for a lost worker.
        message = f"a worker was lost ({type(error).__name__}): its logs are read in this process"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return None
    if isinstance(result, str):
        path = result
        with open(path, "rb") as file:
            result = file.read().split(b"\n")
        os.unlink(path)
    return deque(LogTables.from_json(load_json(log)) if isinstance(log, bytes) else log for log in result)


def read_alone(read: ReadLog, path: str) -> LogTables:
    """Read one log by itself."""
    reading = Reading()
    read_or_note(read, path, reading)
    return _tables_of(path, reading)


def _tables_of(path: str, reading: Reading) -> LogTables:
    from cachescope.readers.index.log_tables import LogTables

    return LogTables.of(path, reading)
