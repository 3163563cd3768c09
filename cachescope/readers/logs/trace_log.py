"""TORCH_TRACE files: every cache lookup of one process, from torch 2.5 to 2.15.

Only records about caches are parsed. Their contents are passed to a `TraceProcess` in their order, or stored and passed
to it later: see `trace_parts`.
"""

from __future__ import annotations

from cachescope.readers.logs.byte_source import open_bytes
from cachescope.readers.logs.log_ends import TraceEnd
from cachescope.readers.logs.trace_process import TraceProcess
from cachescope.readers.logs.trace_reader import TraceReader
from cachescope.readers.reading import Reading


def read_trace_log(path: str, reading: Reading, source: str | None = None) -> None:
    """Read one TORCH_TRACE file (plain, gzip or zstandard) into `reading`.

    Adds one `Process` with its lookups in the order in which torch made them. A record that cannot be read
    becomes a problem at its byte offset; the rest is read.
    """
    trace = TraceProcess(source or path, path, reading)
    with open_bytes(path) as stream:
        TraceReader(reading.details, reading.known_json, trace.handle).read(stream)
    trace.finish()


def read_on_trace_log(path: str, reading: Reading) -> bool:
    """Continue reading the one trace in `reading`, whose file has grown since it was read."""
    (process,) = reading.processes
    if process.end_state is None:
        return False
    end = TraceEnd.from_json(process.end_state)
    with open_bytes(path) as stream:
        stream.seek(end.end)
        # The payload of the last record continues.
        if stream.peek(1)[:1] in (b"", b"\t"):  # type: ignore[attr-defined]
            return False
        trace = TraceProcess(process.source, path, reading)
        trace.resume(process, end)
        TraceReader(reading.details, reading.known_json, trace.handle, end.end).read(stream)
    if trace.may_repeat:
        return False
    trace.finish()
    return True
