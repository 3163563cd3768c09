"""Keeps logs that were read before under the user's cache folder: opening them again is instant.

There is a file per log: a line that identifies the log, and the line of `log_tables` that holds it, compressed. A file
that does not match the current log or its own checksum is ignored, and the log is read again from the start. If the log
has only grown, reading continues where it ended. No failure here is an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from cachescope.readers.directory.default_root import default_root
from cachescope.readers.index.log_state import LogState, has_grown, is_quiet, log_state
from cachescope.readers.logs.byte_source import zstd

if TYPE_CHECKING:
    from cachescope.readers.index.log_tables import LogTables

OFF: Final = "CACHESCOPE_NO_INDEX"
LIMIT_BYTES: Final = 2 << 30
_MAGIC: Final = b"cachescope index\n"
_SUFFIX: Final = ".log_index"
_UNFINISHED: Final = ".unfinished"
_NAMES: Final = {"log", "is_settled", "can_go_on", "checksum"}
_LOCK_SECONDS: Final = 10
_STALE_SECONDS: Final = 3600


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
                about, at = _about(file), os.stat(file)
                if about is not None:
                    found.append(KeptLog(about.log.path, about.log.size, at.st_size, at.st_mtime))
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
        return sorted(self.folder.glob(f"*{_UNFINISHED}"))


@dataclass(frozen=True, slots=True)
class Kept:
    """The place of one log in the index, and the state of the log when it was requested."""

    index: Index
    path: str
    file: Path
    log: LogState

    def is_of_use(self) -> bool:
        """Whether the index has the log as it is now, or as it was when it was shorter; its columns are not checked."""
        about = _about(self.file)
        return about is not None and (self._is_current(about) or self._is_grown(about))

    def is_same_file(self) -> bool:
        """Whether the log is still the same as when it was requested, or has only grown."""
        try:
            now = log_state(self.path)
            return now is not None and (now == self.log or has_grown(self.log, now))
        except OSError:
            return False

    def as_it_is(self, source: str) -> LogTables | None:
        """The kept log, with the source it is read from now; None if it has to be read."""
        return self._load(source, self._is_current)

    def as_it_was(self, source: str) -> LogTables | None:
        """The log as it was when it was shorter; None if it is another log, or if reading cannot continue."""
        return self._load(source, self._is_grown)

    def _is_current(self, about: _About) -> bool:
        return about.is_settled and about.log == self.log

    def _is_grown(self, about: _About) -> bool:
        try:
            return about.can_go_on and has_grown(about.log, self.log)
        except OSError:
            return False

    def _load(self, source: str, is_it: Callable[[_About], bool]) -> LogTables | None:
        from cachescope.readers.index.log_tables import LogTables

        about = _about(self.file)
        if about is None or not is_it(about):
            return None
        try:
            data = self.file.read_bytes()
            body = memoryview(data)[data.index(b"\n", len(_MAGIC)) + 1 :]
            if about.checksum_with(body) != about.checksum:
                return None
            os.utime(self.file)
        except (OSError, ValueError):
            return None
        return LogTables.from_json(orjson.loads(zstd.decompress(body)), source)

    def store(self, log: LogTables) -> None:
        """Store the log, unless it was written to since it was requested; a failure is no error.

        A log that was written to just now is stored only as a start for a later reading, and none that fits no columns.
        """
        is_settled = is_quiet(self.log)
        ends = [process.end_state for process in log.processes]
        can_go_on = bool(ends) and None not in ends
        line = log.to_json()
        try:
            if line is None or log_state(self.path) != self.log or not (is_settled or can_go_on):
                return
            body = zstd.compress(line)
            about = _About(self.log, is_settled, can_go_on)
            head = json.dumps(asdict(replace(about, checksum=about.checksum_with(body)))).encode()
            self.index.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _locked(self.index.folder):
                _write(self.file, [_MAGIC, head, b"\n", body])
        except (OSError, NotImplementedError):
            return


def index_of_user() -> Index | None:
    """The user's index; None if it is switched off, or if its folder is inside torch's cache."""
    if os.environ.get(OFF):
        return None
    index = Index.of_user()
    is_torchs = Path(os.path.realpath(index.folder)).is_relative_to(os.path.realpath(default_root()))
    return None if is_torchs else index


@dataclass(frozen=True, slots=True)
class _About:
    """The first line of a kept log."""

    log: LogState
    is_settled: bool
    can_go_on: bool
    checksum: str = ""

    def checksum_with(self, body: bytes | memoryview) -> str:
        """The checksum of the columns and of the other facts in the first line."""
        found = hashlib.blake2b(body, digest_size=16)
        facts = asdict(self)
        del facts["checksum"]
        found.update(json.dumps(facts, sort_keys=True).encode())
        return found.hexdigest()


def _about(file: Path) -> _About | None:
    """The first line of a kept log; None if it is invalid or of another version."""
    try:
        with open(file, "rb") as stream:
            if stream.readline(len(_MAGIC)) != _MAGIC:
                return None
            about = json.loads(stream.readline(1 << 16))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(about, dict) or about.keys() != _NAMES:
        return None
    log = LogState.of_json(about["log"])
    return None if log is None else _About(**{**about, "log": log})


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    from filelock import FileLock

    if not folder.is_dir():
        yield
        return
    with FileLock(folder / "lock", timeout=_LOCK_SECONDS):
        yield


def _write(file: Path, pieces: list[bytes | memoryview]) -> None:
    """Write a temporary file and rename it: nobody reads half a file, and an interrupt leaves nothing behind."""
    descriptor, name = tempfile.mkstemp(suffix=_UNFINISHED, dir=file.parent)
    try:
        with open(descriptor, "wb") as stream:
            stream.writelines(pieces)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
