"""Hashes of compiled files, to compare their contents; a file is read only when its hash is needed."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Final

_MOST_BYTES: Final = 256 << 20
_AT_A_TIME: Final = 1 << 20


def content_hash(path: str) -> str | None:
    """sha256 of a file; None if it is missing, no regular file, not readable, or bigger than 256 MB."""
    try:
        # Without blocking: the path may have become a pipe since it was listed.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
                return None
            made, left = hashlib.sha256(), _MOST_BYTES
            while left > 0 and (part := file.read(min(_AT_A_TIME, left))):
                made.update(part)
                left -= len(part)
    except OSError:
        return None
    return made.hexdigest()
