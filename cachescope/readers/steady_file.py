"""Reads one file of a cache that may be in use: complete, at one moment, and never from a pipe."""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO
from typing import Final

_ATTEMPTS: Final = 3
# A file may be replaced by a pipe after it was listed: opening must not wait for a writer, nor follow a link.
_FLAGS: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


def read_steady(path: str, most: int) -> tuple[bytes, os.stat_result]:
    """Read a file, and read it again if it changed meanwhile; return its bytes, and its size and time at that moment.

    Parameters
    ----------
    path : str
        A regular file.
    most : int
        The number of bytes to read at most.

    Raises
    ------
    FileNotFoundError
        If it no longer exists, or is no longer a regular file.
    OSError
        If it cannot be read.
    """
    for _ in range(_ATTEMPTS):
        data, before, after = _read(path, most)
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
            break
    return data, after


def _read(path: str, most: int) -> tuple[bytes, os.stat_result, os.stat_result]:
    try:
        with open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | _FLAGS)) as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise FileNotFoundError(errno.ENOENT, "is no file any more", path)
            # Not `most` at once: Python would allocate that much before it reads a byte.
            data = _bytes_of(file, min(before.st_size + 1, most))
            return data, before, os.fstat(file.fileno())
    except (IsADirectoryError, NotADirectoryError) as error:
        raise FileNotFoundError(errno.ENOENT, "is no file any more", path) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            raise FileNotFoundError(errno.ENOENT, "is no file any more", path) from error
        raise


def _bytes_of(file: FileIO, most: int) -> bytes:
    data = file.read(most)
    if len(data) >= most - 1:
        return data
    parts = [data]  # the system may return less than requested
    while parts[-1] and (most := most - len(parts[-1])):
        parts.append(file.read(most))
    return b"".join(parts)
