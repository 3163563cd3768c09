"""Checks whether a lock file is held, without writing: torch's locks are ``filelock.FileLock``, which is ``flock``.

`filelock` itself opens a lock for writing and creates it if it is missing. Version 3.16, our lower bound, also
truncates it, which changes its time. Caches are never written, so the same call is made here on a read-only descriptor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import LockRow
from cachescope.terms import LOCK
from cachescope.whole_file import opened


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
