"""Reads one file of a cache, passes it to the reader of its kind, and marks it if it is damaged or was not read."""

from __future__ import annotations

from collections.abc import Callable

from cachescope.errors import CachescopeError
from cachescope.readers.pickles.inert_pickle import Limits, NotRead, UnreadablePickle
from cachescope.readers.reading import Entry, Reading
from cachescope.readers.steady_file import read_steady
from cachescope.terms import UNREADABLE

ReadFile = Callable[[Entry, str, str, Reading], bool]
"""Fills the row of a file, given its path and name; returns False if the file no longer exists."""

Fill = Callable[[Entry, str, bytes, Reading], None]
"""Fills the row of a file from its name and bytes; raises `DamagedContent` or `UnreadablePickle`."""


class DamagedContent(CachescopeError):  # noqa: N818 - what it is
    """The content of a file is damaged.

    Attributes
    ----------
    what : str
        What is wrong.
    offset : int or None
        The offset of the damage, if known.
    """

    def __init__(self, what: str, offset: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.offset = offset


def content_reader(fill: Fill) -> ReadFile:
    """Make a reader of whole files from a function that takes their bytes."""

    def read(entry: Entry, path: str, name: str, reading: Reading) -> bool:
        data = read_bytes(entry, path, reading)
        if data is None:
            return entry.status == UNREADABLE
        try:
            if not data:
                raise DamagedContent("empty file")
            if len(data) > Limits().size_bytes:
                raise NotRead(f"more than {Limits().size_bytes} bytes: not read")
            fill(entry, name, data, reading)
        except NotRead as error:
            mark_unreadable(entry, error.what, error.offset, reading)
        except (DamagedContent, UnreadablePickle) as error:
            mark_damaged(entry, error.what, error.offset, reading)
        return True

    return read


def read_bytes(entry: Entry, path: str, reading: Reading) -> bytes | None:
    """The bytes of a file, at most one more than the limit; None if it no longer exists or cannot be read.

    The row gets the size and the times at the moment of reading. A file that cannot be read is marked unreadable, not
    damaged: the user who runs torch may have the permission.
    """
    try:
        data, found = read_steady(path, Limits().size_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        mark_unreadable(entry, error.strerror or str(error), None, reading)
        return None
    entry.size_bytes, entry.modified_time_ns = found.st_size, found.st_mtime_ns
    entry.changed_time_ns = found.st_ctime_ns
    return data


def mark_damaged(entry: Entry, damage: str, offset: int | None, reading: Reading) -> None:
    """Note the damage in the row and in the problems."""
    _mark(entry, "damaged", "damaged_entry", damage, offset, reading)


def mark_unreadable(entry: Entry, why: str, offset: int | None, reading: Reading) -> None:
    """Note in the row and in the problems why a file was not read, or not completely; no damage is known."""
    _mark(entry, UNREADABLE, UNREADABLE, why, offset, reading)


def _mark(entry: Entry, status: str, kind: str, what: str, offset: int | None, reading: Reading) -> None:
    entry.status = status
    entry.damage = well_formed(what)
    reading.problem(entry.path, "" if offset is None else f"byte {offset}", kind, entry.damage)


def well_formed(text: str) -> str:
    """A text that can be encoded: half a surrogate pair, which JSON may contain, becomes an escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
