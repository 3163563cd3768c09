"""Which reader a path is for, told by looking inside: names prove nothing."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from cachescope.errors import SourceError
from cachescope.readers.byte_source import read_head
from cachescope.readers.cache_dir import looks_like_cache_dir, read_cache_dir, read_mega_cache_file
from cachescope.readers.log_folder import is_log_file, read_log_file
from cachescope.readers.logs import read_logs
from cachescope.readers.mega_cache import looks_like_mega_cache
from cachescope.readers.places import ROOT
from cachescope.readers.reading import Reading
from cachescope.readers.remote import addresses, is_address
from cachescope.readers.run_notes import tell_of_runs
from cachescope.readers.snapshot import looks_like_snapshot, read_snapshot
from cachescope.readers.text_log import looks_like_text_log, read_text_log
from cachescope.readers.trace_log import looks_like_trace_log, read_trace_log

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from cachescope.readers.index import Index

# A job's log may begin with pages of its own before torch says a word.
_HEAD_BYTES: Final = 4 << 20
_PROBE_BYTES: Final = 1 << 14
# A store answers late and many at once.
_OPEN_AT_ONCE: Final = 32

_LOGS: Final = (read_trace_log, read_text_log)

Progress = Callable[[str, int, int], None]
ReadSource = Callable[[str, Reading], None]


def read_sources(
    paths: list[str],
    reading: Reading,
    progress: Progress | None = None,
    *,
    executor: Executor | None = None,
    index: Index | None = None,
) -> None:
    """Read any mix of directories, logs, traces, snapshots and globs into `reading`.

    Parameters
    ----------
    paths : list of str
        Paths, glob patterns, or addresses that fsspec knows.
    reading : Reading
        What was read is appended to it.
    progress : callable, optional
        Called with the path, the number of sources done and of all, before each is read.
    executor : Executor, optional
        Workers that read logs. What is read is the same as without, in the same order.
    index : Index, optional
        Where logs are kept that were read before.

    Raises
    ------
    SourceError
        If a path is not there, may not be read, or holds nothing cachescope knows.
    """
    work = list(_distinct(paths))
    logs = read_logs(
        [(read, path) for read, path in work if read in _LOGS], executor, index, strict=reading.strict
    )
    with contextlib.closing(logs):
        for done, (read, path) in enumerate(work):
            if progress is not None:
                progress(path, done, len(work))
            if read in _LOGS:
                next(logs)(reading)
            else:
                read(path, reading)
    tell_of_runs(reading.processes)


def logs_in(paths: list[str]) -> list[tuple[ReadSource, str]]:
    """The logs among these sources, each with what reads it.

    Raises
    ------
    SourceError
        If a path is not there or may not be read, or no log is among them.
    """
    logs: list[tuple[ReadSource, str]] = [(read, path) for read, path in _distinct(paths) if read in _LOGS]
    if not logs:
        raise SourceError(", ".join(paths), "there is no log among these")
    return logs


def _distinct(paths: list[str]) -> Iterator[tuple[ReadSource, str]]:
    """Every source once, however often and under whatever names it is given."""
    seen: set[str] = set()
    for path in paths:
        found = [item for one in _expand(path) for item in _find(one)]
        if not found:
            raise SourceError(path, _nothing_in(path))
        for read, one in found:
            if (real := os.path.realpath(one)) not in seen:
                seen.add(real)
                yield read, one


def _nothing_in(path: str) -> str:
    what = "directory" if os.path.isdir(path) else "file"
    with contextlib.suppress(OSError):
        if not (os.listdir(path) if os.path.isdir(path) else os.path.getsize(path)):
            return f"this {what} is empty"
    return (
        f"this {what} holds no trace, text log, cache entry or snapshot of torch.compile "
        "(a log that says nothing of a cache is from a run whose caching was off, or that compiled nothing)"
    )


def _expand(path: str) -> list[str]:
    if is_address(path) or os.path.lexists(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not matches:
        raise SourceError(path, "there is no such file or directory")
    return matches


def _find(path: str) -> Iterator[tuple[ReadSource, str]]:
    if is_address(path):
        yield from _find_remote(path)
    elif looks_like_cache_dir(path):
        yield read_cache_dir, path
        if os.path.isdir(path):
            yield from _logs_in_cache(path)
    elif os.path.isdir(path):
        try:
            names = sorted(os.listdir(path))
        except OSError as error:
            raise SourceError(path, f"cannot be read: {error.strerror}") from error
        for name in names:
            child = os.path.join(path, name)
            # A link out of the directory may lead back into it.
            if os.path.islink(child) and os.path.isdir(child):
                continue
            if os.path.isdir(child) or os.path.isfile(child):
                yield from _find(child)
    elif (read := _reader_of_file(path)) is not None:
        yield read, path


def _find_remote(address: str) -> Iterator[tuple[ReadSource, str]]:
    """The logs at an address; caches are read where they are used."""
    found = addresses(address)
    with ThreadPoolExecutor(_OPEN_AT_ONCE) as threads:
        for read, one in zip(threads.map(_reader_of_address, found), found, strict=True):
            if read is not None:
                yield read, one


def _logs_in_cache(path: str) -> Iterator[tuple[ReadSource, str]]:
    """Logs that were written into a cache directory, or into a folder of it that is not torch's."""
    with contextlib.suppress(OSError), os.scandir(path) as items:
        strange = [item for item in items if not _is_of_cache(item)]
        for item in sorted(strange, key=lambda item: item.name):
            names = (
                [item.path]
                if item.is_file()
                else sorted(glob.glob(os.path.join(glob.escape(item.path), "*")))
            )
            for name in names:
                if os.path.isfile(name) and (read := _reader_of_file(name)) is not None:
                    yield read, name


def _is_of_cache(item: os.DirEntry[str]) -> bool:
    rules = ROOT.files if item.is_file() else ROOT.folders
    known = any(rule.pattern.fullmatch(item.name) for rule in rules)
    return item.is_symlink() or known or (item.is_dir() and looks_like_cache_dir(item.path))


def _reader_of_file(path: str) -> ReadSource | None:
    if not os.access(path, os.R_OK):
        raise SourceError(path, "cannot be read: permission denied")
    if is_log_file(path):
        return read_log_file
    head = read_head(path, _PROBE_BYTES)
    if looks_like_mega_cache(head):
        return read_mega_cache_file
    if looks_like_snapshot(head):
        return _read_context
    return _reader_of_log(path, head)


def _reader_of_address(address: str) -> ReadSource | None:
    return _reader_of_log(address, read_head(address, _PROBE_BYTES))


def _reader_of_log(path: str, head: bytes) -> ReadSource | None:
    if looks_like_trace_log(head):
        return read_trace_log
    if looks_like_text_log(head) or looks_like_text_log(read_head(path, _HEAD_BYTES)):
        return read_text_log
    return None


def _read_context(path: str, reading: Reading) -> None:
    reading.contexts.append({**read_snapshot(path), "source": path})
