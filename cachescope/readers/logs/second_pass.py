"""The traces of runs read once more, for what lookups do not need: their files may have changed since they were read.

What began and ended when: torch/_dynamo/utils.py, `ChromiumEventLogger`, writes a ``chromium_event`` record whose payload has ``name``,
``ts`` in microseconds since the epoch, ``ph`` (B begins, E ends) and ``args`` with the compile id. Most records of a trace are events,
but lookups need none of them.

What a trace has of one compile in full: its graphs, guards, generated code. torch/_logging/_internal.py, `trace_structured`: a record
names what follows it, and the compile that it is of. torch 2.4 to 2.15.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from cachescope.errors import NotFoundError, SourceError
from cachescope.frames.compile_rows import RecordedText
from cachescope.frames.recorded_rows import LookupRow, ProblemRow, RunRow
from cachescope.readers.file_fingerprints import Stamps, file_stamps
from cachescope.readers.json_record import MOST_NS_OF_A_DURATION, Record, load_json, well_formed
from cachescope.readers.kinds import LOG_HEAD_BYTES, first_record, looks_like_trace_log
from cachescope.readers.logs.byte_source import Pieces, open_bytes, read_head
from cachescope.readers.logs.log_prefix import pid_of
from cachescope.readers.logs.remote import is_address
from cachescope.readers.logs.trace_compiles import (
    NO_COMPILE,
    compile_id_of,
    first_attempt,
    traced_in,
    without_values,
)
from cachescope.readers.logs.trace_records import TracePass, payload_hash

# In JSON a quote within a text is escaped, so no text can hold this.
_EVENT: Final = re.compile(rb'\] \{"chromium_event"')
_KINDS: Final = {"B": True, "E": False, "i": None}
# There are hundreds of events, and `time` tells what they say.
_HAS_TEXT: Final = re.compile(rb'\] \{(?!"chromium_event")[^\n]*"has_payload": "')
CHANGED: Final = "changed"
"""The kind of the problem of a trace that is another one than was read."""

Found = TypeVar("Found")
Read = Callable[[str, int | None], tuple[Found, Sequence[ProblemRow]]]
"""Reads a trace, or its first bytes only: what it holds, and what could not be read."""


def read_traces(
    runs: Iterable[RunRow], stamped: Stamps, what: str, read: Read[Found]
) -> tuple[list[tuple[int, Found]], list[ProblemRow]]:
    """Read the traces of runs once more."""
    found: list[tuple[int, Found]] = []
    problems: list[ProblemRow] = []
    for run in runs:
        for source in run.sources:
            try:
                trace = _trace(source, run.pid, stamped, what)
                if trace is None:
                    continue
                content, unread = read(*trace)
            except SourceError as error:
                problems.append(ProblemRow(source, "", error.kind, error.message))
                continue
            found.append((run.run, content))
            problems += unread
            # A process writes one trace; another one of the same run is a copy.
            break
    return found, [
        replace(one, source=well_formed(one.source), message=well_formed(one.message)) for one in problems
    ]


def _trace(source: str, pid: int | None, stamped: Stamps, what: str) -> tuple[str, int | None] | None:
    """A source and how much of it was read before; None if it is no trace."""
    size = None
    if not is_address(source):
        before, now = stamped.get(source), file_stamps([source]).get(source)
        if now is None:
            raise SourceError(source, f"is gone since it was read: {what} are not known", "missing")
        if before is not None and now != before:
            if now[0] <= before[0] or not _is_plain(source):
                raise _changed(source, what)
            size = before[0]
    head = read_head(source, LOG_HEAD_BYTES)
    if not looks_like_trace_log(head):
        return None
    first = first_record(head)
    if first is not None and None not in (pid, pid_of(first)) and pid != pid_of(first):
        raise _changed(source, what)
    return source, size


def _changed(source: str, what: str) -> SourceError:
    return SourceError(source, f"has changed since it was read: {what} are not known", CHANGED)


def _is_plain(source: str) -> bool:
    with open_bytes(source) as stream:
        return Pieces(stream).is_plain


class TraceEvent(NamedTuple):
    """The begin or the end of one event."""

    name: str
    time_ns: int
    is_begin: bool | None
    """None where it is neither; `TraceEvents` has no such event."""
    compile_id: str | None


class TraceEvents(TracePass):
    """The events of one trace, in the order of the file; and what could not be read."""

    def __init__(self, path: str, size: int | None = None) -> None:
        super().__init__(path, size)
        self._last_ns: int | None = None

    def __iter__(self) -> Iterator[TraceEvent]:
        for found in self.find(_EVENT):
            if self.is_repeated(found):
                continue
            try:
                values = load_json(found.record[found.line_bytes :])
            except ValueError as error:
                # The last record may be cut: the run says so.
                if not found.is_last:
                    self.problem(found.at, "not_json", f"chromium_event: {error}")
                continue
            event = self._event(values, found.at)
            if event is not None and event.is_begin is not None:
                if self._last_ns is not None and event.time_ns - self._last_ns > MOST_NS_OF_A_DURATION:
                    message = "chromium_event: ts is months after that of the event before"
                    self.problem(found.at, "bad_value", message)
                self._last_ns = event.time_ns
                yield event

    def _event(self, values: object, at: int) -> TraceEvent | None:
        """An event; what is wrong with it becomes a problem."""
        record = Record(values)
        name, time_ns, kind = record.text("name"), record.moment_of_us("ts"), record.text("ph")
        args = record.record("args")
        compile_id = None if args is None else args.text("compile_id")
        for what, value in (("name", name), ("ts", time_ns), ("ph", kind)):
            if value is None and record.values.get(what) is None:
                record.wrong.append(f"{what} is missing")
        if record.wrong:
            self.problem(at, "bad_value", "chromium_event: " + "; ".join(record.wrong))
        if name is None or time_ns is None or kind not in _KINDS:
            return None
        return TraceEvent(name, time_ns, _KINDS[kind], None if compile_id == NO_COMPILE else compile_id)


def _texts_in(trace: TracePass, compile_id: str) -> Iterator[RecordedText]:
    """The texts of one compile, in the order in which torch wrote them."""
    for found in trace.find(_HAS_TEXT):
        try:
            envelope = Record(load_json(found.line[found.line.index(b"] {") + 2 :]))
        except ValueError as error:
            trace.problem(found.at, "not_json", str(error))
            continue
        own = compile_id_of(envelope)
        if own is not None and first_attempt(own) == compile_id and not trace.is_repeated(found):
            yield _text_of(envelope, own, found.text)


def traced_code(run: RunRow, stamped: Stamps, lookup: LookupRow) -> str | None:
    """The graph that Dynamo traced for a lookup, with the graphs within it and without its values; None if its trace has none."""
    with suppress(NotFoundError):
        texts, _ = recorded_texts([run], stamped, lookup.compile_id or "")
        graphs = (one.text.encode() for one in texts if one.name == "dynamo_output_graph")
        # A process may have several compiles of one id: after torch._dynamo.reset().
        found = next((graph for graph in graphs if traced_in(graph)[0] == lookup.traced_graph), None)
        return None if found is None else without_values(found).decode()
    return None


def _text_of(envelope: Record, compile_id: str, payload: bytes) -> RecordedText:
    kind = next(iter(envelope.values))
    about = envelope.record(kind) if isinstance(envelope.values[kind], dict) else None
    name = about.text("name") if about is not None and kind in ("artifact", "graph_dump") else None
    file = None if about is None else about.text("filename")
    is_whole = payload_hash(payload) == envelope.text("has_payload")
    text = payload.decode("utf-8", "replace")
    return RecordedText(0, compile_id, name or well_formed(kind), file, text, is_whole)


def recorded_texts(
    runs: Iterable[RunRow], stamped: Stamps, compile_id: str
) -> tuple[list[RecordedText], list[ProblemRow]]:
    """What the traces of runs have of the compiles with an id, and what could not be read; raises `NotFoundError` if they have nothing."""

    def read(path: str, size: int | None) -> tuple[list[RecordedText], Sequence[ProblemRow]]:
        trace = TracePass(path, size)
        return list(_texts_in(trace, compile_id)), trace.problems

    found, problems = read_traces(runs, stamped, "its texts", read)
    texts = [replace(one, run=run) for run, own in found for one in own]
    if not texts:
        why = f" ({problems[0].source}: {problems[0].message})" if problems else ""
        raise NotFoundError(f"no trace that was read has a text of a compile {compile_id!r}{why}")
    return texts, problems
