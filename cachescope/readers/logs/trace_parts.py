"""Reads one trace in parts, with several workers, and puts the results together in order.

A part begins and ends at a record. Its worker stores the calls that `TraceReader` makes, and this process repeats
them on the one `TraceProcess` of the log. The result is the same as from reading the log in one piece.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final

from cachescope.errors import SourceError
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.json_record import load_json
from cachescope.readers.kinds import looks_like_trace_log
from cachescope.readers.logs.byte_source import Pieces, open_bytes
from cachescope.readers.logs.remote import is_address
from cachescope.readers.logs.trace_process import TraceProcess
from cachescope.readers.logs.trace_reader import TraceReader
from cachescope.readers.logs.trace_records import RECORD_START
from cachescope.readers.reading import Process, Reading

if TYPE_CHECKING:
    from cachescope.readers.index.log_tables import LogTables

# If no record begins within so many bytes, the parts on either side are joined.
_SEARCHED_BYTES: Final = 1 << 18
# These words come with a lookup, which has a column of its own.
_OF_A_LOOKUP: Final = ("lookup", "uncached")


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


def read_trace_part(path: str, reading: Reading, start: int, end: int | None) -> None:
    """Read a part of a trace into `reading`: one `Process` that holds the recorded calls, for `put_together`."""
    calls = _Calls()
    reader = TraceReader(reading.details, reading.known_json, calls.handle, start)
    with open_bytes(path) as stream:
        stream.seek(start)
        reader.read(stream, None if end is None else end - start)
    reading.processes.append(
        Process(path, "trace", pid=None, lookups=calls.lookups, end_state=json.dumps(calls.columns))
    )


class _Calls:
    """Records the calls of a `TraceReader`, to be repeated later.

    They are stored in columns of plain values: thousands of lists would burden the garbage collector.
    """

    def __init__(self) -> None:
        self.lookups: list[LookupRow] = []
        self._words: list[str] = []
        self._counts: list[int] = []
        self._values: list[Any] = []

    @property
    def columns(self) -> tuple[list[str], list[int], list[Any]]:
        """The words, the number of values of each, and all values."""
        return self._words, self._counts, self._values

    def handle(self, word: str, *values: Any) -> None:
        """Record one call of `TraceProcess.handle`."""
        if word in _OF_A_LOOKUP:
            self.lookups.append(values[0])
            values = values[1:]
        self._words.append(word)
        self._counts.append(len(values))
        self._values += values


def put_together(path: str, reading: Reading, parts: Iterable[LogTables]) -> None:
    """Read a trace into `reading` from its parts, as `read_trace_log` does."""
    trace = TraceProcess(path, path, reading)
    for part in parts:
        if not part.processes:
            (problem,) = part.problems
            raise SourceError(path, problem.message, problem.kind)
        (process,) = part.processes
        codes = part.add_details_to(reading.details)
        for lookup in process.lookups:
            if lookup.detail_set is not None:
                lookup.detail_set = codes[lookup.detail_set]
        for word, values in _calls_of(process):
            trace.handle(word, *values)
        if trace.has_failed:
            break
    trace.finish()


def _calls_of(process: Process) -> Iterator[tuple[str, list[Any]]]:
    words, counts, every = load_json((process.end_state or "[[], [], []]").encode())
    lookups, values = iter(process.lookups), iter(every)
    for word, count in zip(words, counts, strict=True):
        own = list(islice(values, count))
        yield word, [next(lookups), *own] if word in _OF_A_LOOKUP else own
