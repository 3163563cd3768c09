"""Files in use: one is opened for reading without waiting or following a link, and written at one stroke."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Final

# A file may be replaced by a pipe after it was listed: opening must not wait for a writer, nor follow a link.
_FLAGS: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextlib.contextmanager
def opened(path: str) -> Iterator[tuple[FileIO, os.stat_result]]:
    """Open a regular file, and say what it is by then; raises FileNotFoundError if something else has its place, such as a link."""
    try:
        with open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | _FLAGS)) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise FileNotFoundError(errno.ENOENT, "is no file any more", path)
            yield file, found
    except (IsADirectoryError, NotADirectoryError) as error:
        raise FileNotFoundError(errno.ENOENT, "is no file any more", path) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            raise FileNotFoundError(errno.ENOENT, "is no file any more", path) from error
        raise


def write_whole(target: Path, data: bytes) -> None:
    """Write a file, replacing one that is there: whoever reads it sees what was there before, or all that is there now.

    Where a link leads to it, the link stays. A pipe or a device, such as ``/dev/null``, is written to and stays as well.
    """
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    place = Path(os.path.realpath(target))
    part = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        part.write_bytes(data)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
