"""Logs that are written bit by bit or read in parts, and what shows that this gives what reading them at once gives."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import orjson
import pandas as pd

import cachescope
from cachescope.readers.index.log_tables import LogTables
from cachescope.readers.kinds import looks_like_trace_log
from cachescope.readers.logs.byte_source import open_bytes
from cachescope.readers.logs.log_events import LogKind, fold_events
from cachescope.readers.logs.many_logs import read_alone
from cachescope.readers.logs.text_log import TEXT
from cachescope.readers.logs.trace_log import TRACE, read_trace_part
from cachescope.readers.reading import Reading
from cachescope.scope import Scope
from tests.readings import read_by


def written(path: Path, data: bytes) -> Path:
    """The log up to here; its time stays, for a log that tells none gets its year from it."""
    with open(path, "r+b" if path.exists() else "wb") as file:
        file.seek(0, os.SEEK_END)
        file.write(data[file.tell() :])
    os.utime(path, (1_760_000_000, 1_760_000_000))
    return path


# Recordings that have every kind of record of a trace.
TRACES = [
    ("2.13.0", "tour"), ("2.13.0", "force_disabled"), ("2.13.0", "bypass_custom_pass_fx"),
    ("2.6.0", "config_flip"), ("2.10.0", "config_flip"),
]  # fmt: skip


def one_trace(recorded: Path) -> bytes:
    """All processes of a recording in one log, in the order of time: what goes back in time may say again what it said."""
    traces = (path.read_bytes() for path in (recorded / "trace").iterdir())
    return b"".join(sorted(traces, key=lambda data: data[:21]))


def _kind(path: Path) -> LogKind:
    return TRACE if looks_like_trace_log(path.read_bytes()) else TEXT


def keep(path: Path) -> bytes:
    """What is kept of a log: its events."""
    return _line_of(read_alone(_kind(path).read_events, str(path)))


def _line_of(log: LogTables) -> bytes:
    line = log.to_json()
    assert line is not None
    return line


def _log_in(line: bytes, path: Path) -> LogTables:
    return LogTables.from_json(orjson.loads(line), str(path))


def can_go_on(kept: bytes) -> bool:
    ends = orjson.loads(kept)["processes"]["end_state"]
    return bool(ends) and None not in ends


def read_on(path: Path, kept: bytes) -> bytes | None:
    """What is kept of a log that has grown since; None if it has to be read anew."""
    reading = Reading()
    _log_in(kept, path).merge_into(reading)
    if not _kind(path).read_on(str(path), reading):
        return None
    return _line_of(LogTables.of(str(path), reading))


def folded(path: Path, *parts: bytes, strict: bool = False) -> Reading:
    """The reading that the kept events of a log give."""
    reading = Reading(strict)
    fold = _kind(path).fold(str(path), reading)
    fold_events(fold, reading, [_log_in(part, path) for part in parts])
    return reading


def read_anew(path: Path) -> Reading:
    return read_by(_kind(path).read, str(path))


def in_parts(path: Path, places: Sequence[tuple[int, int | None]], strict: bool = False) -> Reading:
    """The parts of a trace as workers tell them, the last one read first."""
    told = [
        _line_of(read_alone(partial(read_trace_part, start=start, end=end), str(path)))
        for start, end in reversed(places)
    ]
    return folded(path, *reversed(told), strict=strict)


def goes_on(path: Path, first: bytes, whole: bytes) -> tuple[bool, bool]:
    """Whether there is a way on from the first bytes of a log, and whether it leads on; then it gives what reading anew gives."""
    path.unlink(missing_ok=True)
    kept = keep(written(path, first))
    if not can_go_on(kept):
        return False, False
    on = read_on(written(path, whole), kept)
    if on is None:
        return True, False
    assert_same(folded(path, on), read_anew(path))
    return True, True


def assert_same(one: Reading, other: Reading) -> None:
    assert one.processes == other.processes
    assert one.problems == other.problems
    # Compared as a whole: nobody wants to see megabytes of details.
    is_same = one.details.components == other.details.components
    assert is_same
    sets = [[codes.tobytes() for codes in side.details.sets] for side in (one, other)]
    assert sets[0] == sets[1]


def tour() -> list[bytes]:
    """The traces of the sample of that name."""
    folder = cachescope.sample("tour") / "trace"
    return [open_bytes(str(path)).read() for path in sorted(folder.iterdir())]


def assert_same_scopes(
    one: Scope, other: Scope, frames: Sequence[str] = ("runs", "lookups", "problems")
) -> None:
    for name in frames:
        # When a directory was read is no part of what it holds.
        found = [getattr(each, name).drop(columns="seen_time", errors="ignore") for each in (one, other)]
        pd.testing.assert_frame_equal(*found)
    details, others = one.tables.hash_details, other.tables.hash_details
    assert details.components == others.components
    assert [codes.tolist() for codes in details.sets] == [codes.tolist() for codes in others.sets]


def assert_as_anew(path: Path) -> None:
    assert_same_scopes(cachescope.read(path), cachescope.read(path, index=False))
