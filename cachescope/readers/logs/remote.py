"""Finds and opens logs at addresses that fsspec knows, such as ``s3://…``, ``gs://…`` or ``abfs://…``.

fsspec is the extra `remote`; users choose the package of the store itself (s3fs, gcsfs, adlfs).
"""

from __future__ import annotations

import errno
import io
import re
import time
from typing import IO, Any, Final

from cachescope.errors import SourceError

# At least two letters: a single letter is a Windows drive.
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?:://|::)")
_BUFFER_BYTES: Final = 1 << 16


def is_address(path: str) -> bool:
    """Whether a path is an address rather than a path on this machine."""
    return _ADDRESS.match(path) is not None


def addresses(address: str) -> list[str]:
    """The files at an address: the file itself, the files below a folder, or the matches of a pattern."""
    fsspec = _fsspec(address)
    try:
        fs, path = fsspec.core.url_to_fs(address)
        # A pattern may match folders; their contents were not asked for.
        find = fs.glob if any(mark in path for mark in "*?[") else fs.find
        found = [name for name, about in dict(find(path, detail=True)).items() if about["type"] == "file"]
        named = [str(fs.unstrip_protocol(name)) for name in sorted(found)]
    except Exception as error:  # every store has its own exceptions
        raise SourceError(address, f"cannot be listed: {_error_text(error)}") from error
    if not named:
        raise SourceError(address, "there is no such file or directory")
    return named


def open_address(address: str, ahead_bytes: int) -> IO[bytes]:
    """Open a file at an address as a stream that raises `OSError` on failure, whatever the store."""
    fsspec = _fsspec(address)
    try:
        file = fsspec.open(address, "rb", block_size=ahead_bytes, cache_type="readahead").open()
    except FileNotFoundError as error:
        raise SourceError(address, "there is no such file or directory") from error
    except Exception as error:
        raise SourceError(address, f"cannot be opened: {_error_text(error)}") from error
    return io.BufferedReader(_Stream(file), _BUFFER_BYTES)


def address_modified_s(address: str) -> float:
    """When a file at an address was last written, in seconds since the epoch; now if the store does not know."""
    try:
        fs, path = _fsspec(address).core.url_to_fs(address)
        return float(fs.modified(path).timestamp())
    except Exception:
        return time.time()


class RawStream(io.RawIOBase):
    """A stream over others, which are closed with it."""

    def __init__(self, *files: Any) -> None:
        self._files = files

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the streams below, too."""
        if not self.closed:
            for file in self._files:
                file.close()
        super().close()


class _Stream(RawStream):
    """An fsspec file that raises an `OSError` with a number on every failure, like files of the system."""

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._files[0].seek(offset, whence))

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._files[0].read(len(buffer))
        except Exception as error:  # every store has its own exceptions
            raise OSError(errno.EIO, _error_text(error)) from error
        buffer[: len(data)] = data
        return len(data)


def _error_text(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _fsspec(address: str) -> Any:
    try:
        import fsspec
    except ImportError as error:
        message = "fsspec opens addresses, and is not installed: pip install 'cachescope[remote]'"
        raise SourceError(address, message) from error
    return fsspec
