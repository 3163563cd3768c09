"""The chromium events of a TORCH_TRACE file: what began and ended when, in a pass of its own.

torch/_dynamo/utils.py, `ChromiumEventLogger`: a ``chromium_event`` record whose payload has ``name``, ``ts`` in microseconds since the
epoch, ``ph`` (B begins, E ends) and ``args`` with the compile id. Most records of a trace are events, but lookups need none of
them: this pass is made only when phases are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from cachescope.readers.json_record import MOST_NS_OF_A_DURATION, Record, load_json
from cachescope.readers.logs.trace_compiles import NO_COMPILE
from cachescope.readers.logs.trace_records import TracePass

# In JSON a quote within a text is escaped, so no text can hold this.
_EVENT: Final = re.compile(rb'\] \{"chromium_event"')


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
        for found in self._find(_EVENT):
            if self._is_repeated(found):
                continue
            try:
                values = load_json(found.record[found.line_bytes :])
            except ValueError as error:
                # The last record may be cut: the run says so.
                if not found.is_last:
                    self._problem(found.at, "not_json", f"chromium_event: {error}")
                continue
            event = self._event(values, found.at)
            if event is not None and event.is_begin is not None:
                if self._last_ns is not None and event.time_ns - self._last_ns > MOST_NS_OF_A_DURATION:
                    message = "chromium_event: ts is months after that of the event before"
                    self._problem(found.at, "bad_value", message)
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
            self._problem(at, "bad_value", "chromium_event: " + "; ".join(record.wrong))
        if name is None or time_ns is None or kind not in _KINDS:
            return None
        return TraceEvent(name, time_ns, _KINDS[kind], None if compile_id == NO_COMPILE else compile_id)


_KINDS: Final = {"B": True, "E": False, "i": None}
