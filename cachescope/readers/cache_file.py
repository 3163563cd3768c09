"""Reads one file of a cache that may be in use: complete, at one moment; it is marked if it is damaged or was not read."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from io import FileIO
from typing import Final

from cachescope.errors import CachescopeError
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.json_record import well_formed
from cachescope.readers.pickles.inert_pickle import Limits, NotRead, UnreadablePickle
from cachescope.readers.reading import Reading
from cachescope.terms import UNREADABLE
from cachescope.whole_file import opened

_ATTEMPTS: Final = 3


ReadFile = Callable[[EntryRow, str, str, Reading], bool]
"""Fills the row of a file, given its path and name; returns False if the file no longer exists."""

Fill = Callable[[EntryRow, str, bytes, Reading], None]
"""Fills the row of a file from its name and bytes; raises `DamagedContent` or `UnreadablePickle`."""


def read_steady(path: str, most: int) -> tuple[bytes, os.stat_result]:
    """Read a file, and read it again if it changed meanwhile; return its bytes, and its size and time at that moment."""
    for _ in range(_ATTEMPTS):
        with opened(path) as (file, before):
            # Not `most` at once: Python would allocate that much before it reads a byte.
            data, after = _bytes_of(file, min(before.st_size + 1, most)), os.fstat(file.fileno())
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
            break
    return data, after


def _bytes_of(file: FileIO, most: int) -> bytes:
    data = file.read(most)
    if len(data) >= most - 1:
        return data
    parts = [data]  # the system may return less than requested
    while parts[-1] and (most := most - len(parts[-1])):
        parts.append(file.read(most))
    return b"".join(parts)


class DamagedContent(CachescopeError):  # noqa: N818 - what it is
    """The content of a file is damaged."""

    def __init__(self, what: str, offset: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.offset = offset


def content_reader(fill: Fill) -> ReadFile:
    """Make a reader of whole files from a function that takes their bytes."""

    def read(entry: EntryRow, path: str, name: str, reading: Reading) -> bool:
        data = read_bytes(entry, path, reading)
        if data is None:
            return entry.status == UNREADABLE
        with marked(entry, reading):
            if not data:
                raise DamagedContent("empty file")
            if len(data) > Limits().size_bytes:
                raise NotRead(f"more than {Limits().size_bytes} bytes: not read")
            fill(entry, name, data, reading)
        return True

    return read


@contextlib.contextmanager
def marked(entry: EntryRow, reading: Reading) -> Iterator[None]:
    """Mark an entry damaged or unreadable where reading its content fails."""
    try:
        yield
    except NotRead as error:
        mark_unreadable(entry, error.what, error.offset, reading)
    except (DamagedContent, UnreadablePickle) as error:
        mark_damaged(entry, error.what, error.offset, reading)


def read_bytes(entry: EntryRow, path: str, reading: Reading, most: int | None = None) -> bytes | None:
    """The bytes of a file, at most `most`, or one more than the limit; None if it no longer exists or cannot be read.

    The row gets the size and the times at the moment of reading. A file that cannot be read is marked unreadable, not
    damaged: the user who runs torch may have the permission.
    """
    try:
        data, found = read_steady(path, most or Limits().size_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        mark_unreadable(entry, error.strerror or str(error), None, reading)
        return None
    entry.size_bytes, entry.modified_time = found.st_size, found.st_mtime_ns
    entry.changed_time = found.st_ctime_ns
    return data


def mark_damaged(entry: EntryRow, damage: str, offset: int | None, reading: Reading) -> None:
    """Note the damage in the row and in the problems."""
    _mark(entry, "damaged", "damaged_entry", damage, offset, reading)


def mark_unreadable(entry: EntryRow, why: str, offset: int | None, reading: Reading) -> None:
    """Note in the row and in the problems why a file was not read, or not completely; no damage is known."""
    _mark(entry, UNREADABLE, UNREADABLE, why, offset, reading)


def _mark(entry: EntryRow, status: str, kind: str, what: str, offset: int | None, reading: Reading) -> None:
    entry.status = status
    entry.damage = well_formed(what)
    reading.problem(entry.path, "" if offset is None else f"byte {offset}", kind, entry.damage)


def load_json(data: bytes) -> object:
    """Parse the bytes of a JSON file as torch and Triton write it: Python's own dialect, with ``Infinity``."""
    try:
        value: object = json.loads(data.decode("utf-8", "surrogatepass"))
    except json.JSONDecodeError as error:
        raise DamagedContent(f"no JSON: {error.msg}", error.pos) from error
    except (ValueError, RecursionError) as error:  # bad UTF-8, a number of too many digits, nested too deep
        raise DamagedContent(f"no JSON: {type(error).__name__}") from error
    return value


def load_object(data: bytes) -> dict[str, object]:
    """Parse the bytes of a JSON file that contains one object; raises `DamagedContent` like `load_json`."""
    value = load_json(data)
    if not isinstance(value, dict):
        raise DamagedContent(f"holds a JSON {type(value).__name__}, not an object")
    return value
