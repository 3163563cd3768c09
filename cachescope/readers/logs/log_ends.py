"""Where the reading of a log ended: what a later reading needs to continue there once the log has grown.

Of a text log: next to the finished lookups of each process it holds what the lookups no longer show, and what still waits for later
lines: lookups without an outcome, guards, an error. The last message of a process is read as if it were complete. If
the next line belongs to that message, the log has to be read from the start.

Of a trace: reading continues only after a complete record. The state holds what the finished lookups no longer show: the order
of their records, the clocks of these records, and the times that the records themselves contained.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

from cachescope.frames.recorded_rows import LookupRow
from cachescope.json_types import JsonObject
from cachescope.readers.logs.log_prefix import LogClock
from cachescope.readers.logs.trace_compiles import CompilesEnd
from cachescope.readers.reading import Process

Head = tuple[str, str | None, str, int | None]
"""Place, compile id, level and clock: what all lines of a message share, within one process."""


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """What is known of one process at the end of a log, in addition to its finished `Process`."""

    name: str
    """The text before torch's prefix, if it names a stream."""
    pid: int | None
    rank: int | None
    first_line: int
    process: int | None
    """Its index among the processes of the log; None while it has made no lookup."""
    clock_first_us: int | None
    clock_last_us: int | None
    cache_dir: str | None
    order: list[int]
    """For each lookup in the order of the messages, its index in the process."""
    clocks_us: list[int | None]
    outcome_clocks_us: list[tuple[int, int | None]]
    """When the outcomes of lookups were logged, by the lookup's number in the order of the messages."""
    unresolved: list[int]
    """The lookups whose outcome no line has said so far."""
    segments: list[tuple[str | None, int]]
    places: list[tuple[str | None, str, str, int]]
    """The compile ids whose code is known: its function, file and line."""
    guards: dict[str, str]
    is_2_4: bool
    """Whether torch 2.4 wrote it, which says no outcome of AOTAutograd."""
    last_message: Head
    """The head of the message that may continue."""


@dataclass(frozen=True, slots=True)
class TextEnd:
    """What is known of a text log at the end of a line."""

    end: int
    """The offset of the byte after the line."""
    lines: int
    is_named: bool
    """Whether any text before torch's prefix names a stream."""
    streams: list[StreamEnd]

    def as_json(self) -> str:
        """The state as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> TextEnd:
        """Restore the state from the result of `as_json`."""
        state = json.loads(text)
        streams = [
            StreamEnd(**{**stream, "last_message": tuple(stream["last_message"])})
            for stream in state["streams"]
        ]
        return cls(state["end"], state["lines"], state["is_named"], streams)


@dataclass(frozen=True, slots=True)
class TraceEnd:
    """What is known of a trace at the end of a record, in addition to its finished `Process`."""

    end: int
    """The offset of the byte after the record."""
    year: int | None
    offset_us: int | None
    known_us: int | None
    """Year and offset of the log's clock, and the clock that had them; None until an event has shown them."""
    has_compiled: bool
    aot_code_us: int | None
    """The clock of the latest code of AOTInductor, whose compile may not have ended."""
    has_begun: bool
    """Whether a compile began in the log."""
    asked: dict[str, int]
    """For each cache, the offset of the event that says that it was asked."""
    notes: list[JsonObject]
    """Notes of a pre-flight about lookups whose records are still to come."""
    compiles: CompilesEnd
    """What is known of compiles in addition to `Process.compiles`."""
    order: list[int]
    """For each lookup in the order of the records, its index in the process."""
    clocks_us: list[int | None]
    told_ns: list[int | None]
    """The time of each, before clocks were turned into times."""

    @property
    def clock(self) -> LogClock | None:
        """The clock of the log."""
        if self.year is None or self.offset_us is None or self.known_us is None:
            return None
        return LogClock(self.year, self.offset_us, self.known_us)

    def lookups(self, process: Process) -> list[tuple[LookupRow, int | None]]:
        """The lookups and their clocks, in the order and with the times of the records."""
        found = [process.lookups[place] for place in self.order]
        for lookup, told_ns in zip(found, self.told_ns, strict=True):
            lookup.time = told_ns
        return list(zip(found, self.clocks_us, strict=True))

    def as_json(self) -> str:
        """The state as JSON."""
        return json.dumps({field.name: getattr(self, field.name) for field in fields(self)}, default=asdict)

    @classmethod
    def from_json(cls, text: str) -> TraceEnd:
        """Restore the state from the result of `as_json`."""
        values = json.loads(text)
        return cls(**{**values, "compiles": CompilesEnd(**values["compiles"])})
