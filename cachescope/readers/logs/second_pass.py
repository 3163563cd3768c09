"""The traces of runs read once more, for what lookups do not need: their files may have changed since they were read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from cachescope.errors import SourceError
from cachescope.frames.recorded_rows import ProblemRow, RunRow
from cachescope.readers.file_fingerprints import Stamps, file_stamps
from cachescope.readers.json_record import well_formed
from cachescope.readers.kinds import LOG_HEAD_BYTES, first_record, looks_like_trace_log
from cachescope.readers.logs.byte_source import Pieces, open_bytes, read_head
from cachescope.readers.logs.log_prefix import pid_of
from cachescope.readers.logs.remote import is_address

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
