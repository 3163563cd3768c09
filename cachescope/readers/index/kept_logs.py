"""Keeps logs that were read before under the user's cache folder: opening them again is instant.

There is a file per log: a line with the state of the log, and compressed the same line with that of `log_tables` which holds
the log. A file that does not match the current log or itself is ignored, and the log is read again from the start. If the log
has only grown, reading continues where it ended. A log that is too young to be trusted is not kept. No failure here is an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cachescope.readers.directory.default_root import default_root
from cachescope.readers.json_record import load_json
from cachescope.readers.logs.byte_source import zstd
from cachescope.version import __version__
from cachescope.whole_file import write_whole

if TYPE_CHECKING:
    from cachescope.readers.index.log_tables import LogTables

OFF: Final = "CACHESCOPE_NO_INDEX"
LIMIT_BYTES: Final = 2 << 30
_MAGIC: Final = b"cachescope index\n"
_CHECKED: Final[dict[int, int]] = {zstd.CompressionParameter.checksum_flag: 1}
_SUFFIX: Final = ".log_index"
_LOCK_SECONDS: Final = 10
_STALE_SECONDS: Final = 3600
FORMAT: Final = 8
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
    names, times = (os.path.realpath(path), os.path.basename(path)), (at.st_mtime_ns, at.st_ctime_ns)
    offset_s, probe = time.localtime(at.st_mtime).tm_gmtoff, _probe(path, at.st_size)
    return LogState(FORMAT, _code(), *names, at.st_size, *times, at.st_ino, offset_s, probe)


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


@dataclass(frozen=True, slots=True)
class KeptLog:
    """One file of the index, as `cachescope cache` lists it."""

    path: str
    log_bytes: int
    kept_bytes: int
    used_s: float


class Index:
    """A folder with the rows of logs that were read before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_user(cls) -> Index:
        """The index under the user's cache folder."""
        from platformdirs import user_cache_path

        return cls(user_cache_path("cachescope", appauthor=False) / "logs")

    def logs(self) -> list[KeptLog]:
        """The kept logs, the last used first."""
        found = []
        for file in self._files():
            with contextlib.suppress(OSError):
                log, at = _state_in(file), os.stat(file)
                if log is not None:
                    found.append(KeptLog(log.path, log.size, at.st_size, at.st_mtime))
        return sorted(found, key=lambda log: log.used_s, reverse=True)

    def clear(self) -> None:
        """Remove everything."""
        with _locked(self.folder):
            for file in [*self._files(), *self._unfinished()]:
                file.unlink(missing_ok=True)

    def kept(self, path: str) -> Kept | None:
        """The place of a log in the index; None if it is too small for the index, or not a file."""
        try:
            state = log_state(path)
        except OSError:
            return None
        if state is None:
            return None
        # A link with another name may be another rank.
        name = hashlib.blake2b(f"{state.path}\0{state.name}".encode("utf-8", "surrogatepass"), digest_size=20)
        return Kept(self, path, self.folder / f"{name.hexdigest()}{_SUFFIX}", state)

    def trim(self, limit_bytes: int = LIMIT_BYTES) -> None:
        """Remove the least recently used logs until the rest is within the limit."""
        sizes = []
        for file in self._files():
            with contextlib.suppress(OSError):
                at = file.stat()
                sizes.append((at.st_mtime, at.st_size, file))
        total = sum(size for _, size, _ in sizes)
        for _, size, file in sorted(sizes):
            if total <= limit_bytes:
                break
            file.unlink(missing_ok=True)
            total -= size
        for file in self._unfinished():
            with contextlib.suppress(OSError):
                if time.time() - file.stat().st_mtime > _STALE_SECONDS:
                    file.unlink()

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{_SUFFIX}"))

    def _unfinished(self) -> list[Path]:
        return sorted(self.folder.glob(f".*{_SUFFIX}.*.tmp"))


@dataclass(frozen=True, slots=True)
class Kept:
    """The place of one log in the index, and the state of the log when it was requested."""

    index: Index
    path: str
    file: Path
    log: LogState

    def is_of_use(self) -> bool:
        """Whether the index has the log as it is now, or as it was when it was shorter; its columns are not checked."""
        before = _state_in(self.file)
        return before is not None and (before == self.log or has_grown(before, self.log))

    def is_same_file(self) -> bool:
        """Whether the log is still the same as when it was requested, or has only grown."""
        try:
            now = log_state(self.path)
            return now is not None and (now == self.log or has_grown(self.log, now))
        except OSError:
            return False

    def as_it_is(self) -> LogTables | None:
        """The kept log, with the source it is read from now; None if it has to be read."""
        return self._load(self.log.__eq__)

    def as_it_was(self) -> LogTables | None:
        """The log as it was when it was shorter; None if it is another log, or if reading cannot continue."""
        log = self._load(lambda before: has_grown(before, self.log))
        return log if log is not None and _can_go_on(log) else None

    def _load(self, is_it: Callable[[LogState], bool]) -> LogTables | None:
        from cachescope.readers.index.log_tables import LogTables

        before = _state_in(self.file)
        if before is None or not is_it(before):
            return None
        try:
            _, head, body = self.file.read_bytes().split(b"\n", 2)
            again, _, line = zstd.decompress(body).partition(b"\n")
            os.utime(self.file)
        except (OSError, ValueError, zstd.ZstdError):
            return None
        return LogTables.from_json(load_json(line), self.path) if again == head else None

    def store(self, log: LogTables) -> None:
        """Store the log, unless it was written to since it was requested; a failure is no error.

        A log that was written to just now is stored only as a start for a later reading, and none that fits no columns.
        """
        # No log has such times.
        state = self.log if is_quiet(self.log) else replace(self.log, mtime_ns=-1)
        line = log.to_json()
        try:
            if line is None or log_state(self.path) != self.log or not (state == self.log or _can_go_on(log)):
                return
            head = json.dumps(asdict(state)).encode() + b"\n"
            self.index.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _locked(self.index.folder):
                write_whole(self.file, _MAGIC + head + zstd.compress(head + line, options=_CHECKED))
        except (OSError, NotImplementedError):
            return


def _can_go_on(log: LogTables) -> bool:
    return bool(log.processes) and all(process.end_state for process in log.processes)


def index_of_user() -> Index | None:
    """The user's index; None if it is switched off, or if its folder is inside torch's cache."""
    if os.environ.get(OFF):
        return None
    index = Index.of_user()
    is_torchs = Path(os.path.realpath(index.folder)).is_relative_to(os.path.realpath(default_root()))
    return None if is_torchs else index


def _state_in(file: Path) -> LogState | None:
    """The first line of a kept log; None if it is invalid or of another version."""
    try:
        with open(file, "rb") as stream:
            is_one = stream.readline(len(_MAGIC)) == _MAGIC
            return LogState.of_json(json.loads(stream.readline(1 << 16))) if is_one else None
    except (OSError, ValueError, RecursionError):
        return None


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    from filelock import FileLock

    if not folder.is_dir():
        yield
        return
    with FileLock(folder / "lock", timeout=_LOCK_SECONDS):
        yield
