"""Logs that are written bit by bit or read in parts, and what shows that this gives what reading them at once gives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import cachescope
from cachescope.readers.index import log_state
from cachescope.readers.index.log_tables import LogTables, to_arrow
from cachescope.readers.logs import many_logs as logs
from cachescope.readers.logs.many_logs import one_log, read_alone
from cachescope.readers.logs.trace_log import read_on_trace_log, read_trace_log
from cachescope.readers.logs.trace_parts import put_together, read_trace_part
from cachescope.readers.reading import Reading


def written(path: Path, data: bytes) -> Path:
    """The log up to here; its time stays, for a log that tells none gets its year from it."""
    with open(path, "r+b" if path.exists() else "wb") as file:
        file.seek(0, os.SEEK_END)
        file.write(data[file.tell() :])
    os.utime(path, (1_760_000_000, 1_760_000_000))
    return path


# Recordings that have every kind of record of a trace.
TRACES = [
    ("2.13.0", "tour"),
    ("2.13.0", "force_disabled"),
    ("2.13.0", "bypass_custom_pass_fx"),
    ("2.6.0", "config_flip"),
    ("2.10.0", "config_flip"),
]


def one_trace(recorded: Path) -> bytes:
    """All processes of a recording in one log, in the order of time: what goes back in time may say again what it said."""
    traces = (path.read_bytes() for path in (recorded / "trace").iterdir())
    return b"".join(sorted(traces, key=lambda data: data[:21]))


def in_columns(reading: Reading) -> pa.Table:
    """What is kept of a log."""
    table = to_arrow([LogTables.of(reading.processes[0].source, reading)])
    assert table is not None
    return table


def out_of_columns(table: pa.Table) -> Reading:
    """What was kept, to go on from."""
    (tables,) = LogTables.from_arrow(table)
    reading = Reading()
    tables.merge_into(reading)
    return reading


def assert_same(one: Reading, other: Reading) -> None:
    assert one.processes == other.processes
    assert one.problems == other.problems
    # Compared as a whole: nobody wants to see megabytes of details.
    is_same = one.details.components == other.details.components
    assert is_same
    assert [codes.tobytes() for codes in one.details.sets] == [
        codes.tobytes() for codes in other.details.sets
    ]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An index of one's own for logs of any size, none of which is ever quiet; the logs that were read whole."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CACHESCOPE_NO_INDEX")
    monkeypatch.setattr(log_state, "_LEAST_BYTES", 1)
    monkeypatch.setattr(log_state, "_QUIET_NS", 10**18)
    whole: list[str] = []

    def counted(read: logs.ReadLog, path: str, strict: bool) -> object:
        whole.append(path)
        return read_alone(read, path, strict)

    monkeypatch.setattr(logs, "read_alone", counted)
    return whole


def assert_as_anew(path: Path) -> None:
    here, anew = cachescope.read(path), cachescope.read(path, index=False)
    for name in ("runs", "lookups", "problems"):
        pd.testing.assert_frame_equal(getattr(here.tables, name).frame, getattr(anew.tables, name).frame)
    assert here.tables.hash_details.components == anew.tables.hash_details.components


def read_trace(path: Path) -> Reading:
    reading = Reading()
    read_trace_log(str(path), reading)
    return reading


def in_parts(path: Path, places: Sequence[tuple[int, int | None]], strict: bool = False) -> Reading:
    """The parts of a trace as workers tell them, the last one read first."""
    told = []
    for start, end in reversed(places):
        table = read_alone(partial(read_trace_part, start=start, end=end), str(path), strict=False)
        told.append(one_log(table, str(path)))
    reading = Reading(strict)
    put_together(str(path), reading, reversed(told))
    return reading


def assert_read_on(path: Path, text: bytes, cut: int) -> None:
    """A trace that is read up to a cut, kept, and read on is what it is when it is read anew."""
    reading = out_of_columns(in_columns(read_trace(written(path, text[:cut]))))
    assert read_on_trace_log(str(written(path, text)), reading)
    assert_same(reading, read_trace(path))
