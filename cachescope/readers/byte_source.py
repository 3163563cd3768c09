r"""Log files as bytes: plain, gzip or zstandard, told apart by their first bytes and cut at record starts.

Nothing here decodes: values hold newlines, NULs and escapes, so only ``\n`` ends a line.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import IO, Final

from cachescope.errors import SourceError

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
BLOCK_BYTES: Final = 32 << 20
# Damaged compression loses the piece in which it shows.
_PIECE_BYTES: Final = 1 << 17
_MOST_BYTES_OF_A_RECORD: Final = 1 << 30


def open_bytes(path: str) -> IO[bytes]:
    """Open a log for reading, decompressing as it is read.

    Raises
    ------
    SourceError
        If the file is not there or may not be read.
    """
    try:
        raw = open(path, "rb")  # noqa: SIM115 (the caller closes it)
    except FileNotFoundError as error:
        raise SourceError(path, "there is no such file or directory") from error
    except OSError as error:
        raise SourceError(path, f"cannot be read: {error.strerror}") from error
    magic = raw.read(4)
    raw.seek(0)
    if magic.startswith(_GZIP):
        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if magic == _ZSTD:
        import pyarrow as pa

        raw.close()
        return pa.input_stream(path, compression="zstd")  # type: ignore[no-any-return]
    return raw


def read_head(path: str, size: int = 1 << 16) -> bytes:
    """The first bytes of a file, decompressed; what could be read before damage."""
    try:
        with open_bytes(path) as stream:
            return stream.read(size)
    except (OSError, EOFError):
        return b""


def blocks(stream: IO[bytes], block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[int, bytes]]:
    """Cut a stream into blocks that end where a line without a leading tab begins.

    Yields
    ------
    offset : int
        Where the block begins, in decompressed bytes.
    block : bytes
        Whole records, except that the last block may end in the middle of one.

    Raises
    ------
    OSError, EOFError
        If the compressed data are damaged; everything before was yielded.
    """
    offset = 0
    rest = b""
    failure: Exception | None = None
    at_end = False
    while not at_end:
        pieces = [rest]
        while sum(map(len, pieces)) < block_bytes + len(rest) and not at_end:
            try:
                piece = stream.read(min(_PIECE_BYTES, block_bytes))
            except (OSError, EOFError) as error:
                piece, failure = b"", error
            at_end = not piece
            pieces.append(piece)
        data = b"".join(pieces)
        cut = len(data) if at_end else _last_record_start(data)
        if cut == 0 and len(data) > _MOST_BYTES_OF_A_RECORD:
            cut = len(data)
        if cut:
            yield offset, data[:cut]
        offset += cut
        rest = data[cut:]
    if failure is not None:
        raise failure


def _last_record_start(data: bytes) -> int:
    at = len(data)
    while (at := data.rfind(b"\n", 0, at)) >= 0:
        if at + 1 < len(data) and data[at + 1] != 0x09:
            return at + 1
    return 0
