"""Logs one by one: from the index, from workers, or read here; always given in the order they were asked for."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from cachescope.errors import CachescopeError
from cachescope.readers.reading import Reading

if TYPE_CHECKING:
    from cachescope.readers.index import Index, Kept

# What workers may be ahead of the merge: a result is a few megabytes where its log has hundreds.
_AHEAD: Final = 256

ReadLog = Callable[[str, Reading], None]


@dataclass(slots=True)
class _Asked:
    """One log that somebody has been asked for: the index, a worker, or nobody yet."""

    read: ReadLog
    path: str
    kept: Kept | None = None
    future: Future[Any] | None = None

    def into(self, reading: Reading) -> None:
        from cachescope.readers.log_tables import LogTables

        tables = None if self.kept is None else self.kept.load(self.path)
        if tables is not None:
            tables.merge_into(reading)
            return
        told = None if self.future is None else _from_worker(self.future)
        if told is None and self.kept is None:
            self.read(self.path, reading)
            return
        told = told if told is not None else read_alone(self.read, self.path, reading.strict)
        if isinstance(told, LogTables):
            told.merge_into(reading)
            return
        if self.kept is not None:
            self.kept.store(told)
        for tables in LogTables.from_arrow(told, self.path):
            tables.merge_into(reading)


def read_logs(
    logs: Iterable[tuple[ReadLog, str]], executor: Executor | None, index: Index | None, *, strict: bool
) -> Generator[Callable[[Reading], None]]:
    """For each log, in order, what reads it into a reading.

    Parameters
    ----------
    logs : iterable of (reader, path)
    executor : Executor, optional
        Workers that read ahead; a bounded number of their results waits for its turn.
    index : Index, optional
        Where logs are kept that were read before.
    strict : bool
        Whether workers stop at the first damaged record.

    Notes
    -----
    A log whose worker is lost is read in this process. What has not begun is cancelled when the iterator is closed.
    """
    rest = iter(logs)
    asked: deque[_Asked] = deque()
    try:
        while True:
            for read, path in islice(rest, (_AHEAD if executor else 1) - len(asked)):
                one = _Asked(read, path, None if index is None else index.kept(path))
                if executor is not None and not (one.kept and one.kept.is_current()):
                    one.future = _submitted(executor, read, path, strict)
                asked.append(one)
            if not asked:
                return
            yield asked.popleft().into
    finally:
        for one in asked:
            if one.future is not None:
                one.future.cancel()
        if index is not None:
            index.trim()


def read_alone(read: ReadLog, path: str, strict: bool) -> Any:
    """Read one log into columns: a table of `log_tables.SCHEMA`, or `LogTables` where it does not fit into one."""
    from cachescope.readers.log_tables import LogTables

    reading = Reading(strict=strict)
    read(path, reading)
    tables = LogTables.of(path, reading)
    table = tables.to_arrow()
    return tables if table is None else table


def _submitted(executor: Executor, read: ReadLog, path: str, strict: bool) -> Future[Any] | None:
    try:
        return executor.submit(read_alone, read, path, strict)
    except BrokenExecutor:
        return None


def _from_worker(future: Future[Any]) -> Any:
    try:
        return future.result()
    except CachescopeError:
        raise
    except Exception as error:
        # Killed, out of memory, unreachable: each executor has exceptions of its own for a lost worker.
        message = f"a worker was lost ({type(error).__name__}): its logs are read in this process"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return None
