"""Where the records of a block of a TORCH_TRACE file begin and end, and of which kind they are.

A record is a line that does not begin with a tab, plus the lines after it that do. Those lines are payload, even if
they imitate a record. Records are found and sorted by kind without a step in Python per record: nearly all of them
are not about caches.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from cachescope.readers.logs.byte_source import Pieces
from cachescope.readers.logs.log_prefix import PREFIX
from cachescope.readers.logs.trace_artifacts import LOOKUP_ARTIFACTS, VERSION_ARTIFACT
from cachescope.terms import PREFLIGHT_ARTIFACT

BLOCK_BYTES: int = 1 << 20
"""Each block costs some forty calls of numpy; blocks that do not fit the caches of a CPU are slower to read."""
_FIRST_BLOCK_BYTES: Final = 1 << 18
"""Most logs are short, and filling a buffer with zeros takes its time."""
_MOST_BYTES_OF_A_RECORD: Final = 16 << 20
"""Torch's longest records are hash details with the code of a large graph: some megabytes."""
RECORD_START: Final = re.compile(rb"\n[^\t]")

_Places = npt.NDArray[np.int64]

ARTIFACT: Final = "artifact"
DYNAMO_START: Final = "dynamo_start"
METRICS: Final = "compilation_metrics"
BACKWARD_METRICS: Final = "bwd_compilation_metrics"
STRING: Final = "str"
"""A text that stacks refer to by its number."""
COMPILE_EVENT: Final = "inductor_compile"
BACKEND_EVENT: Final = "backend_compile"
"""The `chromium_event` of these names."""
OUTPUT_CODE: Final = "inductor_output_code"
GRAPH_DUMP: Final = "graph_dump"

_TAB, _NEWLINE, _SPACE, _BRACE, _BRACKET, _QUOTE = b'\t\n {]"'
_IS_LEVEL: Final = np.isin(np.arange(256), list(b"VIWEC"))
_IS_DIGIT: Final = np.isin(np.arange(256), list(b"0123456789"))
_IS_STRAY: Final = ~_IS_LEVEL & ~np.isin(np.arange(256), [_TAB, _NEWLINE])
# Nearly all lines of records fit; a record with a longer line is parsed on its own.
_HEAD_BYTES: Final = 256
_WORD_BYTES: Final = 8
# The first eight letters after the brace and its quote distinguish the kinds.
_KINDS: Final = {
    kind.encode()[:_WORD_BYTES]: kind
    for kind in (ARTIFACT, DYNAMO_START, METRICS, BACKWARD_METRICS, OUTPUT_CODE, GRAPH_DUMP)
} | {b'str": ["': STRING}
# Artifacts begin with their name: eight letters of it, after the seventh, identify them.
_ARTIFACT_START: Final = b'{"artifact": {"name": "'
_NAME_WORD: Final = len(_ARTIFACT_START) + 7
_NAMES: Final = {
    f'{name}", '.encode()[7:][:_WORD_BYTES]
    for name in (*LOOKUP_ARTIFACTS, VERSION_ARTIFACT, PREFLIGHT_ARTIFACT)
}
_EVENT: Final = b"chromium"
# Most records are events. The name comes first in their payload; eight letters at one place of it identify these events.
_EVENT_STARTS: Final = {
    name: f'\n\t{{\n\t"name": "{name}"'.encode() for name in (COMPILE_EVENT, BACKEND_EVENT)
}
_EVENT_WORD: Final = min(map(len, _EVENT_STARTS.values())) - _WORD_BYTES


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text[:_WORD_BYTES], sys.byteorder))


_WORDS: Final = [_word(word) for word, kind in _KINDS.items() if kind != ARTIFACT]
_ARTIFACT_CODE: Final = _word(ARTIFACT.encode())
_NAME_CODES: Final = [_word(name) for name in _NAMES]
_EVENT_CODE: Final = _word(_EVENT)
_EVENT_NAME_CODES: Final = [_word(start[_EVENT_WORD:]) for start in _EVENT_STARTS.values()]


@dataclass(frozen=True, slots=True)
class Span:
    """One record: its prefix, the end of its line, and the end of its payload."""

    kind: str
    prefix: re.Match[bytes]
    line_end: int
    end: int


@dataclass(frozen=True, slots=True)
class Stray:
    """A line that is neither a record nor part of a payload."""

    start: int
    end: int


class Repeats:
    """The records so far: a log that was appended to itself, or shipped twice, holds records twice.

    Each has its moment: torch writes no two that are equal.
    """

    def __init__(self) -> None:
        self._known: set[int] = set()

    def has(self, record: memoryview) -> bool:
        """Whether this record stood in the log before; from now on it did."""
        before = len(self._known)
        self._known.add(hash(bytes(record)))
        return len(self._known) == before


def read_records(pieces: Pieces, offset: int = 0) -> Iterator[tuple[int, Records]]:
    """Yield the records of a stream block by block, each with the block's offset; the stream begins at `offset`.

    All blocks use one buffer in turn: copy what you need out of a block before you take the next.
    """
    buffer = bytearray(2 * min(BLOCK_BYTES, _FIRST_BLOCK_BYTES))
    marks = np.empty((2, len(buffer) + _WORD_BYTES), np.bool_)
    have, at_end, has_mark = 0, False, False
    while not at_end:
        if have > len(buffer) // 2 or (offset and len(buffer) < 2 * BLOCK_BYTES):
            # A long record would be searched over and over; and a long log is read in larger blocks.
            buffer = buffer + bytes(len(buffer))
            marks = np.empty((2, len(buffer) + _WORD_BYTES), np.bool_)
        # Read only as far as it takes to see that a record is too long, wherever in the block it begins.
        space = min(len(buffer) // 2, _MOST_BYTES_OF_A_RECORD + 1 - have)
        read = pieces.read_into(memoryview(buffer)[have : have + space])
        have += read
        at_end = not read
        if have:
            if offset == 0 and buffer.startswith(codecs.BOM_UTF8):
                has_mark = True
                buffer[: len(codecs.BOM_UTF8)] = b"\n" * len(codecs.BOM_UTF8)
            records = Records(buffer, have, marks, is_last=at_end)
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


def _places(marks: npt.NDArray[np.bool_], size: int) -> _Places:
    """`np.flatnonzero` of the first `size` marks, few of which are set: eight at a time, in half the time."""
    marks[size : size + _WORD_BYTES] = False
    eights = marks[: -(-size // _WORD_BYTES) * _WORD_BYTES]
    some = np.flatnonzero(eights.view(np.uint64) != 0)
    rows, columns = np.nonzero(eights.reshape(-1, _WORD_BYTES)[some])
    found: _Places = some[rows] * _WORD_BYTES + columns
    return found


class Records:
    """The records of one block; if more blocks follow, all but the last, which may be incomplete.

    Parameters
    ----------
    buffer : bytearray
        Begins with the block; the bytes after it mean nothing.
    size : int
        Bytes of the block, at least one.
    marks : array
        Two rows of booleans, eight longer than the buffer. They are working memory: allocating it for each block
        costs more than searching the block.
    is_last : bool
        Whether this is the last block.
    """

    def __init__(self, buffer: bytearray, size: int, marks: npt.NDArray[np.bool_], is_last: bool) -> None:
        self.buffer = buffer
        self.size = size
        self._bytes = np.frombuffer(buffer, np.uint8, size)
        is_start, is_tab = marks[0, : size - 1], marks[1, : size - 1]
        np.equal(self._bytes[:-1], _NEWLINE, out=is_start)
        np.equal(self._bytes[1:], _TAB, out=is_tab)
        np.greater(is_start, is_tab, out=is_start)
        starts = _places(marks[0], size - 1) + 1
        self.has_mark = False
        """Whether the block began with a byte order mark, now replaced by blank lines."""
        self.is_too_long = False
        """Whether the block is the beginning of one record that is longer than any of torch's and therefore skipped."""
        self.is_cut = bool(self._bytes[-1] != _NEWLINE)
        """Whether the block ends within a line."""
        ends = np.append(starts - 1, size if self.is_cut else size - 1)
        # A block begins with a record, or with the rest of one.
        starts = np.append(0, starts)
        self.starts: _Places = starts if is_last else starts[:-1]
        self._ends: _Places = ends if is_last else ends[:-1]
        self.end: int = size if is_last else int(starts[-1])

    def prefix(self, start: int, end: int | None = None) -> re.Match[bytes] | None:
        """The prefix of the record at this offset."""
        return PREFIX.match(self.buffer, start, self.size if end is None else end)

    def spans(self) -> Iterator[Span | Stray]:
        """Yield every stray line and every record that may be about a cache, in their order."""
        firsts = self._bytes[self.starts]
        is_wanted = _IS_STRAY[firsts] | self._is_relevant(_IS_LEVEL[firsts])
        for at in np.flatnonzero(is_wanted).tolist():
            start, end = int(self.starts[at]), int(self._ends[at])
            line_end = self.buffer.find(b"\n", start, end)
            line_end = end if line_end < 0 else line_end
            prefix = None if _IS_STRAY[firsts[at]] else self.prefix(start, line_end)
            # A line without a prefix that names its kind is a record with a damaged prefix.
            brace = self.buffer.find(b'] {"', start, line_end) + 2 if prefix is None else prefix.end()
            kind = None if brace < start else self._kind(brace, line_end)
            if prefix is None and (kind is not None or _IS_STRAY[firsts[at]]):
                yield Stray(start, line_end)
            elif prefix is not None and kind is not None:
                yield Span(kind, prefix, line_end, end)

    def _is_relevant(self, is_record: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """The records of a known kind, and those whose line is too long for this quick check."""
        is_relevant = is_record.copy()
        size = self.size - _HEAD_BYTES - max(_EVENT_WORD, _NAME_WORD) - _WORD_BYTES
        checked = np.flatnonzero(is_record & (self.starts < size))
        if not len(checked):
            return is_relevant
        starts = self.starts[checked]
        # Views of the bytes of the block, one row per offset; nothing is copied before a row is taken.
        windows = np.ndarray((size, _HEAD_BYTES), np.uint8, self.buffer, strides=(1, 1))
        words = np.ndarray(self.size - _WORD_BYTES + 1, np.uint64, self.buffer, strides=(1,))
        heads = windows[starts]
        rows = np.arange(len(heads))
        braces = (heads == _BRACE).argmax(axis=1)
        line_ends = (heads == _NEWLINE).argmax(axis=1)
        is_plain = (heads[rows, braces - 1] == _SPACE) & (heads[rows, braces - 2] == _BRACKET) & (braces > 2)
        # The path of a prefix may have the same letters in it.
        is_plain &= _IS_DIGIT[heads[rows, braces - 3]] & (self._bytes[starts + braces + 1] == _QUOTE)
        kinds = words[starts + braces + 2]
        events = words[starts + line_ends + _EVENT_WORD]
        is_named = line_ends == 0
        for word in _EVENT_NAME_CODES:
            is_named |= events == word
        is_known = (kinds == _EVENT_CODE) & is_named
        for word in _WORDS:  # `np.isin` takes ten times as long for so few
            is_known |= kinds == word
        is_artifact = kinds == _ARTIFACT_CODE
        names = words[starts + braces + _NAME_WORD]
        for word in _NAME_CODES:
            is_known |= is_artifact & (names == word)
        is_relevant[checked] = is_known | ~is_plain
        return is_relevant

    def _kind(self, brace: int, line_end: int) -> str | None:
        word = bytes(self.buffer[brace + 2 : brace + 2 + _WORD_BYTES])
        if word == _EVENT:
            starts = _EVENT_STARTS.items()
            return next((name for name, start in starts if self.buffer.startswith(start, line_end)), None)
        kind = _KINDS.get(word)
        if kind == ARTIFACT:
            at = brace + _NAME_WORD
            return kind if bytes(self.buffer[at : at + _WORD_BYTES]) in _NAMES else None
        return kind
