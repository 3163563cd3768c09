"""TORCH_TRACE files: every cache lookup of one process, from torch 2.5 to 2.15.

torch/_logging/_internal.py, `trace_structured`: a prefix, one JSON object, then the payload on lines that
begin with a tab. Only the records that tell about caches are parsed; the others are stepped over.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from cachescope.errors import SourceError
from cachescope.readers.byte_source import blocks, open_bytes
from cachescope.readers.log_prefix import PREFIX, LogClock, clock_us
from cachescope.readers.lookup_order import put_in_order
from cachescope.readers.reading import Lookup, Process, Reading
from cachescope.readers.trace_artifacts import LOOKUP_ARTIFACTS, lookup_from_artifact, note_compile_event

_RANK: Final = re.compile(r"rank_(\d+)")
# The metadata come first in the JSON object, so these mark the start of a record of their kind.
_WANTED: Final = re.compile(
    rb'\{"(?:artifact": \{"name": "(?P<artifact>\w+)"|(?P<kind>dynamo_start|compilation_metrics)")'
)
_VERSION: Final = "torch_version"
# The event that ends a compile follows the artifact of its lookup.
_RECENT: Final = 64
_STRAY: Final = re.compile(rb"^(?![\tVIWEC]).+$", re.MULTILINE)
_STAMP: Final = re.compile(rb'"ts": ([0-9.]+)')
# Generated code lies two levels below the cache directory: torch/_inductor/codecache.py, `get_path`.
_OUTPUT_CODE: Final = re.compile(rb'\{"inductor_output_code": \{"filename": "([^"]+/[a-z2-7]{2}/c[^"/]+)"')
# Only the event that ends a compile tells of a disabled cache, and of the time a bypass took.
_UNCACHED: Final = re.compile(rb'\n\t"cache_state": "(?:disabled|bypass)"')


@dataclass(slots=True)
class _Record:
    offset: int
    prefix: re.Match[bytes]
    envelope: dict[str, Any]
    payload: bytes


def looks_like_trace_log(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a TORCH_TRACE file."""
    match = PREFIX.match(head)
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
        try:
            for offset, block in blocks(stream):
                trace.read_block(offset, block)
        except (OSError, EOFError) as error:
            reading.problem(source, f"byte {trace.end}", "damaged_compression", str(error))
    if trace.process.pid is None:
        raise SourceError(source, "holds no record of torch's trace log")
    trace.finish()
    reading.processes.append(trace.process)


class _Trace:
    """What is known of one trace while its blocks go by."""

    def __init__(self, source: str, path: str, reading: Reading) -> None:
        rank = _RANK.search(os.path.basename(path))
        self.process = Process(source, "trace", pid=None, rank=int(rank[1]) if rank else None)
        self.reading = reading
        self.source = source
        self.path = path
        self.end = 0
        self._clock: LogClock | None = None
        self._segments: Counter[str] = Counter()
        self._lookups: list[tuple[Lookup, int]] = []
        self._compiled = False

    def read_block(self, offset: int, block: bytes) -> None:
        self.end = offset + len(block)
        self._note_prefixes(block)
        self._report_strays(offset, block)
        for record in self._records(offset, block):
            self._read_record(record)
        for found in _UNCACHED.finditer(block):
            self._read_event(block, found.start())

    def finish(self) -> None:
        """Turn the clocks into times, and put the lookups in the order in which they were made."""
        process = self.process
        first = process.clock_first_us or 0
        clock = self._clock or LogClock.from_file_time(first, os.stat(self.path).st_mtime)
        process.start_time_ns = clock.ns(first)
        for lookup, at in self._lookups:
            lookup.end_time_ns = lookup.logged_ns = clock.ns(at)
            if lookup.time_ns is None:
                lookup.time_ns = lookup.end_time_ns
        process.lookups = put_in_order([lookup for lookup, _ in self._lookups])
        process.looked_up = bool(process.lookups) or not self._compiled

    def _note_prefixes(self, block: bytes) -> None:
        """The pid, and the first and last time of the log."""
        process = self.process
        if process.pid is None and (match := PREFIX.match(block)):
            process.pid = int(match["pid"])
            process.clock_first_us = self._clock_us(match)
        at = len(block)
        while (at := block.rfind(b"\n", 0, at)) >= 0:
            if match := PREFIX.match(block, at + 1):
                process.clock_last_us = self._clock_us(match)
                break
        else:
            process.clock_last_us = process.clock_last_us or process.clock_first_us
        if self._clock is None:
            self._find_epoch(block)
        if process.cache_dir is None and (match := _OUTPUT_CODE.search(block)):
            code_path = match[1].decode("utf-8", "replace")
            process.cache_dir = os.path.dirname(os.path.dirname(code_path))

    def _find_epoch(self, block: bytes) -> None:
        """The year and the time zone, from the first event that holds its time since the epoch."""
        at = block.find(b'{"chromium_event"')
        start = block.rfind(b"\n", 0, at) + 1 if at >= 0 else 0
        match = PREFIX.match(block, start) if at >= 0 else None
        stamp = _STAMP.search(block, at, at + 4096) if match else None
        if match and stamp and (clock := self._clock_us(match)) is not None:
            self._clock = LogClock.from_event(clock, float(stamp[1]))

    def _clock_us(self, prefix: re.Match[bytes]) -> int | None:
        try:
            return clock_us(prefix["month"], prefix["day"], prefix["time"])
        except ValueError:
            return None

    def _report_strays(self, offset: int, block: bytes) -> None:
        """Every line is a payload line or a record; anything else was cut or written by someone else."""
        lines = block.count(b"\n")
        if not block.endswith(b"\n"):
            at = block.rfind(b"\n") + 1
            self.reading.problem(self.source, f"byte {offset + at}", "truncated", "the last line is cut")
            lines += 1
        expected = block.count(b"\n\t") + block.count(b"\nV") + (block[:1] in (b"V", b"\t"))
        if expected == lines:
            return
        for match in _STRAY.finditer(block):
            text = match[0][:80].decode("utf-8", "replace")
            self.reading.problem(self.source, f"byte {offset + match.start()}", "not_a_record", f"{text!r}")

    def _records(self, offset: int, block: bytes) -> Iterator[_Record]:
        for wanted in _WANTED.finditer(block):
            name = wanted["artifact"]
            if name is not None and name.decode() not in LOOKUP_ARTIFACTS and name != b"torch_version":
                continue
            start = block.rfind(b"\n", 0, wanted.start()) + 1
            prefix = PREFIX.match(block, start)
            if prefix is None or prefix.end() != wanted.start():
                continue  # the text stands inside a payload
            line_end = block.find(b"\n", start)
            line_end = len(block) if line_end < 0 else line_end
            try:
                envelope = orjson.loads(block[prefix.end() : line_end])
            except orjson.JSONDecodeError as error:
                self.reading.problem(self.source, f"byte {offset + start}", "not_json", str(error))
                continue
            yield _Record(offset + start, prefix, envelope, _payload(block, line_end))

    def _read_record(self, record: _Record) -> None:
        envelope = record.envelope
        compile_id = _compile_id(envelope)
        if self.process.rank is None and isinstance(envelope.get("rank"), int):
            self.process.rank = envelope["rank"]
        if "dynamo_start" in envelope:
            self._segments[compile_id or ""] += 1
            return
        if "compilation_metrics" in envelope:
            self._read_metrics(envelope["compilation_metrics"])
            return
        name = envelope["artifact"]["name"]
        payload = self._json_payload(record)
        if payload is None:
            return
        if name == _VERSION:
            self.process.torch_version = payload.get("pytorch_version")
            return
        lookup = lookup_from_artifact(name, payload)
        lookup.compile_id = compile_id or lookup.compile_id
        lookup.segment = self._segments[lookup.compile_id or ""]
        where = f"byte {record.offset}"
        components = payload.get("components") or []
        if not isinstance(components, list) or not set(map(type, components)) <= {str}:
            self.reading.problem(self.source, where, "hash_detail", "components is no list of texts")
            components = []
        lookup.details = self.reading.add_details(components, self.source, where)
        self._lookups.append((lookup, self._clock_us(record.prefix) or 0))

    def _read_event(self, block: bytes, at: int) -> None:
        """The `chromium_event` that a payload line belongs to; not the artifacts, which say the same."""
        while at > 0 and block[at + 1] == 0x09:
            at = block.rfind(b"\n", 0, at)
        prefix = PREFIX.match(block, at + 1)
        if prefix is None or not block.startswith(b'{"chromium_event"', prefix.end()):
            return
        try:
            event = _loads(_payload(block, block.find(b"\n", prefix.end())))
        except ValueError:
            return
        if isinstance(event, dict):
            lookup = note_compile_event(event, [known for known, _ in self._lookups[-_RECENT:]])
            if lookup is not None:
                lookup.segment = self._segments[lookup.compile_id or ""]
                self._lookups.append((lookup, self._clock_us(prefix) or 0))

    def _read_metrics(self, metrics: object) -> None:
        self._compiled = True
        version = metrics.get("python_version") if isinstance(metrics, dict) else None
        if isinstance(version, str) and self.process.python_version is None:
            self.process.python_version = version.split()[0]

    def _json_payload(self, record: _Record) -> dict[str, Any] | None:
        try:
            payload = _loads(record.payload)
        except ValueError as error:
            digest = hashlib.md5(record.payload, usedforsecurity=False).hexdigest()
            cut = digest != record.envelope.get("has_payload")
            kind = "truncated" if cut else "not_json"
            message = "the payload is cut" if cut else f"the payload is no JSON: {error}"
            name = record.envelope["artifact"]["name"]
            self.reading.problem(self.source, f"byte {record.offset}", kind, f"{name}: {message}")
            return None
        if not isinstance(payload, dict):
            self.reading.problem(
                self.source, f"byte {record.offset}", "not_json", "the payload is no JSON object"
            )
            return None
        return payload


def _loads(payload: bytes) -> Any:
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError:
        # torch writes what json.dumps writes: lone surrogates and NaN, which orjson refuses.
        return json.loads(payload)


def _payload(block: bytes, line_end: int) -> bytes:
    """The payload after a record's line: each of its lines begins with one tab, which is not part of it."""
    end = line_end
    while block.startswith(b"\n\t", end):
        end = block.find(b"\n", end + 2)
        if end < 0:
            end = len(block)
    return block[line_end + 2 : end].replace(b"\n\t", b"\n")


def _compile_id(envelope: dict[str, Any]) -> str | None:
    """As torch prints it: torch/_guards.py, `CompileId.__str__`, with the attempt of `TraceId.__str__`."""
    autograd = envelope.get("compiled_autograd_id")
    frame = envelope.get("frame_id")
    if frame is None:
        return None if autograd is None else f"!{autograd}"
    text = f"{frame}/{envelope.get('frame_compile_id')}"
    if autograd is not None:
        text = f"!{autograd}/{text}"
    attempt = envelope.get("attempt")
    return f"{text}_{attempt}" if attempt else text
