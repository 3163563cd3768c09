"""Recordings of many runs, made from a few real ones: a fortnight of `cachescope record`, or the ranks of a large job.

Every trace is a real one, record by record, moved in time and given a pid of its own; what `cachescope record` notes
beside it, the command and the commit, is made. ``python tests/many_runs.py FOLDER RUN…`` makes 156 runs of some recorded ones.
"""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path

from cachescope.json_types import JsonObject

_PREFIX = re.compile(rb"^([VIWEC])(\d{4} \d\d:\d\d:\d\d\.\d{6}) +\d+ ", re.MULTILINE)
_EPOCH = re.compile(
    rb'("(?:ts|cache_event_time|start_time_us|end_time_us|start_time)": )(\d{10})(?=\d{0,9}\b)'
)


def begun(trace: bytes) -> datetime:
    """When a trace begins: the prefix of a record has no year, an event has."""
    event = _EPOCH.search(trace)
    return datetime.fromtimestamp(int(event[2]) if event else 0, UTC)


def moved(trace: bytes, by: timedelta, pid: int) -> bytes:
    """A trace as another process would have written it some time later."""

    def prefix(found: re.Match[bytes]) -> bytes:
        moment = datetime.strptime(f"2026{found[2].decode()}", "%Y%m%d %H:%M:%S.%f") + by
        return b"%s%s %d " % (found[1], moment.strftime("%m%d %H:%M:%S.%f").encode(), pid)

    seconds = round(by.total_seconds())
    data = _PREFIX.sub(prefix, trace)
    return _EPOCH.sub(lambda found: b"%s%d" % (found[1], int(found[2]) + seconds), data)


def write_runs(folder: Path, traces: Iterable[bytes], notes: Iterable[JsonObject], first: datetime) -> None:
    """Write a run of each trace and note of a run, from the first time on, two hours apart."""
    for number, (trace, note) in enumerate(zip(traces, notes, strict=True)):
        at = first + number * timedelta(hours=2)
        run = folder / f"{at:%Y-%m-%dT%H-%M-%S}"
        run.mkdir(parents=True)
        by = timedelta(seconds=round((at - begun(trace)).total_seconds()))
        (run / "dedicated_log_torch_trace_made.log").write_bytes(moved(trace, by, 1000 + number))
        times = {"start_time": at.isoformat(), "end_time": (at + timedelta(minutes=1)).isoformat()}
        (run / "run.json").write_text(json.dumps({"cachescope_run": 1, **note, **times, "exit_status": 0}))


def write_ranks(folder: Path, traces: Sequence[bytes], count: int, a_node: int = 8) -> None:
    """Write so many ranks, on nodes of so many; the last rank has the second trace, the others the first."""
    for rank in range(count):
        node = folder / f"node{rank // a_node:02}"
        node.mkdir(parents=True, exist_ok=True)
        trace = traces[rank == count - 1]
        by = begun(traces[0]) - begun(trace)
        by = timedelta(seconds=round(by.total_seconds()), milliseconds=rank)
        (node / f"dedicated_log_torch_trace_rank_{rank}_made.log").write_bytes(moved(trace, by, 5000 + rank))


def fortnight(traces: Sequence[bytes], folder: Path) -> None:
    """Write 156 runs: all are like the last trace, but for the first, and every fiftieth, which is like the second."""
    cold, changed, warm = traces
    logs = [cold if at == 0 else changed if at % 50 == 0 else warm for at in range(156)]
    notes = [{"command": ["python", "train.py", "--bs", "8"], "commit": f"{n // 40:012}"} for n in range(156)]
    write_runs(folder, logs, notes, datetime(2026, 11, 10, 9, tzinfo=UTC))


if __name__ == "__main__":
    # The folder to write, and runs that `cachescope record` made: 156 like them, in turn.
    target, *runs = map(Path, sys.argv[1:])
    read = [next(run.glob("dedicated_log_torch_trace_*")).read_bytes() for run in runs]
    told = [json.loads((run / "run.json").read_text()) for run in runs]
    kept = [{"command": one["command"], "commit": one["commit"]} for one in told]
    at_first = datetime(2026, 11, 10, 9, tzinfo=UTC)
    write_runs(target, islice(cycle(read), 156), islice(cycle(kept), 156), at_first)
