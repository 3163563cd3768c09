"""Where the records of a block of a TORCH_TRACE file begin and end, and of which kind they are.

A record is a line that does not begin with a tab, plus the lines after it that do. Those lines are payload, even if
they imitate a record. Nearly all records are not about caches: one match of a pattern each passes over them.
"""

from __future__ import annotations

import codecs
import hashlib
import re
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

from cachescope.readers.json_record import load_json, strict_json
from cachescope.readers.logs.byte_source import Pieces, open_bytes
from cachescope.readers.logs.log_prefix import PREFIX, clock_of
from cachescope.readers.logs.trace_artifacts import ARTIFACTS
from cachescope.readers.reading import Problems

BLOCK_BYTES: int = 1 << 20
"""Blocks that do not fit the caches of a CPU are slower to read."""
_FIRST_BLOCK_BYTES: Final = 1 << 18
"""Most logs are short, and filling a buffer with zeros takes its time."""
_MOST_BYTES_OF_A_RECORD: Final = 16 << 20
"""Torch's longest records are hash details with the code of a large graph: some megabytes."""
RECORD_START: Final = re.compile(rb"\n[^\t]")
# Empty lines end a record too, as many as there are.
_BEFORE_RECORD: Final = re.compile(rb"\n(?=[^\t])\n*+")

COMPILE_EVENT: Final = "inductor_compile"
_STRAYS: Final = re.compile(rb"([^VIWEC\t\n][^\n]*+)(?:\n++\1(?=\n))*+\n*+")
_LINE_END: Final = ord("\n")
# How the object of a record begins that is looked at. Most records are events, whose name comes first in their payload.
_WANTED: Final = (
    rb'(?P<kind>dynamo_start|dynamo_output_graph|(?:bwd_)?compilation_metrics(?=": \{)|inductor_output_code|graph_dump|dynamo_cpp_guards_str|str)"'
    rb'|artifact": \{"name": "(?P<artifact>%b)"'
    rb'|chromium_event"[^\n]*\n\t\{\n\t"name": "(?P<event>%b|backend_compile)"'
) % ("|".join(ARTIFACTS).encode(), COMPILE_EVENT.encode())
_OBJECT: Final = re.compile(rb'\{"(?:%b)' % _WANTED)
# A stray line, or a record that is not plainly of another kind. It is not plain if the path in its prefix has a brace.
_IS_WANTED: Final = re.compile(
    rb'[^VIWEC\t\n]|[VIWEC](?=[^\n{]*+\{)(?![^\n{]*+(?<=[0-9]\] )\{"(?!%b))' % _WANTED, re.DOTALL
)


class Span(NamedTuple):
    """One record of a block: its prefix, the end of its line, and the end of its payload."""

    kind: str
    """The name of its object; of an artifact and of an event, its own name."""
    prefix: re.Match[bytes]
    line_end: int
    end: int

    @property
    def start(self) -> int:
        """Where it begins."""
        return self.prefix.start()

    @property
    def clock_us(self) -> int | None:
        """The clock of its prefix."""
        return clock_of(self.prefix)

    @property
    def same(self) -> tuple[int, int | None]:
        """What is equal only if it is the same record, written twice: a checksum of its line, and its clock."""
        return zlib.crc32(memoryview(self.prefix.string)[self.start : self.line_end]), self.clock_us

    @property
    def line(self) -> bytes:
        """The JSON object in its line."""
        return bytes(memoryview(self.prefix.string)[self.prefix.end() : self.line_end])

    @property
    def payload(self) -> bytes:
        """Its payload."""
        return payload_in(memoryview(self.prefix.string)[: self.end], self.line_end)

    def read_payload(self) -> Any:
        """The JSON in its payload; nearly always it is read where it stands, for tabs between values are no part of them."""
        try:
            return strict_json(memoryview(self.prefix.string)[self.line_end + 2 : self.end])
        except ValueError:
            return load_json(self.payload)


class Stray(NamedTuple):
    """Equal lines that are neither records nor part of a payload: where the first begins and ends, and how many they are."""

    start: int
    end: int
    lines: int = 1


class Found(NamedTuple):
    """A record that one more pass over a trace looks for."""

    at: int  # its offset in the log
    match: re.Match[bytes]  # what was looked for, in its first line
    record: bytes
    line_bytes: int
    is_last: bool  # of the log, which may end within it
    is_cut: bool  # whether the log ends within its last line

    @property
    def line(self) -> bytes:
        """Its first line."""
        return self.record[: self.line_bytes]

    @property
    def text(self) -> bytes:
        """The payload."""
        return payload_in(self.record, self.line_bytes)


class TracePass:
    """One more pass over a trace, for what lookups do not need; and what could not be read."""

    def __init__(self, path: str, size: int | None = None) -> None:
        self._path = path
        self._size = size
        self._known: set[int] = set()
        self.problems = Problems()

    def find(self, wanted: re.Pattern[bytes]) -> Iterator[Found]:
        """The records whose first line has such words."""
        with open_bytes(self._path) as stream:
            pieces = Pieces(stream, self._size)
            end = 0
            for offset, records in read_records(pieces):
                end = offset + records.end
                block = memoryview(records.buffer)
                for start, line_end, stop in records.lines() if not records.is_too_long else ():
                    if match := wanted.search(records.buffer, start, line_end):
                        is_last = stop == records.end == records.size
                        record, is_cut = bytes(block[start:stop]), is_last and records.is_cut
                        yield Found(offset + start, match, record, line_end - start, is_last, is_cut)
            if failure := pieces.failure():
                self.problem(end, *failure)

    def is_repeated(self, found: Found) -> bool:
        """Whether this record stood in the log before, which was appended to itself, or shipped twice.

        Each has its moment: torch writes no two that are equal.
        """
        before = len(self._known)
        self._known.add(hash(found.record))
        return len(self._known) == before

    def problem(self, at: int, kind: str, message: str) -> None:
        """Note what could not be read."""
        self.problems.note(self._path, f"byte {at}", kind, message)


def payload_in(record: bytes | memoryview, line_end: int) -> bytes:
    """What follows the first line of a record: each of its lines begins with one tab, which is not part of it."""
    return bytes(record[line_end + 2 :]).removesuffix(b"\n").replace(b"\n\t", b"\n")


def payload_hash(payload: bytes) -> str:
    """The hash of a payload, as torch writes it into ``has_payload``."""
    return hashlib.md5(payload, usedforsecurity=False).hexdigest()


def read_records(pieces: Pieces, offset: int = 0) -> Iterator[tuple[int, Records]]:
    """Yield the records of a stream block by block, each with the block's offset; the stream begins at `offset`.

    All blocks use one buffer in turn: copy what you need out of a block before you take the next.
    """
    buffer = bytearray(2 * min(BLOCK_BYTES, _FIRST_BLOCK_BYTES))
    have, at_end, has_mark = 0, False, False
    while not at_end:
        if have > len(buffer) // 2 or (offset and len(buffer) < 2 * BLOCK_BYTES):
            # A long record would be searched over and over; and a long log is read in larger blocks.
            buffer = buffer + bytes(len(buffer))
            # Read only as far as it takes to see that a record is too long, wherever in the block it begins.
        space = min(len(buffer) // 2, _MOST_BYTES_OF_A_RECORD + 1 - have)
        read = pieces.read_into(memoryview(buffer)[have : have + space])
        have += read
        at_end = not read
        if have:
            if offset == 0 and buffer.startswith(codecs.BOM_UTF8):
                has_mark = True
                buffer[: len(codecs.BOM_UTF8)] = b"\n" * len(codecs.BOM_UTF8)
            records = Records(buffer, have, is_last=at_end)
            records.has_mark = has_mark
            records.is_too_long = not records.end and have > _MOST_BYTES_OF_A_RECORD
            yield offset, records
            if records.is_too_long:
                passed, have = _pass_over(pieces, buffer, have)
                offset += passed
                continue
            offset += records.end
            memoryview(buffer)[: have - records.end] = memoryview(buffer)[records.end : have]
            have -= records.end


def _pass_over(pieces: Pieces, buffer: bytearray, have: int) -> tuple[int, int]:
    """Skip the record that the buffer begins with: return its size, and how many bytes after it are in the buffer."""
    passed = have - 1
    buffer[0] = buffer[passed]
    while read := pieces.read_into(memoryview(buffer)[1 : 1 + BLOCK_BYTES]):
        if found := RECORD_START.search(buffer, 0, 1 + read):
            start, end = found.start() + 1, 1 + read
            memoryview(buffer)[: end - start] = bytes(memoryview(buffer)[start:end])
            return passed + start, end - start
        passed += read
        buffer[0] = buffer[read]
    return passed + 1, 0


class Records:
    """The records of one block; if more blocks follow, all but the last, which may be incomplete."""

    def __init__(self, buffer: bytearray, size: int, is_last: bool) -> None:
        self.buffer = buffer
        self.size = size
        self.has_mark = False
        """Whether the block began with a byte order mark, now replaced by blank lines."""
        self.is_too_long = False
        """Whether the block is the beginning of one record that is longer than any of torch's and therefore skipped."""
        self.is_cut = not buffer.endswith(b"\n", 0, size)
        """Whether the block ends within a line."""
        # A block begins with a record, or with the rest of one.
        self.starts = [0, *[found.end() for found in _BEFORE_RECORD.finditer(buffer, 0, size)]]
        # Behind empty lines, the last one is complete.
        self.end = size if is_last or self.starts[-1] == size else self.starts.pop()

    def prefix(self, start: int, end: int | None = None) -> re.Match[bytes] | None:
        """The prefix of the record at this offset."""
        return PREFIX.match(self.buffer, start, self.size if end is None else end)

    def lines(self) -> Iterator[tuple[int, int, int]]:
        """Where each record begins, where its first line ends, and where the record ends."""
        for start, end in zip(self.starts, [*self.starts[1:], self.end], strict=False):
            line_end = self.buffer.find(b"\n", start, end)
            yield start, end if line_end < 0 else line_end, end

    def spans(self) -> Iterator[Span | Stray]:
        """Yield every stray line and every record that may be about a cache, in their order."""
        is_whole = self.end < self.size or not self.is_cut
        buffer, passed = self.buffer, 0
        ends = pairwise((*self.starts, self.end if is_whole else self.end + 1))
        for at, (start, following) in enumerate(ends):
            if start < passed or _IS_WANTED.match(buffer, start, self.size) is None:
                continue
            end = following - 1
            if end > start and buffer[end - 1] == _LINE_END:  # empty lines end it
                end = start + len(buffer[start:end].rstrip(b"\n"))
            line_end = buffer.find(b"\n", start, end)
            line_end = end if line_end < 0 else line_end
            if strays := _STRAYS.match(buffer, start, self.end):
                passed = strays.end()
                lines = 1 if passed <= following else bisect_left(self.starts, passed, at) - at
                yield Stray(start, line_end, lines)
                continue
            prefix = self.prefix(start, line_end)
            # A line without a prefix that names its kind is a record with a damaged prefix.
            brace = buffer.find(b'] {"', start, line_end) + 2 if prefix is None else prefix.end()
            found = None if brace < start + 2 else _OBJECT.match(buffer, brace, end)
            if found is not None and prefix is None:
                yield Stray(start, line_end)
            elif found is not None and found.lastgroup is not None and prefix is not None:
                yield Span(found[found.lastgroup].decode(), prefix, line_end, end)
