"""Log files as bytes: plain, compressed (gzip, zstandard, xz, bzip2) or packed otherwise, recognized by their first bytes.

Nothing here decodes text. Nothing maps a file into memory either: a log may shrink while it is read, and plain reads
are as fast.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import time
import zlib
from collections.abc import Callable
from typing import IO, Final

from cachescope.errors import SourceError
from cachescope.readers.logs.bounded import Bounded, TooMuchError
from cachescope.readers.logs.log_packings import Unpacked, unpacking
from cachescope.readers.logs.remote import address_modified_s, is_address, open_address

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_HEAD_BYTES: Final = 4096
# If the compression is damaged, the piece in which the damage shows is lost.
_PIECE_BYTES: Final = 1 << 17
# A request to a store takes as long as the transfer of some megabytes.
_AHEAD_BYTES: Final = 8 << 20
# A docker log may itself contain a docker log; nesting without end is an attack.
_MOST_PACKINGS: Final = 4
_FAILURES: Final = (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError)


def open_bytes(path: str, ahead_bytes: int = _AHEAD_BYTES) -> IO[bytes]:
    """Open a log for reading and decompress it on the fly; an address is read `ahead_bytes` at a time.

    Raises
    ------
    SourceError
        If the file does not exist or cannot be read.
    """
    try:
        raw = _open(path, ahead_bytes)
        head = raw.read(_HEAD_BYTES)
        raw.seek(0)
    except FileNotFoundError as error:
        raise SourceError(path, "there is no such file or directory") from error
    except io.UnsupportedOperation as error:
        raise SourceError(path, "cannot be read: a pipe; write it to a file first") from error
    except OSError as error:
        raise SourceError(path, f"cannot be read: {error.strerror or error}") from error
    decompress = next((opened for magic, opened in _COMPRESSED.items() if head.startswith(magic)), None)
    stream = raw
    if decompress is not None:
        head = _head_of(decompress(raw))
        raw.close()
        packed = _open(path, ahead_bytes)
        size = packed.seek(0, os.SEEK_END)
        packed.seek(0)
        stream = Bounded(decompress(packed), packed, size)  # type: ignore[assignment]
    for _ in range(_MOST_PACKINGS):
        unpack = unpacking(head)
        if unpack is None:
            break
        unpacked = io.BufferedReader(Unpacked(stream, unpack))
        stream, head = unpacked, _peek(unpacked)
    return stream


def _open(path: str, ahead_bytes: int) -> IO[bytes]:
    return open_address(path, ahead_bytes) if is_address(path) else open(path, "rb")


_COMPRESSED: Final[dict[bytes, Callable[[IO[bytes]], IO[bytes]]]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),  # type: ignore[dict-item, return-value]
    b"\x28\xb5\x2f\xfd": zstd.ZstdFile,  # type: ignore[dict-item]
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"BZh": bz2.BZ2File,
}
"""The function that opens a compressed file, by the file's first bytes."""


def _head_of(stream: IO[bytes]) -> bytes:
    try:
        with stream:
            return stream.read(_HEAD_BYTES)
    except _FAILURES:
        return b""


def _peek(stream: io.BufferedReader[Unpacked]) -> bytes:
    try:
        return stream.peek(_HEAD_BYTES)
    except _FAILURES:
        return b""


def read_head(path: str, size: int = 1 << 16) -> bytes:
    """The first bytes of a file, decompressed; if it is damaged, the bytes before the damage."""
    try:
        with open_bytes(path, ahead_bytes=size) as stream:
            return stream.read(size)
    except _FAILURES:
        return b""


def modified_s(path: str) -> float:
    """When a log was last written, in seconds since the epoch; now if it no longer exists."""
    if is_address(path):
        return address_modified_s(path)
    try:
        return os.stat(path).st_mtime
    except OSError:
        return time.time()


class Pieces:
    """A stream, or its first `size` bytes, read piece by piece. A failure ends it after all bytes before the failure."""

    def __init__(self, stream: IO[bytes], size: int | None = None) -> None:
        self._stream = stream
        self._left = sys.maxsize if size is None else size
        self.is_plain = isinstance(stream, io.BufferedReader) and not isinstance(stream.raw, Unpacked)
        self._failure: Exception | None = None

    def failure(self) -> tuple[str, str] | None:
        """The kind and the message of the problem that ended the stream early; None if it was read to its end.

        ``lost``: the disk or the store stopped sending. ``limit``: the file unpacks to far too much.
        ``damaged_compression``: the bytes arrived but do not unpack.
        """
        if self._failure is None:
            return None
        if isinstance(self._failure, TooMuchError):
            return "limit", str(self._failure)
        # Only errors of the system and of a store have a number.
        if isinstance(self._failure, OSError) and self._failure.errno is not None:
            return "lost", f"could not be read to its end: {self._failure.strerror}"
        return "damaged_compression", str(self._failure)

    def read_into(self, space: memoryview) -> int:
        """Fill the buffer and return the number of bytes read; fewer than its length only at the end."""
        have = 0
        space = space[: self._left]
        step = len(space) if self.is_plain else _PIECE_BYTES
        while have < len(space) and self._failure is None:
            try:
                read = self._stream.readinto(space[have : have + step])  # type: ignore[attr-defined]
            except _FAILURES as error:
                self._failure = error
                break
            if not read:
                break
            have += read
        self._left -= have
        return have
