"""TORCH_TRACE files: every cache lookup of one process, from torch 2.5 to 2.15.

torch/_logging/_internal.py, `trace_structured`: a prefix, one JSON object, then the payload on lines that
begin with a tab. Only the records that tell about caches are parsed; the others are stepped over.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from typing import IO, Any, Final

from cachescope.errors import SourceError
from cachescope.readers.byte_source import Pieces, modified_s, open_bytes
from cachescope.readers.component_lists import ComponentLists
from cachescope.readers.json_record import Record, load_json
from cachescope.readers.log_prefix import PREFIX, LogClock, clock_us, pid_of
from cachescope.readers.lookup_order import put_in_order
from cachescope.readers.reading import Lookup, Process, Reading
from cachescope.readers.trace_artifacts import LOOKUP_ARTIFACTS, lookup_from_artifact, note_compile_event
from cachescope.readers.trace_compiles import TraceCompiles, compile_id_of
from cachescope.readers.trace_end import TraceEnd
from cachescope.readers.trace_records import Records, Span, Stray, read_records

_FIRST_LINE: Final = re.compile(rb"(?m)^(?:\xef\xbb\xbf)?" + PREFIX.pattern)
_RANK: Final = re.compile(r"rank_(\d{1,9})(?!\d)")
# The metadata come first in the JSON object.
_ARTIFACT_NAME: Final = re.compile(rb'\{"artifact": \{"name": "(\w+)"')
_VERSION: Final = "torch_version"
_PAYLOAD_HASH: Final = re.compile(rb'"has_payload": "([0-9a-f]{32})"\}$')
_TORCH_VERSION: Final = re.compile(rb'"pytorch_version": "([^"\\]{1,200})"')
_PYTHON_VERSION: Final = re.compile(rb'"python_version": "([^" \\]{1,200})')
# torch/_inductor/compile_fx.py writes about a lookup when what it missed was compiled and stored; the others before.
_AFTER_COMPILE: Final = b"torch/_inductor/compile_fx.py:"
# The event that ends a compile follows the artifact of its lookup.
_RECENT: Final = 64
_MOST_WRONG: Final = 5
_STAMP: Final = re.compile(rb'"ts": ([0-9.]+)')
# Generated code lies two levels below the cache directory: torch/_inductor/codecache.py, `get_path`.
_OUTPUT_CODE: Final = re.compile(rb'\{"inductor_output_code": \{"filename": "([^"]+/[a-z2-7]{2}/c[^"/]+)"')
# Only the event that ends a compile tells of a disabled cache, and of the time a bypass took.
_UNCACHED: Final = re.compile(rb'\n\t"cache_state": "(?:disabled|bypass)"')


def looks_like_trace_log(head: bytes) -> bool:
    """Whether the first line of torch's in these bytes is a record of a trace, whatever stands before it.

    A file may have lost its beginning, or got another one: a rotated log begins within a record.
    """
    match = _FIRST_LINE.search(head)
    return match is not None and head[match.end() : match.end() + 2] == b'{"'


def read_trace_log(path: str, reading: Reading, source: str | None = None) -> None:
    """Read one TORCH_TRACE file (plain, gzip or zstandard) into `reading`.

    Adds one `Process` with its lookups in the order in which torch made them. A record that cannot be read
    becomes a problem at its byte offset, and the rest is read.

    Raises
    ------
    SourceError
        If the file is not there, cannot be read at all, or holds no trace record.
    """
    source = source or path
    trace = _Trace(source, path, reading)
    with open_bytes(path) as stream:
        trace.read(stream)
    if not trace.has_records:
        raise SourceError(source, "holds no record of torch's trace log", "unknown_source")
    trace.finish()
    reading.processes.append(trace.process)


def read_on_trace_log(path: str, reading: Reading) -> bool:
    """Go on with the one trace in `reading`, whose file is longer now than when it was read.

    Returns
    -------
    bool
        False where it did not end behind a whole record: it has to be read anew.

    Raises
    ------
    SourceError
        If the file is not there or cannot be read.
    """
    (process,) = reading.processes
    if process.end_state is None:
        return False
    end = TraceEnd.from_json(process.end_state)
    with open_bytes(path) as stream:
        stream.seek(end.end)
        # Its payload goes on.
        if stream.peek(1)[:1] in (b"", b"\t"):  # type: ignore[attr-defined]
            return False
        trace = _Trace(process.source, path, reading)
        trace.take_up(process, end)
        trace.read(stream)
    trace.finish()
    return True


class _Trace:
    """What is known of one trace while its blocks go by."""

    def __init__(self, source: str, path: str, reading: Reading) -> None:
        rank = _RANK.search(os.path.basename(path))
        self.process = Process(source, "trace", pid=None, rank=int(rank[1]) if rank else None)
        self.reading = reading
        self.source = source
        self.path = path
        self.end = 0
        self.has_records = False
        self._offset = 0
        self._block = bytearray()
        self._clock: LogClock | None = None
        self._compiles = TraceCompiles()
        self._lookups: list[tuple[Lookup, int | None]] = []
        self._compiled = False
        self._components = ComponentLists(reading.details, reading.known_json)
        self._can_go_on = True

    def take_up(self, process: Process, end: TraceEnd) -> None:
        """Be what another one was at its end."""
        self.process = process
        self.has_records = True
        self.end = end.end
        self._clock = end.clock
        self._compiled = end.has_compiled
        self._lookups = end.lookups(process)
        self._compiles = TraceCompiles.from_json(end.compiles, process)

    def read(self, stream: IO[bytes]) -> None:
        """Read the records of a stream to its end; what stopped it before becomes a problem."""
        pieces = Pieces(stream)
        for offset, records in read_records(pieces, self.end):
            self.read_block(offset, records)
        self._can_go_on &= pieces.is_plain
        if failure := pieces.failure():
            self._can_go_on, self.process.is_cut = False, True
            self.reading.problem(self.source, f"byte {self.end}", *failure)

    def read_block(self, offset: int, records: Records) -> None:
        self.end = offset + records.end
        self._offset, self._block = offset, records.buffer
        self._note_prefixes(records)
        if records.is_too_long:
            self._problem(0, "limit", "the record is too long: it was not read")
        if offset == 0 and records.end:
            self._note_beginning(records)
        for span in records.spans():
            if isinstance(span, Stray):
                if offset or span.start:
                    self._problem(span.start, "not_a_record", self._quoted(span.start, span.end))
            else:
                self._read_span(span)
        self.process.is_cut = records.end == records.size and self._is_cut(records)
        if self.process.is_cut and records.is_cut:
            at = self._block.rfind(b"\n", 0, records.size) + 1
            self._can_go_on = False
            self._problem(at, "truncated", "the last line is cut")

    def _note_beginning(self, records: Records) -> None:
        if records.has_mark:
            self._problem(0, "not_a_record", "the log begins with a byte order mark")
        elif self._block.startswith(b"\t"):
            self._problem(0, "truncated", "the log begins within a record")
        elif records.prefix(0) is None:
            end = self._block.find(b"\n", 0, records.size)
            self._problem(0, "not_a_record", self._quoted(0, records.size if end < 0 else end))

    def _quoted(self, start: int, end: int) -> str:
        return repr(self._block[start:end][:80].decode("utf-8", "replace"))

    def _is_cut(self, records: Records) -> bool:
        """Whether the last record is not whole: its last line, or its payload."""
        start = int(records.starts[-1])
        line_end = self._block.find(b"\n", start, records.size)
        told = _PAYLOAD_HASH.search(self._block, start, line_end) if line_end >= 0 else None
        if records.is_cut or told is None:
            return records.is_cut
        payload = bytes(memoryview(self._block)[line_end + 2 : records.size - 1]).replace(b"\n\t", b"\n")
        return hashlib.md5(payload, usedforsecurity=False).hexdigest().encode() != told[1]

    def _read_span(self, span: Span) -> None:
        match span.kind:
            case "artifact":
                self._read_artifact(span)
            case "inductor_compile":
                self._read_event(span)
            case "dynamo_start":
                self._read_dynamo_start(span)
            case "compilation_metrics" | "bwd_compilation_metrics":
                self._read_metrics(span)
            case "str":
                self._compiles.note_string(self._line(span))
            case "inductor_output_code":
                self._note_cache_dir(span)

    def finish(self) -> None:
        """Turn the clocks into times, and put the lookups in the order in which they were made."""
        process = self.process
        first = process.clock_first_us
        clock = self._clock
        if clock is None and first is not None:
            clock = LogClock.from_file_time(first, modified_s(self.path))
        process.start_time_ns = None if clock is None or first is None else clock.ns(first)
        told_ns = [lookup.time_ns for lookup, _ in self._lookups]
        for lookup, at in self._lookups:
            lookup.end_time_ns = lookup.logged_ns = None if clock is None or at is None else clock.ns(at)
            if lookup.time_ns is None:
                lookup.time_ns = lookup.end_time_ns
        process.lookups = put_in_order([lookup for lookup, _ in self._lookups])
        process.looked_up = bool(process.lookups) or not self._compiled
        self._compiles.finish()
        process.compiles = self._compiles.of_process()
        process.end_state = self._end_state(told_ns) if self._can_go_on else None

    def _end_state(self, told_ns: list[int | None]) -> str:
        places = {id(lookup): place for place, lookup in enumerate(self.process.lookups)}
        return TraceEnd(
            end=self.end,
            year=None if self._clock is None else self._clock.year,
            offset_us=None if self._clock is None else self._clock.offset_us,
            has_compiled=self._compiled,
            compiles=self._compiles.as_json(places),
            order=[places[id(lookup)] for lookup, _ in self._lookups],
            clocks_us=[at for _, at in self._lookups],
            told_ns=told_ns,
        ).as_json()

    def _note_prefixes(self, records: Records) -> None:
        """The pid, and the first and last time of the log."""
        process = self.process
        if not self.has_records:
            # The beginning of a log may be lost, or foreign.
            for start in records.starts.tolist():
                if match := records.prefix(start):
                    self.has_records = True
                    process.pid = pid_of(match)
                    if process.pid is None:
                        self._problem(start, "bad_value", "no process has the pid of its prefix")
                    process.clock_first_us = process.clock_last_us = self._clock_us(match)
                    break
        for start in records.starts[::-1].tolist():
            if match := records.prefix(start):
                last_us = self._clock_us(match)
                process.clock_last_us = process.clock_last_us if last_us is None else last_us
                break
        if self._clock is None:
            self._find_epoch(records)

    def _find_epoch(self, records: Records) -> None:
        """The year and the time zone, from the first event that holds its time since the epoch."""
        at = self._block.find(b'{"chromium_event"', 0, records.size)
        match = records.prefix(self._block.rfind(b"\n", 0, at) + 1) if at >= 0 else None
        stamp = _STAMP.search(self._block, at, min(at + 4096, records.size)) if match else None
        if match and stamp and (clock := self._clock_us(match)) is not None:
            with contextlib.suppress(ValueError):  # dots alone
                self._clock = LogClock.from_event(clock, float(stamp[1]))

    def _note_cache_dir(self, span: Span) -> None:
        if self.process.cache_dir is None:
            match = _OUTPUT_CODE.match(self._block, span.prefix.end(), span.line_end)
            code_path = match[1].decode("utf-8", "replace") if match else ""
            self.process.cache_dir = os.path.dirname(os.path.dirname(code_path)) or None

    def _clock_us(self, prefix: re.Match[bytes]) -> int | None:
        try:
            return clock_us(prefix["month"], prefix["day"], prefix["time"])
        except ValueError:
            return None

    def _where(self, at: int) -> str:
        return f"byte {self._offset + at}"

    def _problem(self, at: int, kind: str, message: str) -> None:
        self.reading.problem(self.source, self._where(at), kind, message)

    def _envelope(self, span: Span) -> Record | None:
        try:
            envelope = Record(load_json(self._block[span.prefix.end() : span.line_end]))
        except ValueError as error:
            self._problem(span.prefix.start(), "not_json", str(error))
            return None
        rank = envelope.whole("rank")
        if self.process.rank is None:
            self.process.rank = rank
        return envelope

    def _tell_wrong(self, span: Span, *records: Record) -> None:
        """Make a problem of what is wrong with the values of a record, if anything is."""
        wrong = [one for record in records for one in record.wrong]
        if self._clock_us(span.prefix) is None:
            wrong.append("the time of its prefix is none")
        if wrong:
            self._problem(span.prefix.start(), "bad_value", "; ".join(wrong[:_MOST_WRONG]))

    def _payload(self, span: Span) -> bytes:
        """The payload of a record: each of its lines begins with one tab, which is not part of it."""
        payload = bytes(memoryview(self._block)[span.line_end + 2 : span.end])
        # Those of artifacts are one long line, and looking for one byte is the fastest search there is.
        return payload.replace(b"\n\t", b"\n") if b"\n" in payload else payload

    def _read_dynamo_start(self, span: Span) -> None:
        envelope = self._envelope(span)
        start = None if envelope is None else envelope.record("dynamo_start")
        if envelope is not None and start is not None:
            at = self._clock_us(span.prefix)
            self._compiles.begin(compile_id_of(envelope) or "", at, start)
        if envelope is not None:
            self._tell_wrong(span, envelope)

    def _read_artifact(self, span: Span) -> None:
        match = _ARTIFACT_NAME.match(self._block, span.prefix.end(), span.line_end)
        name = match[1].decode() if match else ""
        if name not in LOOKUP_ARTIFACTS and name != _VERSION:
            return
        envelope = self._envelope(span)
        if envelope is None:
            return
        text = self._payload(span)
        read: tuple[dict[str, Any], int | None] | None = self._components.read(name[:1], text)
        if read is None:
            at = span.prefix.start()
            told = self._json_payload(at, name, text, envelope)
            if told is None:
                return
            if name == _VERSION:
                self.process.torch_version = told.version("pytorch_version")
                self._tell_wrong(span, envelope, told)
                return
            read = told.values, self._add_details(at, told)
        values, details = read
        payload = Record(values)
        lookup = lookup_from_artifact(name, payload)
        lookup.compile_id = compile_id_of(envelope) or lookup.compile_id
        lookup.details = details
        self._add(lookup, span, is_over=_AFTER_COMPILE in span.prefix["place"])
        self._tell_wrong(span, envelope, payload)

    def _add_details(self, at: int, payload: Record) -> int | None:
        components = payload.values.get("components") or []
        if not isinstance(components, list) or not set(map(type, components)) <= {str}:
            self._problem(at, "hash_detail", "components is no list of texts")
            components = []
        return self.reading.add_details(components, self.source, self._where(at))

    def _read_event(self, span: Span) -> None:
        """The event that ends a compile; not those of lookups that have an artifact, which says the same."""
        if not _UNCACHED.search(self._block, span.line_end, span.end):
            return
        try:
            event = Record(load_json(self._payload(span)))
        except ValueError as error:
            self._problem(span.prefix.start(), "not_json", f"{span.kind}: {error}")
            return
        lookup = note_compile_event(event, [known for known, _ in self._lookups[-_RECENT:]])
        if lookup is not None:
            self._add(lookup, span, is_over=True)
        self._tell_wrong(span, event)

    def _read_metrics(self, span: Span) -> None:
        line = self._line(span)
        if not line.startswith((b'{"compilation_metrics": {', b'{"bwd_compilation_metrics": {')):
            return
        # A compile that failed says nothing of whether the caches were on.
        self._compiled |= self._compiles.end(line, self._clock_us(span.prefix))
        # Large, and each says the same.
        process = self.process
        if process.python_version is None and (match := _PYTHON_VERSION.search(line)):
            process.python_version = match[1].decode("utf-8", "replace")
        if process.torch_version is None and (match := _TORCH_VERSION.search(line)):
            process.torch_version = match[1].decode("utf-8", "replace")

    def _add(self, lookup: Lookup, span: Span, *, is_over: bool) -> None:
        self._compiles.note(lookup, is_over=is_over)
        self._lookups.append((lookup, self._clock_us(span.prefix)))

    def _line(self, span: Span) -> bytes:
        """The JSON object of a record as it stands."""
        return bytes(memoryview(self._block)[span.prefix.end() : span.line_end])

    def _json_payload(self, at: int, name: str, payload: bytes, envelope: Record) -> Record | None:
        try:
            told = load_json(payload)
        except ValueError as error:
            digest = hashlib.md5(payload, usedforsecurity=False).hexdigest()
            cut = digest != envelope.text("has_payload")
            message = "the payload is cut" if cut else f"the payload is no JSON: {error}"
            self._problem(at, "truncated" if cut else "not_json", f"{name}: {message}")
            return None
        if not isinstance(told, dict):
            self._problem(at, "not_json", "the payload is no JSON object")
            return None
        return Record(told)
