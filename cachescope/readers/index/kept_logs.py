"""Logs that were read before, kept under the user's cache folder so that opening them again is instant.

A file per log: a line that says of what, and the log's row of `log_tables.SCHEMA` in Arrow's format. What does not
match the log as it is now, or its own checksum, does not exist: the log is read anew. One that has only grown
since is read from where it ended. Nothing here is an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cachescope.readers.directory.default_root import default_root
from cachescope.readers.index.log_state import FORMAT, has_grown, is_quiet, log_state

if TYPE_CHECKING:
    import pyarrow as pa

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
    """A folder of logs that were read before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_user(cls) -> Index:
        """The one under the user's cache folder."""
        from platformdirs import user_cache_path

        return cls(user_cache_path("cachescope", appauthor=False) / "logs")

    def logs(self) -> list[KeptLog]:
        """What is kept, the last used first."""
        found = []
        for file in self._files():
            with contextlib.suppress(OSError, KeyError):
                about, at = _about(file), os.stat(file)
                if about is not None:
                    log = about["log"]
                    found.append(KeptLog(log["path"], log["size"], at.st_size, at.st_mtime))
        return sorted(found, key=lambda log: log.used_s, reverse=True)

    def clear(self) -> None:
        """Remove everything.

        Raises
        ------
        OSError
            If a file cannot be removed.
        """
        with _locked(self.folder):
            for file in [*self._files(), *self._unfinished()]:
                file.unlink(missing_ok=True)

    def kept(self, path: str) -> Kept | None:
        """Where a log is kept or would be; None for one that is too small to be, or is no file."""
        try:
            state = log_state(path)
        except OSError:
            return None
        if state is None:
            return None
        # A link of another name may tell of another rank.
        name = hashlib.blake2b(
            f"{state['path']}\0{state['name']}".encode("utf-8", "surrogatepass"), digest_size=20
        )
        return Kept(self, path, self.folder / f"{name.hexdigest()}{_SUFFIX}", state)

    def trim(self, limit_bytes: int = LIMIT_BYTES) -> None:
        """Remove what was not used for longest until the rest is no larger than the limit."""
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
    """The place of one log in the index, and what the log was when that was asked."""

    index: Index
    path: str
    file: Path
    log: dict[str, Any]

    def is_of_use(self) -> bool:
        """Whether the log is kept as it is now, or as it was when it was shorter; its columns are not looked at."""
        about = _about(self.file)
        return about is not None and (self._is_current(about) or self._is_grown(about))

    def is_same_file(self) -> bool:
        """Whether the log is now what it was when that was asked, or that with more behind it."""
        try:
            now = log_state(self.path)
            return now is not None and (now == self.log or has_grown(self.log, now))
        except OSError:
            return False

    def as_it_is(self, source: str) -> LogTables | None:
        """The log under the source it is read from now; None if it has to be read."""
        about = _about(self.file)
        return self._load(about, source) if about is not None and self._is_current(about) else None

    def as_it_was(self, source: str) -> LogTables | None:
        """The log when it was shorter, to go on from; None if it is another one, or cannot be gone on from."""
        about = _about(self.file)
        return self._load(about, source) if about is not None and self._is_grown(about) else None

    def _is_current(self, about: dict[str, Any]) -> bool:
        return about["is_settled"] and bool(about["log"] == self.log)

    def _is_grown(self, about: dict[str, Any]) -> bool:
        try:
            return about["can_go_on"] and has_grown(about["log"], self.log)
        except OSError:
            return False

    def _load(self, about: dict[str, Any], source: str) -> LogTables | None:
        import pyarrow as pa

        from cachescope.readers.index.log_tables import SCHEMA, LogTables

        try:
            data = self.file.read_bytes()
            body = memoryview(data)[data.index(b"\n", len(_MAGIC)) + 1 :]
            if _checksum(about, body) != about["checksum"]:
                return None
            options = pa.ipc.IpcReadOptions(use_threads=False)
            with pa.ipc.open_file(pa.BufferReader(body), options=options) as file:
                table = file.read_all()
            if table.schema != SCHEMA:
                return None
            os.utime(self.file)
        except (OSError, ValueError, pa.ArrowException):
            return None
        (tables,) = LogTables.from_arrow(table, source)
        return tables

    def store(self, table: pa.Table) -> None:
        """Keep the log, if nothing wrote to it since it was looked at; that it cannot be kept is no error.

        One that was written to just now is kept only to go on from.
        """
        import pyarrow as pa

        is_settled = is_quiet(self.log)
        ends = table["processes"].chunk(0).flatten().field("end_state")
        can_go_on = len(ends) > 0 and ends[0].is_valid
        try:
            if log_state(self.path) != self.log or not (is_settled or can_go_on):
                return
            stream = io.BytesIO()
            # Not Parquet: it takes ten times as long to open, for columns as nested as these.
            with pa.ipc.new_file(
                stream, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
            ) as file:
                file.write_table(table)
            body = stream.getbuffer()
            about = {"log": self.log, "is_settled": is_settled, "can_go_on": can_go_on}
            head = json.dumps({**about, "checksum": _checksum(about, body)}).encode()
            self.index.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _locked(self.index.folder):
                _write(self.file, [_MAGIC, head, b"\n", body])
        except (OSError, NotImplementedError):
            return


def index_of_user() -> Index | None:
    """The user's index; None where it is switched off, or where torch keeps a cache."""
    if os.environ.get(OFF):
        return None
    index = Index.of_user()
    is_torchs = Path(os.path.realpath(index.folder)).is_relative_to(os.path.realpath(default_root()))
    return None if is_torchs else index


def _about(file: Path) -> dict[str, Any] | None:
    """The line at the head of a kept log."""
    try:
        with open(file, "rb") as stream:
            if stream.readline(len(_MAGIC)) != _MAGIC:
                return None
            about = json.loads(stream.readline(1 << 16))
    except (OSError, ValueError):
        return None
    is_ours = isinstance(about, dict) and about.keys() == _NAMES and isinstance(about["log"], dict)
    return about if is_ours and about["log"].get("format") == FORMAT else None


def _checksum(about: dict[str, Any], body: memoryview) -> str:
    """Of the columns, and of all that is said about them."""
    found = hashlib.blake2b(body, digest_size=16)
    found.update(json.dumps({name: about[name] for name in _NAMES - {"checksum"}}, sort_keys=True).encode())
    return found.hexdigest()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    from filelock import FileLock

    if not folder.is_dir():
        yield
        return
    with FileLock(folder / "lock", timeout=_LOCK_SECONDS):
        yield


def _write(file: Path, pieces: list[bytes | memoryview]) -> None:
    """Write beside and rename: nobody reads half of it, and an interrupt leaves nothing."""
    descriptor, name = tempfile.mkstemp(suffix=_UNFINISHED, dir=file.parent)
    try:
        with open(descriptor, "wb") as stream:
            stream.writelines(pieces)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
