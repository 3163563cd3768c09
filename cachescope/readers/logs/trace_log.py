"""TORCH_TRACE files: every cache lookup of one process, from torch 2.5 to 2.15, whole or in parts.

Only records about caches are parsed: `TraceReader` makes events of them, and `TraceProcess` the process. Their form is that of
torch/_logging/_internal.py, `trace_structured`: a prefix, one JSON object, then the payload on lines that begin with a tab.
"""

from __future__ import annotations

import contextlib
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import IO, Final

from cachescope.errors import SourceError
from cachescope.readers.json_record import Record, load_json
from cachescope.readers.kinds import looks_like_trace_log
from cachescope.readers.logs.byte_source import Pieces, open_bytes
from cachescope.readers.logs.log_events import GoesOnError, Handle, LogKind
from cachescope.readers.logs.log_prefix import LogClock, clock_of, pid_of
from cachescope.readers.logs.remote import is_address
from cachescope.readers.logs.trace_artifacts import (
    KERNELS_ARTIFACT,
    LOOKUP_ARTIFACTS,
    RECOMPILE_ARTIFACT,
    RUNNABLE_ARTIFACT,
    VERSION_ARTIFACT,
    gpus_in,
    kernel_lookups,
    lookup_from_artifact,
    lookup_from_event,
)
from cachescope.readers.logs.trace_compiles import (
    compile_id_of,
    error_in,
    function_in,
    interned_string,
    place_in,
    recompile_reasons,
    traced_in,
)
from cachescope.readers.logs.trace_process import TraceProcess, wrong_values
from cachescope.readers.logs.trace_records import (
    RECORD_START,
    Records,
    Span,
    Stray,
    payload_hash,
    payload_in,
    read_records,
)
from cachescope.readers.reading import Problems, Reading, not_a_hash_detail
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, PREFLIGHT_ARTIFACT

_PAYLOAD_HASH: Final = re.compile(rb'"has_payload": "([0-9a-f]{32})"\}$')
# torch/_inductor/compile_fx.py logs a lookup after the missed graph was compiled and stored; other places log it before.
_AFTER_COMPILE: Final = b"torch/_inductor/compile_fx.py:"
_EVENT: Final = b'{"chromium_event"'
_STAMP: Final = re.compile(rb'"ts": ([0-9.]+)')
_MOST_BEFORE_STAMP: Final = 4096
# Generated code is two levels below the cache directory: torch/_inductor/codecache.py, `get_path`.
_OUTPUT_CODE: Final = re.compile(rb'\{"inductor_output_code": \{"filename": "([^"]+/[a-z2-7]{2}/c[^"/]+)"')
# torch/_inductor/codecache.py, `AotCodeCompiler.compile` (2.7+): nothing else writes a dump of this name.
_AOT_CODE: Final = b'{"graph_dump": {"name": "inductor_aot_wrapper_code"'
# torch/_dynamo/guards.py, `GuardManagerWrapper.get_manager_line` (2.9+).
_SELF: Final = b"source=L['self'], "
_FIRST: Final = b"source=L['args'][0], "
_MODULES_OF_FIRST: Final = b"source=L['args'][0]._modules, "
_CLASS: Final = re.compile(rb"[^\n]*, type=<class '(?:[^'\n]*\.)?([^'.\n]+)'>")
# `GuardBuilder.DEFAULT_DEVICE`; `with torch.device(…)` is a mode of its own (torch/_dynamo/variables/torch_function.py).
_CURRENT_DEVICE: Final = b": utils_device.CURRENT_DEVICE == "
_DEVICE: Final = re.compile(
    rb"(?:\.CURRENT_DEVICE|_mode_stack_at\(\d+\)\.device) == (None|device\([^\n)]*\))"
)
# Only the event that ends a compile records a disabled cache, and the time a bypass took.
_CACHE_STATE: Final = re.compile(rb'\n\t"cache_state": "(\w*)"')
_UNCACHED: Final = (b"disabled", b"bypass")
_LOOKED_UP: Final = (b"hit", b"miss")

# If no record begins within so many bytes, the parts on either side are joined.
_SEARCHED_BYTES: Final = 1 << 18


class TraceReader:
    """Reads the records of a trace or a part of one, and passes on their contents.

    Each record is read on its own. Combining them is the task of the receiver.
    """

    def __init__(self, reading: Reading, handle: Handle) -> None:
        self._details = reading.details
        self._emit = handle
        self._end = self._offset = 0
        self._block = bytearray()
        self._problems = Problems()
        self._has_prefix = self._has_clock = False
        # The caches for which a lookup was read, or was reported missing.
        self._is_recorded: set[str] = set()
        # The facts of the process that were told: all records that have them have the same.
        self._told: set[str] = set()
        self._last_us: int | None = None
        self._is_cut = False
        self._can_go_on = True

    def resume(self, end_state: str, stream: IO[bytes]) -> None:
        """Go to the offset at which an earlier reading ended, unless the payload of the last record continues there."""
        self._end = self._offset = stream.seek(int(end_state))
        if stream.peek(1)[:1] in (b"", b"\t"):  # type: ignore[attr-defined]
            raise GoesOnError

    def end_state(self) -> str | None:
        """The offset at which reading ended; None if it cannot continue."""
        return str(self._end) if self._can_go_on else None

    def read(self, pieces: Pieces) -> None:
        """Read the records of a stream to its end; a failure before that becomes a problem."""
        for offset, records in read_records(pieces, self._end):
            self._read_block(offset, records)
        self._can_go_on &= pieces.is_plain
        failure = pieces.failure()
        if failure:
            self._can_go_on, self._is_cut = False, True
            self._problem(self._end - self._offset, *failure)
        for one in self._problems:
            if one.count:
                self._emit("problem", int(one.where), one.kind, one.message, one.count)
        self._problems = Problems()
        self._emit("last", self._last_us)
        self._emit("log_ended", self._is_cut, failure is not None)

    def _read_block(self, offset: int, records: Records) -> None:
        self._end = offset + records.end
        self._offset, self._block = offset, records.buffer
        self._note_prefixes(records)
        if records.is_too_long:
            self._problem(0, "limit", "the record is too long: it was not read")
        if offset == 0 and records.end:
            self._note_beginning(records)
        for span in records.spans():
            if isinstance(span, Stray):
                # Of the first line of the log, `_note_beginning` tells.
                more = span.lines - (not (offset or span.start))
                if more:
                    self._problem(span.start, "not_a_record", self._quoted(span.start, span.end), more)
            else:
                _READ[span.kind](self, span)
        self._is_cut = records.end == records.size and self._ends_cut(records)
        if self._is_cut and records.is_cut:
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

    def _ends_cut(self, records: Records) -> bool:
        """Whether the last record is incomplete: its last line, or its payload."""
        start = records.starts[-1]
        line_end = self._block.find(b"\n", start, records.size)
        recorded = _PAYLOAD_HASH.search(self._block, start, line_end) if line_end >= 0 else None
        if records.is_cut or recorded is None:
            return records.is_cut
        block = memoryview(self._block)[: records.size]
        return payload_hash(payload_in(block, line_end)) != recorded[1].decode()

    def _note_prefixes(self, records: Records) -> None:
        """Note the pid, and the first and last time of the log."""
        if not self._has_prefix:
            # The beginning of a log may be lost, or foreign.
            for start in records.starts:
                if match := records.prefix(start):
                    self._has_prefix = True
                    self._emit("first", self._offset + start, pid_of(match), clock_of(match))
                    break
        for start in reversed(records.starts):
            if (match := records.prefix(start)) and (last_us := clock_of(match)) is not None:
                self._last_us = last_us
                break
        if not self._has_clock:
            self._find_epoch(records)

    def _find_epoch(self, records: Records) -> None:
        """Find the year and the time zone from the first event that contains its time since the epoch."""
        at = self._block.find(_EVENT, 0, records.end)
        while at >= 0 and not self._has_clock:
            match = records.prefix(self._block.rfind(b"\n", 0, at) + 1)
            later = bisect_right(records.starts, at)
            following = records.starts[later] if later < len(records.starts) else records.end
            end = min(at + _MOST_BEFORE_STAMP, following)
            stamp = _STAMP.search(self._block, at, end) if match else None
            if match and stamp and (clock_us := clock_of(match)) is not None:
                with contextlib.suppress(ValueError):  # dots alone
                    if (clock := LogClock.from_event(clock_us, float(stamp[1]))) is not None:
                        self._has_clock = True
                        self._emit("clock", clock.year, clock.offset_us, clock.known_us)
            at = self._block.find(_EVENT, end, records.end)

    def _read_string(self, span: Span) -> None:
        if (string := interned_string(span.line)) is not None:
            self._emit("string", *string)

    def _note_aot_code(self, span: Span) -> None:
        if self._block.startswith(_AOT_CODE, span.prefix.end()):
            self._emit("aot_code", span.clock_us)

    def _note_cache_dir(self, span: Span) -> None:
        match = _OUTPUT_CODE.match(self._block, span.prefix.end(), span.line_end)
        code_path = match[1].decode("utf-8", "replace") if match else ""
        folder = os.path.dirname(os.path.dirname(code_path))
        if folder and (envelope := self._envelope(span)) is not None:
            self._emit("folder", compile_id_of(envelope), folder)

    def _note_guards(self, span: Span) -> None:
        at = self._block.find(_CURRENT_DEVICE, span.line_end, span.end)
        # Modes of the stack follow, the innermost last.
        devices = _DEVICE.findall(self._block, at, span.end) if at >= 0 else ()
        at = self._block.find(_SELF, span.line_end, span.end)
        is_self = at >= 0
        if not is_self and self._block.find(_MODULES_OF_FIRST, span.line_end, span.end) >= 0:
            at = self._block.find(_FIRST, span.line_end, span.end)
        match = _CLASS.match(self._block, at, span.end) if at >= 0 else None
        if (match or devices) and (envelope := self._envelope(span)) is not None:
            found = match[1] if match else b"", devices[-1] if devices else b""
            name, device = (one.decode("utf-8", "replace") for one in found)
            self._emit("guards", compile_id_of(envelope), name, device, is_self, *span.same)

    def _problem(self, at: int, kind: str, message: str, count: int = 1) -> None:
        """Tell of the first of like problems at once, and of the others when all are counted."""
        if self._problems.note("", str(self._offset + at), kind, message, count):
            self._emit("problem", self._offset + at, kind, message, count)
            self._problems[-1].count = 0

    def _envelope(self, span: Span) -> Record | None:
        try:
            envelope = Record(load_json(span.line))
        except ValueError as error:
            self._problem(span.start, "not_json", str(error))
            return None
        self._tell("rank", envelope.whole("rank"))
        return envelope

    def _tell(self, name: str, value: object) -> None:
        """Tell a fact of the process once."""
        if value is not None and name not in self._told:
            self._told.add(name)
            self._emit("told", name, value)

    def _emit_wrong(self, span: Span, *records: Record) -> None:
        """Report wrong values of a record, if any, as a problem."""
        wrong = [one for record in records for one in record.wrong]
        if message := wrong_values(wrong, span.clock_us):
            self._problem(span.start, "bad_value", message)

    def _read_dynamo_start(self, span: Span) -> None:
        if (envelope := self._envelope(span)) is None:
            return
        if (start := envelope.record("dynamo_start")) is None:
            self._emit_wrong(span, envelope)
            return
        compile_id, frames = compile_id_of(envelope), start.objects("stack")
        self._emit("compile_began", self._offset + span.start, compile_id, frames, envelope.wrong, *span.same)

    def _note_graph(self, span: Span) -> None:
        if (envelope := self._envelope(span)) is not None:
            place = function_in(self._block, span.line_end, span.end)
            self._emit("graph", compile_id_of(envelope), traced_in(span.payload), place, *span.same)

    def _read_recompiles(self, span: Span) -> None:
        if (envelope := self._envelope(span)) is not None:
            self._emit("recompiles", compile_id_of(envelope), recompile_reasons(span.payload))
            self._emit_wrong(span, envelope)

    def _read_gpus(self, span: Span) -> None:
        if "gpus" not in self._told:
            self._tell("gpus", gpus_in(span.payload))

    def _read_version(self, span: Span) -> None:
        if (objects := self._objects(span)) is not None:
            envelope, payload = objects
            version = payload.version("pytorch_version")
            self._told |= set() if version is None else {"torch_version"}
            self._emit("torch_version", version)
            self._emit_wrong(span, envelope, payload)

    def _read_lookup(self, span: Span) -> None:
        if (objects := self._objects(span)) is not None:
            envelope, payload = objects
            lookup = lookup_from_artifact(span.kind, payload)
            self._is_recorded.add(lookup.cache)
            lookup.compile_id = compile_id_of(envelope) or lookup.compile_id
            lookup.detail_set = self._add_details(span.start, payload)
            self._emit("lookup", lookup, _AFTER_COMPILE in span.prefix["place"], *span.same)
            self._emit_wrong(span, envelope, payload)

    def _read_preflight(self, span: Span) -> None:
        if (objects := self._objects(span)) is not None:
            self._emit("preflight", objects[1].values, *span.same)

    def _read_kernels(self, span: Span) -> None:
        if (objects := self._objects(span)) is not None:
            envelope, found = objects
            self._emit("kernels", kernel_lookups(compile_id_of(envelope), found), *span.same)
            self._emit_wrong(span, envelope, found)

    def _objects(self, span: Span) -> tuple[Record, Record] | None:
        """The object in the line of a record, and the one in its payload; None if either cannot be read."""
        envelope = self._envelope(span)
        if envelope is None:
            return None
        try:
            loaded = span.read_payload()
        except ValueError as error:
            cut = payload_hash(span.payload) != envelope.text("has_payload")
            message = "the payload is cut" if cut else f"the payload is no JSON: {error}"
            self._problem(span.start, "truncated" if cut else "not_json", f"{span.kind}: {message}")
            return None
        if isinstance(loaded, dict):
            return envelope, Record(loaded)
        self._problem(span.start, "not_json", "the payload is no JSON object")
        return None

    def _add_details(self, at: int, payload: Record) -> int | None:
        components = payload.values.get("components") or []
        if not isinstance(components, list) or not set(map(type, components)) <= {str}:
            self._problem(at, "hash_detail", "components is no list of texts")
            components = []
        set_code, rejected = self._details.add_or_join(components)
        for text, count in Counter(rejected).items():
            self._problem(at, "hash_detail", not_a_hash_detail(text), count)
        return set_code

    def _read_event(self, span: Span) -> None:
        """Read the event that ends a compile; skip lookups whose artifact contains the same."""
        state = _CACHE_STATE.search(self._block, span.line_end, span.end)
        if state is None or state[1] not in _UNCACHED:
            self._note_lookup_event(span, FXGRAPH)
            return
        try:
            event = Record(span.read_payload())
        except ValueError as error:
            self._problem(span.start, "not_json", f"{span.kind}: {error}")
            return
        lookup = lookup_from_event(event)
        if lookup is not None:
            self._emit("uncached", lookup, *span.same)
        self._emit_wrong(span, event)

    def _note_lookup_event(self, span: Span, cache: str) -> None:
        """Note that the event which ends a compile says that a cache was asked, unless a record of a lookup was read."""
        if cache in self._is_recorded:
            return
        state = _CACHE_STATE.search(self._block, span.line_end, span.end)
        if state is not None and state[1] in _LOOKED_UP:
            self._is_recorded.add(cache)
            self._emit("asked", self._offset + span.start, cache)

    def _read_metrics(self, span: Span) -> None:
        try:
            envelope = Record(load_json(span.line))
        except ValueError:  # it is cut: which compile ended is not known
            envelope = Record({})
        metrics = envelope.record(span.kind) or Record({})
        # torch 2.4 and 2.5 write how long generating code took, and null where no graph of the compile needed any.
        has_no_code = metrics.values.get("code_gen_time_s", 0) is None
        ended = compile_id_of(envelope), error_in(metrics), has_no_code
        is_backward = span.kind.startswith("bwd_") or metrics.flag("is_forward") is False
        self._emit("compile_ended", *ended, place_in(metrics), is_backward, *span.same)
        python = metrics.version("python_version")
        self._tell("python_version", python and python.partition(" ")[0])
        self._tell("torch_version", metrics.version("pytorch_version"))


_READ: Final[dict[str, Callable[[TraceReader, Span], None]]] = {
    "inductor_compile": TraceReader._read_event,
    "backend_compile": partial(TraceReader._note_lookup_event, cache=AOTAUTOGRAD),
    "dynamo_start": TraceReader._read_dynamo_start,
    "dynamo_output_graph": TraceReader._note_graph,
    **dict.fromkeys(("compilation_metrics", "bwd_compilation_metrics"), TraceReader._read_metrics),
    "str": TraceReader._read_string,
    "inductor_output_code": TraceReader._note_cache_dir,
    "graph_dump": TraceReader._note_aot_code,
    "dynamo_cpp_guards_str": TraceReader._note_guards,
    **dict.fromkeys(LOOKUP_ARTIFACTS, TraceReader._read_lookup),
    VERSION_ARTIFACT: TraceReader._read_version,
    RECOMPILE_ARTIFACT: TraceReader._read_recompiles,
    RUNNABLE_ARTIFACT: TraceReader._read_gpus,
    KERNELS_ARTIFACT: TraceReader._read_kernels,
    PREFLIGHT_ARTIFACT: TraceReader._read_preflight,
}
"""What reads each kind of record."""

TRACE: Final = LogKind("trace", TraceReader, TraceProcess)


def read_trace_part(path: str, reading: Reading, start: int, end: int | None) -> None:
    """As `LogKind.read_events`, of a part that begins and ends at a record."""
    TRACE.read_events(path, reading, str(start) if start else None, None if end is None else end - start)


def parts_of_trace(path: str, part_bytes: int) -> list[tuple[int, int | None]]:
    """The start and end of each part of a trace, of about `part_bytes` each, the last ones less.

    Empty if one process should read the log: it has less than two such parts, is packed or at an address, or does not
    begin with torch's records. The last part has no end: the log may have grown by then.
    """
    try:
        count = 0 if is_address(path) else os.path.getsize(path) // part_bytes
        if count < 2:
            return []
        with open_bytes(path) as stream:
            if not Pieces(stream).is_plain or not looks_like_trace_log(stream.read(_SEARCHED_BYTES)):
                return []
            size = stream.seek(0, os.SEEK_END)
            # The last parts are halves: this shortens the wait if one of the workers is late.
            cuts = [*range(2, 2 * count, 2), 2 * count - 3, 2 * count - 1]
            starts = {_record_behind(stream, size * cut // (2 * count)) for cut in cuts}
    except (OSError, SourceError):
        return []
    ends = sorted(start for start in starts if start is not None)
    return list(zip([0, *ends], [*ends, None], strict=True)) if ends else []


def _record_behind(stream: IO[bytes], place: int) -> int | None:
    """The start of the first record at or after an offset; None if none begins within the searched bytes."""
    stream.seek(place - 1)
    found = RECORD_START.search(stream.read(_SEARCHED_BYTES))
    return None if found is None else place + found.start()
