"""The directory at the end of a zip archive: how large it says it is, before anyone makes objects of it."""

from __future__ import annotations

import os
import struct
import zipfile
from typing import IO, Final

from cachescope.readers.pickles.inert_pickle import NotRead

# Some forty thousand members; each becomes an object of half a kilobyte.
_MOST_BYTES: Final = 4 << 20
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_LONGEST_COMMENT: Final = 1 << 16
_LOCATOR: Final = b"PK\x06\x07"
_LOCATOR_BYTES: Final = 20
_END_64: Final = struct.Struct("<4sQHHIIQQQQ")


def check_directory(file: IO[bytes]) -> None:
    """Check that the directory of an archive is there and not too large; its size is where `zipfile` reads it.

    Raises
    ------
    zipfile.BadZipFile
        If there is none.
    NotRead
        If it has more than 4 MiB.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END_BYTES - _LONGEST_COMMENT - _LOCATOR_BYTES - _END_64.size))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        raise zipfile.BadZipFile("it has no directory: it was cut")
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    locator = at - _LOCATOR_BYTES
    if locator >= _END_64.size and tail.startswith(_LOCATOR, locator):
        length = max(length, _END_64.unpack_from(tail, locator - _END_64.size)[8])
    if length > _MOST_BYTES:
        raise NotRead(f"its directory has {length} bytes: not read")
