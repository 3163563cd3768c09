"""Detects changed sources by the size and time of every file in them. No file is opened."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterable, Iterator

Stamps = dict[str, tuple[int, int]]


def stamps(sources: Iterable[str]) -> Stamps:
    """Size and modification time of all files at paths and glob patterns; files that do not exist are left out."""
    found: Stamps = {}
    for source in sources:
        for path in [source] if os.path.lexists(source) else glob.glob(source, recursive=True):
            found |= file_stamps([path])
            found.update(_below(path))
    return found


def file_stamps(paths: Iterable[str]) -> Stamps:
    """Size and modification time of files by their very names; those that do not exist are left out."""
    found: Stamps = {}
    for path in paths:
        # ValueError: a name that no file can have.
        with contextlib.suppress(OSError, ValueError):
            at = os.stat(path)
            found[path] = (at.st_size, at.st_mtime_ns)
    return found


def _below(folder: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The files in and below a directory; a file that vanishes meanwhile is left out."""
    with contextlib.suppress(OSError), os.scandir(folder) as items:
        for item in items:
            if item.is_dir(follow_symlinks=False):
                yield from _below(item.path)
                continue
            with contextlib.suppress(OSError):
                at = item.stat()
                yield item.path, (at.st_size, at.st_mtime_ns)
