r"""Log files as bytes: plain, compressed (gzip, zstandard, xz, bzip2) or packed otherwise, recognized by their first bytes.

Nothing here decodes text. Nothing maps a file into memory either: a log may shrink while it is read, and plain reads
are as fast.

Windows and terminals end lines with ``\r\n``, PowerShell writes UTF-16, docker's json-file driver one object per line, and
container runtimes (CRI) a stamp before each line. The last two split lines at 16 kB. Notebooks are JSON, exports of cloud logging
JSON or CSV, and exports often begin with the newest line. All are recognized by their first bytes.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import csv
import gzip
import io
import lzma
import os
import re
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, Final

from cachescope.errors import SourceError
from cachescope.readers.json_record import load_json
from cachescope.readers.logs import tlparse
from cachescope.readers.logs.remote import RawStream, address_modified_s, is_address, open_address

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

# A longer line is returned in parts: docker and container runtimes split lines at 16 kB.
_MOST_BYTES_OF_A_LINE: Final = 16 << 20
_BOMS: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_CRI: Final = re.compile(rb"\d{4}-\d\d-\d\dT\S+ (?P<stream>stdout|stderr) (?P<part>[FP]) ")
_DOCKER: Final = re.compile(rb'\{"log": ?"')

# torch/_logging/_internal.py, `TorchLogsFormatter`.
_STAMP: Final = re.compile(rb"[VIWEC](\d{4} \d\d:\d\d:\d\d\.\d{6}) (\d+) ")
# Found faster, as it begins with one certain byte.
_END_OF_STAMP: Final = re.compile(rb":\d\d:\d\d\.\d{6} \d+ ")
# What cells of a notebook printed, and messages as cloud logging exports them; fluentd writes a time and a tag before each.
_DOCUMENT: Final = re.compile(
    rb'\s*(?:\{\s*"cells":|(?:[^\n"{\[]{1,400}\t)?[\[{](?=.*?"[^"\n]{0,99}' + _STAMP.pattern + rb"))",
    re.DOTALL,
)
_TABLE: Final = re.compile(
    rb'[\w@". /-]{1,99}(?:,[\w@". /-]{1,99}){1,99}\r?\n(?=.*?[,\n]"?[^",\n]{0,99}' + _STAMP.pattern + rb")",
    re.DOTALL,
)
_MOST_BYTES_OF_JSON: Final = 64 << 20
_DEEPEST: Final = 8
"""In so many objects within each other a message stands at most."""
# nbformat splits what was printed by `str.splitlines`, which ends lines at these as well.
_LINE_ENDS: Final = tuple("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")

Unpack = Callable[[IO[bytes]], Iterator[bytes]]

# Logs compress to a tenth of their size, or to a three-hundredth if all lookups are alike.
_MOST_TIMES: Final = 1_000
_ALWAYS_BYTES: Final = 32 << 20

_HEAD_BYTES: Final = 4096
_LONGEST_HEAD_BYTES: Final = 4 << 20
# If the compression is damaged, the piece in which the damage shows is lost.
_PIECE_BYTES: Final = 1 << 17
# A request to a store takes as long as the transfer of some megabytes.
_AHEAD_BYTES: Final = 8 << 20
# A docker log may itself contain a docker log; nesting without end is an attack.
_MOST_PACKINGS: Final = 4
FAILURES: Final = (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError)


def unpacking(head: bytes) -> Unpack | None:
    """The function that restores the original bytes of a log with this beginning; None if the log is not packed."""
    if head[:2] in _BOMS:
        return _from_utf16
    for pattern, unpack in _PACKINGS.items():
        if pattern.match(head):
            return unpack
    if next(_steps(head), 1) < 0:
        return _lines_of_texts
    begin = head[:_HEAD_BYTES]
    return _from_crlf if b"\n" in begin and begin.count(b"\n") == begin.count(b"\r\n") else None


class Unpacked(RawStream):
    """The restored bytes as a stream."""

    def __init__(self, stream: IO[bytes], unpack: Unpack) -> None:
        super().__init__(stream)
        self._pieces = unpack(stream)
        self._rest = memoryview(b"")
        self._failure: Exception | None = None

    def readinto(self, space: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer from at most one piece; return 0 after the last."""
        while not self._rest:
            try:
                piece = next(self._pieces, None)
            except FAILURES as error:
                self._failure = error
            if self._failure is not None:
                # Again: a look at the first bytes may have met it before.
                raise self._failure
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(space), len(self._rest))
        space[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(_PIECE_BYTES):
        yield piece


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Lines with their ends; the last may have none, and a long one comes in parts."""
    buffered = io.BufferedReader(stream, _PIECE_BYTES)  # type: ignore[type-var]
    while line := buffered.readline(_MOST_BYTES_OF_A_LINE):
        yield line


def _from_utf16(stream: IO[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(_BOMS[stream.read(2)])("replace")
    yield from (decoder.decode(piece).encode("utf-8", "replace") for piece in _pieces(stream))
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _from_crlf(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in _pieces(stream):
        piece = rest + piece
        rest = b"\r" if piece.endswith(b"\r") else b""
        yield piece[: len(piece) - len(rest)].replace(b"\r\n", b"\n")
    yield rest


def _docker_line(line: bytes) -> tuple[str, bytes]:
    try:
        record = load_json(line)
        return str(record.get("stream")), record["log"].encode()
    except (ValueError, KeyError, AttributeError):
        # Cut short, or not docker's: a line of its own.
        return "", b"\n"


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
    yield from (b"".join(texts) for texts in begun.values())


def _lines_of_texts(stream: IO[bytes]) -> Iterator[bytes]:
    """The texts that stand where most of torch's lines do, or all lines where these are plain text; the oldest first."""
    following, failure = _lines(stream), None
    begun: list[bytes] = []
    left = _MOST_BYTES_OF_JSON
    try:
        while left > 0 and (line := next(following, b"")):
            begun.append(line)
            left -= len(line)
    except FAILURES as error:
        failure = error
    data = b"".join(begun)
    # One value, or one in each line.
    whole = _value(data) if left > 0 else ""
    values = list(map(_value, begun)) if isinstance(whole, str) else [whole]
    places = Counter(
        place
        for value in values
        for place, text in _texts(value)
        if _STAMP.search(text.encode("utf-8", "replace"))
    )
    logged = max(places, key=places.__getitem__, default=())
    if left <= 0 and not logged and (_TABLE.match(data) or data.lstrip().startswith((b"{", b"["))):
        raise TooMuchError(
            f"more than {_MOST_BYTES_OF_JSON:,} bytes of JSON or CSV: read only where each line is a JSON value"
        )
    lines = list(_texts_at(logged, values)) if logged else begun
    # Consoles of cloud logging show the newest line first, and so do their exports. Containers share pids: where two alternate, about
    # as many steps lead ahead as back.
    steps = Counter(_steps(b"".join(lines)))
    if steps[-1] > 2 * steps[1]:
        if left <= 0:
            raise TooMuchError(
                f"more than {_MOST_BYTES_OF_JSON:,} bytes that begin with the newest line: reverse it, as tac does"
            )
        lines = [line.removesuffix(b"\n") + b"\n" for line in reversed(lines)]
    yield from lines
    if failure is not None:
        raise failure
    yield from _texts_at(logged, map(_value, following)) if logged else following


def _texts_at(logged: tuple[str, ...], values: Iterable[Any]) -> Iterator[bytes]:
    """The texts that stand there, and those that are values themselves, as lines."""
    for place, text in (one for value in values for one in _texts(value)):
        if place in (logged, ()):
            yield (text if text.endswith(_LINE_ENDS) else f"{text}\n").encode("utf-8", "replace")


def _steps(data: bytes) -> Iterator[int]:
    """1 where a process of torch logs a later time than before, -1 where an earlier one."""
    before: dict[bytes, bytes] = {}
    for stamp, pid in (match.groups() for match in _STAMP.finditer(data)):
        last = before.setdefault(pid, stamp)
        if stamp != last:
            before[pid] = stamp
            yield 1 if stamp > last else -1


def _value(data: bytes) -> Any:
    """What stands there as JSON, or as rows of CSV; what is neither is a text."""
    try:
        return load_json(data if data[:1] in b"[{" else data[data.find(b"\t{", 0, _HEAD_BYTES) + 1 :])
    except ValueError:
        text = data.decode("utf-8", "replace")
    return _rows(text) if _TABLE.match(data) else text


def _rows(text: str) -> list[dict[str, str]] | str:
    """The rows of CSV; the text as it is if it has other columns than its first line names."""
    with contextlib.suppress(csv.Error):
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        if all(None not in row and None not in row.values() for row in rows):
            return rows
    return text


def _texts(value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """The texts in a value, in their order, each with the names of the objects that it is in."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while waiting:
        place, one = waiting.pop()
        if isinstance(one, str):
            yield place, one
        elif isinstance(one, dict) and len(place) < _DEEPEST:
            waiting += [((*place, name), inner) for name, inner in reversed(one.items())]
        elif isinstance(one, list):
            waiting += [(place, inner) for inner in reversed(one)]


_PACKINGS: Final[dict[re.Pattern[bytes], Unpack]] = {
    _DOCKER: lambda stream: _whole_lines(map(_docker_line, _lines(stream))),
    _CRI: lambda stream: _whole_lines(map(_cri_line, _lines(stream))),
    tlparse.RECORDS: tlparse.from_records,
    tlparse.LIST: tlparse.from_list,
    _DOCUMENT: _lines_of_texts,
    _TABLE: _lines_of_texts,
}
"""What restores a log, by how it begins."""


class TooMuchError(EOFError):
    """The stream is longer than the limit."""


class Bounded(RawStream):
    """The unpacked bytes of a compressed file: at most a thousand times its size, or 32 MiB if that is more."""

    def __init__(self, stream: IO[bytes], packed: IO[bytes], packed_bytes: int) -> None:
        super().__init__(stream, packed)
        self._stream = stream
        self._most = self._left = max(_MOST_TIMES * packed_bytes, _ALWAYS_BYTES)

    def readinto(self, space: Any) -> int:
        """Fill the buffer with one read of the stream."""
        if not self._left:
            if self._stream.read(1):
                raise TooMuchError(
                    f"unpacks to more than {_MOST_TIMES:,} times its size: {self._most:,} bytes are read"
                )
            return 0
        size: int = self._stream.readinto(memoryview(space)[: self._left])  # type: ignore[attr-defined]
        self._left -= size
        return size


def open_bytes(path: str, ahead_bytes: int = _AHEAD_BYTES) -> IO[bytes]:
    """Open a log for reading and decompress it on the fly; an address is read `ahead_bytes` at a time."""
    try:
        raw = _open(path, ahead_bytes)
        raw.read(_HEAD_BYTES)
        raw.seek(0)
    except FileNotFoundError as error:
        raise SourceError(path, "there is no such file or directory") from error
    except io.UnsupportedOperation as error:
        raise SourceError(path, "cannot be read: a pipe; write it to a file first") from error
    except OSError as error:
        raise SourceError(path, f"cannot be read: {error.strerror or error}") from error
    head = _head_of_log(raw.read)
    if not _is_enough(head) and not is_address(path):
        with contextlib.suppress(OSError):
            raw.seek(max(len(head), raw.seek(0, os.SEEK_END) - _LONGEST_HEAD_BYTES))
            head += _of_torch(raw.read())
    raw.seek(0)
    decompress = next((opened for magic, opened in COMPRESSED.items() if head.startswith(magic)), None)
    stream = raw
    if decompress is not None:
        with decompress(raw) as begun:
            head = _head_of_log(begun.read)
        raw.close()
        packed = _open(path, ahead_bytes)
        size = packed.seek(0, os.SEEK_END)
        packed.seek(0)
        stream = Bounded(decompress(packed), packed, size)  # type: ignore[assignment]
    for _ in range(_MOST_PACKINGS):
        unpack = unpacking(head)
        if unpack is None:
            break
        stream = unpacked = io.BufferedReader(Unpacked(stream, unpack))
        packed_head, head = head, _first_bytes(unpacked.peek)
        if head == packed_head:
            break  # it was not packed after all
    return stream


def _open(path: str, ahead_bytes: int) -> IO[bytes]:
    return open_address(path, ahead_bytes) if is_address(path) else open(path, "rb")


COMPRESSED: Final[dict[bytes, Callable[[IO[bytes]], IO[bytes]]]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),  # type: ignore[dict-item, return-value]
    b"\x28\xb5\x2f\xfd": zstd.ZstdFile,  # type: ignore[dict-item]
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"BZh": bz2.BZ2File,
}
"""The function that opens a compressed file, by the file's first bytes."""


def _head_of_log(read: Callable[[int], bytes]) -> bytes:
    """The first bytes, and more of a text that tells no time of torch's among them: a program may print much before it compiles."""
    head = _first_bytes(read)
    return head if _is_enough(head) else head + _of_torch(_first_bytes(read, _LONGEST_HEAD_BYTES))


def _of_torch(data: bytes) -> bytes:
    return data if b"torch" in data and _END_OF_STAMP.search(data) else b""


def _is_enough(head: bytes) -> bool:
    return b"\0" in head or any(_steps(head))


def _first_bytes(read: Callable[[int], bytes], size: int = _HEAD_BYTES) -> bytes:
    try:
        return read(size)[:size]
    except FAILURES:
        return b""


def read_head(path: str, size: int = 1 << 16) -> bytes:
    """The first bytes of a file, decompressed; if it is damaged, the bytes before the damage."""
    try:
        with open_bytes(path, ahead_bytes=size) as stream:
            space, pieces = bytearray(size), Pieces(stream)
            head = bytes(space[: pieces.read_into(memoryview(space))])
    except FAILURES:
        return b""
    kind, why = pieces.failure() or ("", "")
    if kind == "limit" and not head:
        raise SourceError(path, why, kind)
    return head


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
            except FAILURES as error:
                self._failure = error
                break
            if not read:
                break
            have += read
        self._left -= have
        return have
