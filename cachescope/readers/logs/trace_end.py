"""Where the reading of a trace ended: what a later reading needs to go on from there, once the log has grown.

It goes on only behind a whole record. What the finished lookups no longer show stands here beside them: the order
of their records, the clocks of these, and the times that the records themselves told.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from cachescope.readers.logs.log_prefix import LogClock
from cachescope.readers.reading import Lookup, Process


@dataclass(frozen=True, slots=True)
class TraceEnd:
    """What is known of a trace at the end of a record, beside its finished `Process`."""

    end: int
    """The byte behind the record."""
    year: int | None
    offset_us: int | None
    """Those of the log's clock; None while no event has told them."""
    has_compiled: bool
    compiles: dict[str, Any]
    """What is known of compiles beside `Process.compiles`: `TraceCompiles.as_json`."""
    order: list[int]
    """For each lookup in the order of the records, its place in the process."""
    clocks_us: list[int | None]
    told_ns: list[int | None]
    """The `time_ns` of each, before clocks were turned into times."""

    @property
    def clock(self) -> LogClock | None:
        """The clock of the log."""
        return None if self.year is None or self.offset_us is None else LogClock(self.year, self.offset_us)

    def lookups(self, process: Process) -> list[tuple[Lookup, int | None]]:
        """The lookups and their clocks, in the order of the records and as these told them."""
        found = [process.lookups[place] for place in self.order]
        for lookup, told_ns in zip(found, self.told_ns, strict=True):
            lookup.time_ns = told_ns
        return list(zip(found, self.clocks_us, strict=True))

    def as_json(self) -> str:
        """The same as text."""
        return json.dumps({field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def from_json(cls, text: str) -> TraceEnd:
        """What `as_json` gave."""
        return cls(**json.loads(text))
