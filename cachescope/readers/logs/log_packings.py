r"""Undoes packings: forms in which a log file does not hold the bytes as the process wrote them.

Windows and terminals end lines with ``\r\n``, PowerShell writes UTF-16, docker's json-file driver one object per line, and
container runtimes (CRI) a stamp before each line. The last two split lines at 16 kB. All are recognized by their first bytes.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import IO, Final

from cachescope.readers.json_record import load_json

_PIECE_BYTES: Final = 1 << 17
# A longer line is returned in parts: docker and container runtimes split lines at 16 kB.
_MOST_BYTES_OF_A_LINE: Final = 16 << 20
_BOMS: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_CRI: Final = re.compile(rb"\d{4}-\d\d-\d\dT\S+ (?P<stream>stdout|stderr) (?P<part>[FP]) ")
_DOCKER: Final = re.compile(rb'\{"log": ?"')

Unpack = Callable[[IO[bytes]], Iterator[bytes]]


def unpacking(head: bytes) -> Unpack | None:
    """The function that restores the original bytes of a log with this beginning; None if the log is not packed."""
    if head[:2] in _BOMS:
        return _from_utf16
    if _DOCKER.match(head):
        return _from_docker
    if _CRI.match(head):
        return _from_cri
    ends = head.count(b"\n")
    return _from_crlf if ends and ends == head.count(b"\r\n") else None


class Unpacked(io.RawIOBase):
    """The restored bytes as a stream."""

    def __init__(self, stream: IO[bytes], unpack: Unpack) -> None:
        self._stream = stream
        self._pieces = unpack(stream)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, space: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer from at most one piece; return 0 after the last."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(space), len(self._rest))
        space[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        """Close the underlying stream, too."""
        self._stream.close()
        super().close()


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(_PIECE_BYTES):
        yield piece


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Lines with their ends; the last may have none."""
    rest = b""
    for piece in _pieces(stream):
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        for line in lines:
            yield line + b"\n"
        if len(rest) > _MOST_BYTES_OF_A_LINE:
            yield rest
            rest = b""
    if rest:
        yield rest


def _from_utf16(stream: IO[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(_BOMS[stream.read(2)])("replace")
    for piece in _pieces(stream):
        yield decoder.decode(piece).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _from_crlf(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in _pieces(stream):
        piece = rest + piece
        rest = b"\r" if piece.endswith(b"\r") else b""
        yield piece[: len(piece) - len(rest)].replace(b"\r\n", b"\n")
    yield rest


def _from_docker(stream: IO[bytes]) -> Iterator[bytes]:
    return _whole_lines(map(_docker_line, _lines(stream)))


def _docker_line(line: bytes) -> tuple[str, bytes]:
    try:
        record = load_json(line)
        return str(record.get("stream")), record["log"].encode()
    except (ValueError, KeyError, AttributeError):
        # Cut short, or not docker's: a line of its own.
        return "", b"\n"


def _from_cri(stream: IO[bytes]) -> Iterator[bytes]:
    return _whole_lines(map(_cri_line, _lines(stream)))


def _cri_line(line: bytes) -> tuple[str, bytes]:
    match = _CRI.match(line)
    if match is None:
        return "", line
    text = line[match.end() :]
    return match["stream"].decode(), text.removesuffix(b"\n") if match["part"] == b"P" else text


def _whole_lines(parts: Iterator[tuple[str, bytes]]) -> Iterator[bytes]:
    """Lines of several streams, each yielded once it is complete."""
    begun: dict[str, list[bytes]] = defaultdict(list)
    held = 0
    for stream, text in parts:
        begun[stream].append(text)
        held += len(text)
        if text.endswith(b"\n") or held > _MOST_BYTES_OF_A_LINE:
            line = b"".join(begun.pop(stream))
            held -= len(line)
            yield line
    for texts in begun.values():
        yield b"".join(texts)
