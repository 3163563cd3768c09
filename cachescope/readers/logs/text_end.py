"""Where the reading of a text log ended: what a later reading needs to go on from there, once the log has grown.

Beside the finished lookups of each process stands what these no longer show, and what was said that waits for
more: lookups without an outcome, guards, an error. The last message of a process is read as it stands; where its
next line belongs to it, the log has to be read anew.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

Head = tuple[str, str | None, str, int | None]
"""Place, compile id, level and clock: what all lines of a message have in common, within one process."""


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """What is known of one process at the end of a log, beside its finished `Process`."""

    name: str
    """What is before torch's prefix, where that names a stream."""
    pid: int | None
    rank: int | None
    first_line: int
    process: int | None
    """Its place among the processes of the log; None while it has made no lookup."""
    clock_first_us: int | None
    clock_last_us: int | None
    cache_dir: str | None
    order: list[int]
    """For each lookup in the order of the messages, its place in the process."""
    clocks_us: list[int | None]
    outcome_clocks_us: list[tuple[int, int | None]]
    """Of lookups by their number in the order of the messages, when their outcome was told."""
    unresolved: list[int]
    """Those without an outcome."""
    segments: list[tuple[str | None, int]]
    guards: dict[str, str]
    load_error: str | None
    last_message: Head
    """Of the message that may go on."""


@dataclass(frozen=True, slots=True)
class TextEnd:
    """What is known of a text log at the end of a line."""

    end: int
    """The byte behind the line."""
    lines: int
    is_named: bool
    """Whether whatever is before torch's prefix names a stream."""
    streams: list[StreamEnd]

    def as_json(self) -> str:
        """The same as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> TextEnd:
        """What `as_json` gave."""
        told = json.loads(text)
        streams = [
            StreamEnd(**{**stream, "last_message": tuple(stream["last_message"])})
            for stream in told["streams"]
        ]
        return cls(told["end"], told["lines"], told["is_named"], streams)
