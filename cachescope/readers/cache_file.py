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


ReadFile = Callable[[EntryRow, str, str, Reading], None]
"""Fills the row of a file, given its path and name; raises what `marked` takes, and FileNotFoundError if it no longer exists."""

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

    def read(entry: EntryRow, path: str, name: str, reading: Reading) -> None:
        data = read_bytes(entry, path)
        if not data:
            raise DamagedContent("empty file")
        if len(data) > Limits().size_bytes:
            raise NotRead(f"more than {Limits().size_bytes} bytes: not read")
        fill(entry, name, data, reading)

    return read


@contextlib.contextmanager
def marked(entry: EntryRow, reading: Reading) -> Iterator[None]:
    """Mark an entry damaged or unreadable, in its row and in the problems, where reading its content fails.

    A file that cannot be read is unreadable, not damaged: the user who runs torch may have the permission.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except NotRead as error:
        _mark(entry, UNREADABLE, UNREADABLE, error.what, error.offset, reading)
    except (DamagedContent, UnreadablePickle) as error:
        _mark(entry, "damaged", "damaged_entry", error.what, error.offset, reading)
    except OSError as error:
        _mark(entry, UNREADABLE, UNREADABLE, error.strerror or str(error), None, reading)


def read_marked(read: ReadFile, entry: EntryRow, path: str, name: str, reading: Reading) -> bool:
    """Fill the row of a file, which is marked where that fails; False if the file no longer exists."""
    try:
        with marked(entry, reading):
            read(entry, path, name, reading)
    except FileNotFoundError:
        return False
    return True


def read_bytes(entry: EntryRow, path: str, most: int | None = None) -> bytes:
    """The bytes of a file, at most `most`, or one more than the limit; the row gets its size and times at that moment."""
    data, found = read_steady(path, most or Limits().size_bytes + 1)
    entry.take_times(found)
    return data


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
