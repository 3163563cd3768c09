"""Looks at files of a cache again when they are needed: the source of one entry, hashes of compiled files, whether a lock is held.

torch's locks are ``filelock.FileLock``, which is ``flock``. `filelock` itself opens a lock for writing and creates it if it is missing.
Version 3.16, our lower bound, also truncates it, which changes its time. Caches are never written, so the same call is made here on a
read-only descriptor.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from typing import Final, NamedTuple

from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import LockRow
from cachescope.keys.paths import is_in_remote_cache
from cachescope.readers.cache_file import read_marked, read_steady
from cachescope.readers.directory.graph_entries import read_aotautograd_entry, read_fxgraph_entry
from cachescope.readers.reading import Reading
from cachescope.terms import (
    AOTAUTOGRAD,
    BEST_CONFIG,
    CODE,
    CUTLASS_CONFIGS,
    FXGRAPH,
    LOCK,
    MEMOIZER_DUMP,
    TRITON,
    UNREADABLE,
)
from cachescope.whole_file import opened

_GRAPHS: Final = {FXGRAPH: read_fxgraph_entry, AOTAUTOGRAD: read_aotautograd_entry}
_TEXTS: Final = {CODE, TRITON, BEST_CONFIG, CUTLASS_CONFIGS, MEMOIZER_DUMP}
# The name of a Pygments lexer for each ending.
_LANGUAGES: Final = {
    ".py": "python", ".cpp": "cpp", ".h": "cpp", ".cu": "cuda", ".json": "json", ".best_config": "json",
    ".ttir": "text", ".ttgir": "text", ".llir": "llvm", ".ptx": "text", ".source": "text",
}  # fmt: skip
_MOST_BYTES_OF_CODE: Final = 16 << 20

_MOST_BYTES_HASHED: Final = 256 << 20
_AT_A_TIME: Final = 1 << 20


class SourceCode(NamedTuple):
    """A source, or the reason why there is none."""

    text: str | None
    language: str = "text"
    why_not: str | None = None


def read_source_code(path: str, cache: str, cache_key: str | None) -> SourceCode:
    """Read the source in one file."""
    if is_in_remote_cache(path):
        return SourceCode(None, why_not="it is in a remote cache, which is not asked again")
    if cache in _GRAPHS:
        return _of_graph(path, cache, cache_key)
    language = _LANGUAGES.get(os.path.splitext(path)[1])
    if cache not in _TEXTS or language is None:
        return SourceCode(None, why_not="a file of this kind holds no source")
    try:
        data, _ = read_steady(path, _MOST_BYTES_OF_CODE + 1)
    except OSError as error:
        is_gone = isinstance(error, FileNotFoundError)
        return SourceCode(None, why_not=_gone(path) if is_gone else f"unreadable: {error.strerror or error}")
    if len(data) > _MOST_BYTES_OF_CODE:
        return SourceCode(None, why_not=f"more than {_MOST_BYTES_OF_CODE >> 20} MB: not read")
    return SourceCode(data.decode("utf-8", "backslashreplace"), language)


def source_of(file: EntryRow) -> str | None:
    """The generated source in a file of the frame ``entries``; None if it has none, or if it no longer exists."""
    return read_source_code(file.path, file.cache, file.cache_key).text


def _of_graph(path: str, cache: str, cache_key: str | None) -> SourceCode:
    again = EntryRow(cache=cache, path=path, cache_key=cache_key)
    # A separate reading: its other results are in the frames already.
    if not read_marked(_GRAPHS[cache], again, path, os.path.basename(path), Reading()):
        return SourceCode(None, why_not=_gone(path))
    if again.source_code is not None:
        # Wrappers are Python; with `cpp_wrapper`, Python around a string of C++.
        return SourceCode(again.source_code, "python")
    if again.status in ("damaged", UNREADABLE):
        return SourceCode(None, why_not=f"{again.status}: {again.damage}")
    if cache == AOTAUTOGRAD:
        return SourceCode(None, why_not="the source is in the FX entries it points to")
    return SourceCode(None, why_not="the entry holds none")


def _gone(path: str) -> str:
    # The frames contain such a path with escapes; no file has that name.
    return "the file is gone, or its path is not UTF-8" if "\\x" in path else "the file is gone"


def content_hash(path: str) -> str | None:
    """sha256 of a file; None if it is missing, no regular file, not readable, or bigger than 256 MB."""
    try:
        with opened(path) as (file, found):
            if found.st_size > _MOST_BYTES_HASHED:
                return None
            # Not more than that of a file that grows meanwhile.
            made, left = hashlib.sha256(), _MOST_BYTES_HASHED
            while left > 0 and (part := file.read(min(_AT_A_TIME, left))):
                made.update(part)
                left -= len(part)
    except OSError:
        return None
    return made.hexdigest()


def locks_of(entries: Iterable[EntryRow]) -> list[LockRow]:
    """The lock files, each tried once."""
    return [LockRow(row.entry, row.path, is_lock_held(row.path)) for row in entries if row.cache == LOCK]


def is_lock_held(path: str) -> bool | None:
    """Whether another process, or another descriptor of this one, holds a lock at this moment.

    The check requests a shared lock: it fails while a writer holds the file, and two readers do not affect each
    other. It does not wait, and releases the lock at once. A process that requests the lock in between finds
    it taken; ``filelock`` retries within 50 ms.
    """
    if sys.platform == "win32":  # a lock there is a locked byte, which cannot be tried without writing
        return None
    import fcntl

    try:
        with opened(path) as (file, _):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(file, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except (OSError, ValueError):  # no longer there, or a file system without locks
        return None
    return False
