"""Where the reading of a trace ended: what a later reading needs to continue there once the log has grown.

Reading continues only after a complete record. The state holds what the finished lookups no longer show: the order
of their records, the clocks of these records, and the times that the records themselves contained.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

from cachescope.json_types import JsonObject
from cachescope.readers.logs.log_prefix import LogClock
from cachescope.readers.logs.trace_compiles import CompilesEnd
from cachescope.readers.reading import Lookup, Process


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
    """The `time_ns` of each, before clocks were turned into times."""

    @property
    def clock(self) -> LogClock | None:
        """The clock of the log."""
        if self.year is None or self.offset_us is None or self.known_us is None:
            return None
        return LogClock(self.year, self.offset_us, self.known_us)

    def lookups(self, process: Process) -> list[tuple[Lookup, int | None]]:
        """The lookups and their clocks, in the order and with the times of the records."""
        found = [process.lookups[place] for place in self.order]
        for lookup, told_ns in zip(found, self.told_ns, strict=True):
            lookup.time_ns = told_ns
        return list(zip(found, self.clocks_us, strict=True))

    def as_json(self) -> str:
        """The state as JSON."""
        return json.dumps({field.name: getattr(self, field.name) for field in fields(self)}, default=asdict)

    @classmethod
    def from_json(cls, text: str) -> TraceEnd:
        """Restore the state from the result of `as_json`."""
        values = json.loads(text)
        return cls(**{**values, "compiles": CompilesEnd(**values["compiles"])})
