"""TORCH_TRACE files: every cache lookup of one process, from torch 2.5 to 2.15.

Only records about caches are parsed. `TraceReader` makes events of them, and `TraceProcess` the process.
"""

from __future__ import annotations

import os
from typing import IO, Final

from cachescope.errors import SourceError
from cachescope.readers.kinds import looks_like_trace_log
from cachescope.readers.logs.byte_source import Pieces, open_bytes
from cachescope.readers.logs.log_events import EventList, LogKind
from cachescope.readers.logs.remote import is_address
from cachescope.readers.logs.trace_process import TraceProcess
from cachescope.readers.logs.trace_reader import TraceReader
from cachescope.readers.logs.trace_records import RECORD_START
from cachescope.readers.reading import Reading

# If no record begins within so many bytes, the parts on either side are joined.
_SEARCHED_BYTES: Final = 1 << 18


TRACE: Final = LogKind("trace", TraceReader, TraceProcess)


def read_trace_part(path: str, reading: Reading, start: int, end: int | None) -> None:
    """As `LogKind.read_events`, of a part that begins and ends at a record."""
    events = EventList()
    reader = TraceReader(reading, events.handle, start)
    with open_bytes(path) as stream:
        stream.seek(start)
        reader.read(stream, None if end is None else end - start)
    reading.processes.append(events.as_process(path, TRACE.name, reader.end_state()))


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
