"""The time of one process: its phases, what caches could do about it, and what passed besides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from cachescope.analysis.phases.readings import Readings
from cachescope.frames.recorded_rows import RunRow


@dataclass(frozen=True, slots=True)
class Besides:
    """The time outside of compiles, which no event covers."""

    # From the start of the command to the first record of the log; None if `cachescope record` did not record
    # it.
    before_ns: int | None
    # Between the first and the last record, outside of all events; None if the log has no times.
    between_ns: int | None
    # From the last record to the end of the command; None as for `before_ns`, or if it still runs.
    after_ns: int | None

    @classmethod
    def of_run(cls, row: RunRow, total_ns: int) -> Self:
        """Of a process whose events cover so much time."""
        if row.start_time is None or row.end_time is None:
            return cls(None, None, None)
        return cls(
            _passed(row.command_start_time, row.start_time),
            _passed(row.start_time + total_ns, row.end_time),
            _passed(row.end_time, row.command_end_time),
        )


def _passed(since: int | None, until: int | None) -> int | None:
    """The time from one moment to another; none passed where clocks that differ a little have them the other way round."""
    return None if since is None or until is None else max(0, until - since)


@dataclass(frozen=True, slots=True)
class RunTime:
    """The time of one process."""

    run: int  # its number
    rank: int | None  # its rank in a distributed job
    name: str  # what it is called in a line
    # The self time of each phase, in nanoseconds, the longest first; the values add up to
    # ``readings.total_ns``.
    phases: dict[str, int]
    readings: Readings  # what hits could save of it, what stays, and what its hits saved
    besides: Besides  # what passed besides
    has_tracing: bool  # false if its torch compiled frames, and wrote no event for Dynamo's tracing
    # Whether these are the times of a pre-flight, which says nothing of those of a real run.
    is_preflight: bool = False

    @property
    def could_save_ns(self) -> int | None:
        """What hits could still save; None of a pre-flight, which compiled nothing."""
        return None if self.is_preflight else self.readings.could_save_ns

    @property
    def stays_ns(self) -> int | None:
        """What stays even if everything hits; None of a pre-flight."""
        return None if self.is_preflight else self.readings.stays_ns
