"""Chooses the reader of a path by its content, and loads it only then: names prove nothing."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal

from cachescope.errors import SourceError
from cachescope.readers.directory.place_of import is_linked_root, looks_like_cache_dir, place_of
from cachescope.readers.directory.places import ROOT, Place
from cachescope.readers.directory.vllm_places import TREE
from cachescope.readers.kinds import (
    LOG_HEAD_BYTES,
    PROBE_BYTES,
    check_is_stored,
    holds_mega_cache,
    is_log_file,
    is_tar,
    is_zip,
    kind_of_log,
    kinds_of_log,
    looks_like_dump,
    looks_like_snapshot,
    shipped_kind,
)
from cachescope.readers.logs.byte_source import FAILURES, open_bytes, read_head
from cachescope.readers.logs.log_events import LogKind
from cachescope.readers.logs.many_logs import read_logs
from cachescope.readers.logs.notes import WHY_SILENT, holds_a_note, tell_of_runs
from cachescope.readers.logs.remote import addresses, is_address
from cachescope.readers.logs.text_messages import in_another_form
from cachescope.readers.logs.tlparse import SOURCES
from cachescope.readers.reading import WHOLE_SOURCE, Reading, as_error, note_source, read_or_note
from cachescope.readers.remote_cache.address import is_redis
from cachescope.terms import HOW_TO_RECORD
from cachescope.wording import file_size, listed

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from cachescope.readers.index.kept_logs import Index


# A key of `torch._dynamo.utils.counters["inductor"]`, as a program prints it.
_COUNTER: Final = re.compile(rb"['\"]fxgraph_cache_(hit|miss|bypass)['\"]: (\d{1,12})")
_LONGEST_QUOTE: Final = 300
_SILENT_RUN: Final = f"cachescope record ran a command here, and no log with a word of torch's caches lies beside its note: the logs were moved, the command has not got that far or does not use torch, {WHY_SILENT}"
_NOT_FOLLOWED: Final = "not looked into: a link to a folder elsewhere; give that folder too"
_NOT_SEARCHED: Final = f"no line of torch is among its first {file_size(LOG_HEAD_BYTES)}, and the rest was not searched: give the file itself"
_PRINTED_SHOWN: Final = 4
# A store answers slowly, but many requests at once.
_OPEN_AT_ONCE: Final = 32
_MOST_ARCHIVED: Final = 250_000_000
"""How many bytes of archives in a folder are unpacked."""

Kind = Literal[
    "trace", "text", "vLLM log", "logs in columns", "directory", "shipped", "snapshot", "dump", "redis"
]
_LOGS: Final = ("trace", "text")

Progress = Callable[[str, int, int], None]


_READERS: Final[dict[Kind, tuple[str, str]]] = {
    "trace": ("cachescope.readers.logs.trace_log", "TRACE"),
    "text": ("cachescope.readers.logs.text_log", "TEXT"),
    "vLLM log": ("cachescope.readers.logs.vllm_log", "read_vllm_log"),
    "logs in columns": ("cachescope.readers.index.log_tables", "read_log_file"),
    "directory": ("cachescope.readers.directory.cache_dir", "read_cache_dir"),
    "shipped": ("cachescope.readers.directory.cache_dir", "read_shipped_file"),
    "snapshot": ("cachescope.readers.snapshot", "read_context"),
    "dump": ("cachescope.readers.remote_cache.stored", "read_dump"),
    "redis": ("cachescope.readers.remote_cache.stored", "read_redis"),
}
"""The module and what in it reads each kind of source, loaded where there is one: for logs a `LogKind`, else a function."""


def _reader(kind: Kind) -> Any:
    module, name = _READERS[kind]
    return getattr(import_module(module), name)


def read_sources(
    paths: list[str],
    reading: Reading,
    progress: Progress | None = None,
    *,
    executor: Executor | None = None,
    index: Callable[[], Index | None] | None = None,
) -> None:
    """Read any mix of directories, logs, traces, snapshots and globs into `reading`."""
    work = list(_distinct(paths, reading))
    logs = read_logs([(_reader(kind), path) for kind, path in work if kind in _LOGS], executor, index)
    with contextlib.closing(logs):
        for done, (kind, path) in enumerate(work):
            if progress is not None:
                progress(path, done, len(work))
            if kind in _LOGS:
                next(logs)(reading)
            else:
                read_or_note(_reader(kind), path, reading)
    unread = [problem for problem in reading.problems if problem.where == WHOLE_SOURCE]
    given = {path for _, path in work}
    if unread and given <= {problem.source for problem in unread}:
        raise as_error(unread[0])
    tell_of_runs(reading)


def check_sources(paths: list[str]) -> None:
    """Say at once what `read_sources` would say of paths of which nothing can be read; reads no more than beginnings."""
    for path in paths:
        reading = Reading()
        if not list(_distinct([path], reading)):
            raise as_error(reading.problems[0])


def logs_in(paths: list[str], reading: Reading) -> list[tuple[LogKind, str]]:
    """The logs among these sources, each with its kind; a file below them that may not be read becomes a problem."""
    found = list(_distinct(paths, reading))
    for problem in reading.problems:
        if problem.source in paths:
            raise as_error(problem)
    logs = [(_reader(kind), path) for kind, path in found if kind in _LOGS]
    if not logs:
        raise SourceError(", ".join(paths), "there is no log among these")
    return logs


def _distinct(paths: list[str], reading: Reading) -> Iterator[tuple[Kind, str]]:
    """Every source once, even if it is given several times or under several names; other paths become problems."""
    seen: set[tuple[str, bool]] = set()
    for path in paths:
        noted = len(reading.problems)
        try:
            found = [item for one in _expand(path) for item in _find(one, reading)]
            if not found and len(reading.problems) == noted:
                raise _nothing_in(path)
        except SourceError as error:
            note_source(error, reading)
            continue
        for kind, one in found:
            # What vLLM says is read besides what torch says in the same log.
            real = os.path.realpath(one), kind == "vLLM log"
            if real not in seen:
                seen.add(real)
                yield kind, one


def _nothing_in(path: str) -> SourceError:
    what = "directory" if os.path.isdir(path) else "file"
    with contextlib.suppress(OSError):
        if not (os.listdir(path) if os.path.isdir(path) else os.path.getsize(path)):
            return SourceError(path, f"this {what} is empty", "empty")
    message = f"this {what} holds no trace, text log, cache entry or snapshot of torch.compile"
    head = b"" if what == "directory" else head_of(path)
    counted = counters_said(head)
    if line := next(filter(in_another_form, head.split(b"\n")), None):
        quoted = line.decode("utf-8", "backslashreplace").strip()[:_LONGEST_QUOTE]
        message = f"a line of torch.compile stands in this file, in a form that torch 2.4 to 2.15 does not write, so that nothing of it is read: {quoted}"
    elif counted:
        message = "no line of a lookup stands in this file: TORCH_LOGS was not set, standard error went elsewhere, or loggers were disabled, which of these is not known"
    return SourceError(path, f"{message}{counted}; {HOW_TO_RECORD}", "unknown_source")


def head_of(path: str) -> bytes:
    """The first bytes of a file, unpacked; none of one that cannot be read."""
    with contextlib.suppress(SourceError):
        return read_head(path, LOG_HEAD_BYTES)
    return b""


def counters_said(head: bytes) -> str:
    """What a program printed of ``torch._dynamo.utils.counters["inductor"]``, as a sentence: a log without a lookup may have it."""
    # They are printed again and again, also by another process, which counts from the beginning.
    found = (
        ", ".join(f"{int(count):,} {state.decode()}" for state, count in _COUNTER.findall(printed))
        for printed in head.split(b"}")
    )
    counted = listed((text for text, _ in groupby(filter(None, found))), _PRINTED_SHOWN, "; then ")
    return f". torch's counters, printed there, say of the FX cache: {counted}" if counted else ""


def _expand(path: str) -> list[str]:
    if is_address(path) or os.path.lexists(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not matches:
        raise SourceError(path or "''", "there is no such file or directory", "missing")
    return matches


def _find(path: str, reading: Reading) -> Iterator[tuple[Kind, str]]:
    """The sources at a path and below it; what may not be read becomes a problem."""
    # A list rather than a call for each folder: folders may be nested more deeply than calls may.
    waiting: list[tuple[str, list[int] | None]] = [(path, None)]
    left = _MOST_ARCHIVED
    silent: set[str] = set()
    while waiting:
        one, unpackable = waiting.pop()
        if is_redis(one):
            yield "redis", one
        elif is_address(one):
            yield from _find_remote(one, reading)
        elif looks_like_cache_dir(one):
            yield "directory", one
            if os.path.isdir(one):
                yield from _logs_in_cache(one, reading)
        elif os.path.isdir(one):
            waiting += [(child, unpackable) for child in reversed(_children(one, path, reading))]
            if holds_a_note(one):
                silent.add(one.rstrip(os.sep))
        elif not _is_archive(one):
            for kind, file in _find_file(one, reading, is_given=one == path):
                yield kind, file
                if kind in _LOGS:
                    silent.discard(os.path.dirname(file))
        else:
            from cachescope.readers.archives import MOST_TIMES, unpacked

            try:
                size = 0 if one == path else os.path.getsize(one)
                if size > left:
                    # What lies beside logs may be a dataset.
                    message = f"was not looked into, as one of more than {file_size(_MOST_ARCHIVED)} of archives: give it by itself"
                    raise SourceError(one, message, "limit")
                left -= size
                # What is in an archive counts as it.
                unpackable = unpackable or [MOST_TIMES * (os.path.getsize(one) + 1)]
                waiting.append((unpacked(one, unpackable), unpackable))
            except SourceError as error:
                note_source(error, reading)
            except FileNotFoundError:
                continue  # it vanished meanwhile
    for folder in sorted(silent):
        note_source(SourceError(folder, _SILENT_RUN, "unknown_source"), reading)


def _is_archive(path: str) -> bool:
    with contextlib.suppress(SourceError):
        check_is_stored(path)
        head = read_head(path, PROBE_BYTES) if os.path.isfile(path) else b""
        if is_zip(head):
            from cachescope.readers.archives import is_archive

            return is_archive(path)
        return is_tar(head)
    return False


def _children(folder: str, given: str, reading: Reading) -> list[str]:
    """The files and folders in a folder, by name; it lies in the one that was given."""
    try:
        check_is_stored(folder)
        names = sorted(os.listdir(folder))
        more = [one for one in SOURCES if one in names][1:]
        children = [os.path.join(folder, name) for name in names if name not in more]
    except SourceError as error:
        note_source(error, reading)
        return []
    except OSError as error:
        note_source(SourceError(folder, f"cannot be read: {error.strerror or error}"), reading)
        return []
    return [child for child in children if _is_looked_into(child, given, reading)]


def _is_looked_into(path: str, given: str, reading: Reading) -> bool:
    if os.path.islink(path) and os.path.isdir(path) and not is_linked_root(path):
        # It may lead anywhere, even back into the directory; only links to a cache are followed.
        within, root = (os.path.join(os.path.realpath(one), "") for one in (path, given))
        if not within.startswith(root):
            note_source(SourceError(path, _NOT_FOLLOWED, "unknown_source"), reading)
        return False
    return os.path.isdir(path) or os.path.isfile(path)


def _find_file(path: str, reading: Reading, *, is_given: bool = False) -> Iterator[tuple[Kind, str]]:
    try:
        yield from ((kind, path) for kind in _kinds_of_file(path, is_given))
    except SourceError as error:
        note_source(error, reading)


def _find_remote(address: str, reading: Reading) -> Iterator[tuple[Kind, str]]:
    """The logs at an address; cache directories are read only from local paths."""
    from concurrent.futures import ThreadPoolExecutor

    found = addresses(address)
    with ThreadPoolExecutor(_OPEN_AT_ONCE) as threads:
        for kind, one in zip(threads.map(_kind_at_address, found), found, strict=True):
            if isinstance(kind, SourceError):
                note_source(kind, reading)
            elif kind is not None:
                yield kind, one


def _logs_in_cache(path: str, reading: Reading) -> Iterator[tuple[Kind, str]]:
    """Logs in a cache directory, or in a folder of it that is not torch's."""
    around = TREE if place_of(path) is TREE else ROOT
    with contextlib.suppress(OSError), os.scandir(path) as items:
        strange = [item for item in items if not _is_of_cache(item, around)]
        for item in sorted(strange, key=lambda item: item.name):
            within = os.path.join(glob.escape(item.path), "*")
            for name in [item.path] if item.is_file() else sorted(glob.glob(within)):
                if os.path.isfile(name):
                    yield from _find_file(name, reading)


def _is_of_cache(item: os.DirEntry[str], around: Place) -> bool:
    rules = around.files if item.is_file() else around.folders
    known = any(rule.match(item.name) for rule in rules)
    return item.is_symlink() or known or (item.is_dir() and looks_like_cache_dir(item.path))


def _kinds_of_file(path: str, is_given: bool) -> Sequence[Kind]:
    """What a file is. A log that is given itself is searched to its end."""
    if not os.path.exists(path):
        raise SourceError(path, "this link leads nowhere", "missing")
    if not os.access(path, os.R_OK):
        raise SourceError(path, "cannot be read: permission denied")
    check_is_stored(path)
    if is_log_file(path):
        return ["logs in columns"]
    head = read_head(path, LOG_HEAD_BYTES)
    if shipped_kind(path, head) is not None:
        return ["shipped"]
    if looks_like_snapshot(head):
        return ["snapshot"]
    if looks_like_dump(head):
        return ["dump"]
    found = kinds_of_log(path, head)
    if not found and holds_mega_cache(head):
        # By pickle or torch.save.
        message = "what torch.compiler.save_cache_artifacts() returns is packed into this file: write its first value, the bytes, to a file of its own"
        raise SourceError(path, message, "unknown_source")
    # A program may print for hours before it compiles. A log that was cut while it was written begins with zeros.
    if found or len(head) < LOG_HEAD_BYTES or b"\0" in head.lstrip(b"\0"):
        return found
    if not is_given:
        # Beside logs lie profiles, pages and data.
        if not head.lstrip().startswith((b"{", b"[", b"<")):
            raise SourceError(path, _NOT_SEARCHED, "limit")
        return found
    before = b""
    with open_bytes(path) as stream, contextlib.suppress(*FAILURES):
        while not found and (piece := stream.read(LOG_HEAD_BYTES)):
            found = kinds_of_log(path, before + piece)
            before = piece[-PROBE_BYTES:]
    return found


def _kind_at_address(address: str) -> Kind | SourceError | None:
    try:
        heads = (read_head(address, size) for size in (PROBE_BYTES, LOG_HEAD_BYTES))
        return next(filter(None, (kind_of_log(address, head) for head in heads)), None)
    except SourceError as error:
        return error
