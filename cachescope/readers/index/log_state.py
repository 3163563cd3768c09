"""Decides whether a log that was read before is unchanged or has only grown.

It also decides when a log is too young to be trusted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Final

from cachescope.version import __version__

FORMAT: Final = 7
# Reading a smaller log takes no longer than finding it in the index.
_LEAST_BYTES: Final = 4 << 20
# A log that was written to just now may change again within one tick of the file system's clock.
_QUIET_NS: Final = 2_000_000_000
_PROBES: Final = 16
_PROBE_BYTES: Final = 4096
_CHANGED_BY_GROWTH: Final = ("size", "mtime_ns", "ctime_ns", "probe")


@dataclass(frozen=True, slots=True)
class LogState:
    """The state that must be equal for a kept log to be valid: the file, and what else its reading depends on."""

    format: int
    code: str
    path: str
    name: str
    size: int
    mtime_ns: int
    ctime_ns: int
    """Every change of a file in place changes this time."""
    inode: int
    utc_offset_s: int
    """Times of a text log are read in this machine's time zone."""
    probe: str

    @classmethod
    def of_json(cls, values: object) -> LogState | None:
        """The state that was stored; None if another version stored it, or if it is invalid."""
        names = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or values.keys() != names or values["format"] != FORMAT:
            return None
        return cls(**values) if type(values["size"]) is int and isinstance(values["path"], str) else None


def log_state(path: str) -> LogState | None:
    """The state of a log now; None if it is too small to be kept, or no file."""
    at = os.stat(path)
    if not stat.S_ISREG(at.st_mode) or at.st_size < _LEAST_BYTES:
        return None
    return LogState(
        format=FORMAT,
        code=_code(),
        path=os.path.realpath(path),
        name=os.path.basename(path),
        size=at.st_size,
        mtime_ns=at.st_mtime_ns,
        ctime_ns=at.st_ctime_ns,
        inode=at.st_ino,
        utc_offset_s=time.localtime(at.st_mtime).tm_gmtoff,
        probe=_probe(path, at.st_size),
    )


def is_large_enough(path: str) -> bool:
    """Whether a file is so large that it may be kept."""
    try:
        return os.path.getsize(path) >= _LEAST_BYTES
    except OSError:
        return False


def has_grown(before: LogState, now: LogState) -> bool:
    """Whether a log is the same file as before but longer, and its probed blocks are unchanged.

    Logs are written at their end. Not every old byte is compared, only the first and the last block and some
    in between.
    """
    unchanged = {name: getattr(before, name) for name in _CHANGED_BY_GROWTH}
    if replace(now, **unchanged) != before or before.size >= now.size:
        return False
    with contextlib.suppress(OSError):
        return before.probe == _probe(now.path, before.size)
    return False


def _probe(path: str, size: int) -> str:
    """A hash of the first block, the last block, and some in between."""
    found = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        for number in range(_PROBES):
            file.seek((size - _PROBE_BYTES) * number // (_PROBES - 1))
            found.update(file.read(_PROBE_BYTES))
    return found.hexdigest()


@cache
def _code() -> str:
    """The version of cachescope and the state of the readers' source: a changed reader does not get old results."""
    found = hashlib.blake2b(__version__.encode(), digest_size=16)
    readers = Path(__file__).parent.parent
    for file in sorted([*readers.rglob("*.py"), *readers.parent.glob("*.py")]):
        with contextlib.suppress(OSError):
            at = file.stat()
            found.update(f"{file.name} {at.st_size} {at.st_mtime_ns}\n".encode())
    return found.hexdigest()


def is_quiet(state: LogState) -> bool:
    """Whether the last write was long enough ago that any later write changes the log's times."""
    return time.time_ns() - max(state.mtime_ns, state.ctime_ns) > _QUIET_NS
