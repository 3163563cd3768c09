"""Whose a snapshot is that was read with logs: of the process that took it, by its number, its time and where it lies."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.answers.time_spent import TimeSpent
from cachescope.report.comparison import comparison_blocks
from cachescope.report.contexts import contexts_blocks
from cachescope.report.layout import wrapped
from cachescope.report.terminal import terminal_lines
from cachescope.report.time_spent import time_blocks
from tests.conftest import Recording

SECOND = 10**9


@pytest.fixture(scope="module")
def trace(recording: Recording) -> Path:
    return min((recording("2.13.0", "config_flip") / "trace").iterdir())


def taken(file: Path, pid: int | None, time: int | None, **told: object) -> Path:
    """A snapshot that a process took, at a time in nanoseconds."""
    when = None if time is None else datetime.fromtimestamp(time / SECOND, UTC).isoformat()
    context = {"runtime_context": None, "compile_context": {"runtime": "CUDA"}}
    snapshot = {"cachescope_snapshot": 1, "context": context, "pid": pid, "time": when, **told}
    file.write_text(json.dumps(snapshot))
    return file


def recorded(folder: Path, trace: Path, ended: int | None = None) -> Any:
    """A trace in a folder of its own, with when its command ended; its run."""
    folder.mkdir()
    (folder / trace.name).write_bytes(trace.read_bytes())
    (run,) = cachescope.read(folder).tables.runs.rows
    if ended is not None:
        times = {"start_time": run.start_time, "end_time": run.end_time + ended}
        note = {name: datetime.fromtimestamp(time / SECOND, UTC).isoformat() for name, time in times.items()}
        (folder / "run.json").write_text(json.dumps({"cachescope_run": 1, **note}))
    return run


@pytest.mark.parametrize(("pid", "after", "ended", "is_of_it"), [
    # While it ran, or within a minute of its last record.
    (0, 0, None, True), (0, 59, None, True), (0, 62, None, False), (0, -3600, None, False),
    # Before its command ended, however long nothing was compiled.
    (0, 3000, 3600, True), (0, 3700, 3600, False),
    (1, 0, None, False), (None, 0, None, False), (0, None, None, False),
])  # fmt: skip
def test_a_snapshot_is_of_the_process_that_took_it(
    pid: int | None, after: int | None, ended: int | None, is_of_it: bool, trace: Path, tmp_path: Path
) -> None:
    run = recorded(tmp_path / "run", trace, None if ended is None else ended * SECOND)
    time = None if after is None else run.end_time + after * SECOND
    taken(tmp_path / "host.json", None if pid is None else run.pid + pid, time)
    rows = cachescope.read(tmp_path).all_contexts.rows
    assert [row.run for row in rows] == ([0] if is_of_it else [None, 0])
    assert [row.context for row in rows] == [*range(len(rows))]
    # What its lookups show stays theirs.
    assert rows[-1].inductor_configs is not None and ("runtime" in rows[-1].missing_forms) != is_of_it


def test_of_processes_with_one_number_it_is_of_the_one_beside_it(trace: Path, tmp_path: Path) -> None:
    """In containers, all that runs has the same few numbers."""
    later = trace.with_name(sorted(one.name for one in trace.parent.iterdir())[1])
    for name, one in (("a", trace), ("b", later)):
        run = recorded(tmp_path / name, one)
        for path in (tmp_path / name).glob("dedicated*"):
            path.write_bytes(path.read_bytes().replace(f" {run.pid} ".encode(), b" 77 "))
    scope = cachescope.read(tmp_path)
    last = max(row.end_time for row in scope.tables.runs.rows)
    file = taken(tmp_path / "host.json", 77, last)
    assert None in [row.run for row in cachescope.read(tmp_path).all_contexts.rows]
    file.rename(tmp_path / "a" / "host.json")
    of_run = {row.run: row.known_from for row in cachescope.read(tmp_path).all_contexts.rows}
    beside = next(row.run for row in scope.tables.runs.rows if "/a/" in row.source)
    assert of_run == {beside: None, 1 - beside: "hash_details"}


def test_a_run_has_the_versions_that_only_its_snapshot_says(recording: Recording, tmp_path: Path) -> None:
    """Traces name the version of torch from 2.11 on."""
    trace = min((recording("2.6.0", "config_flip") / "trace").iterdir())
    run = recorded(tmp_path / "run", trace)
    assert run.torch_version is None
    taken(tmp_path / "host.json", run.pid, run.end_time, torch_version="2.6.0", python_version="3.11.2")
    scope = cachescope.read(tmp_path)
    assert scope.runs["torch_version"].tolist() == ["2.6.0"]


def test_runs_on_other_cores_are_told_apart_only_where_both_recorded_them(
    trace: Path, tmp_path: Path
) -> None:
    other = max(trace.parent.iterdir())
    few = {
        "cores": 64,
        "usable_cores": 2,
        "cpu_quota_us": 150_000,
        "cpu_period_us": 100_000,
        "memory_limit_bytes": 16 * 10**9,
    }
    told = "2 of 64 cores, 1.5 by quota, 16.0 GB of memory"
    for at, (log, machine) in enumerate(((trace, few), (other, {"cores": 64, "usable_cores": 64}))):
        run = recorded(tmp_path / str(at), log)
        taken(tmp_path / str(at) / "context.json", run.pid, run.end_time, machine=machine)
    scope = cachescope.read(tmp_path)
    (row,) = scope.contexts[scope.contexts["core_quota"].notna()].itertuples()
    assert (row.cores, row.usable_cores, row.core_quota, row.memory_limit_bytes) == (64, 2, 1.5, 16 * 10**9)
    assert told in " ".join(wrapped(terminal_lines(contexts_blocks(scope))).split())
    said = {f"on other machines: {told}, and 64 cores", f"on other machines: 64 cores, and {told}"}
    assert said & {line.text for line in terminal_lines(time_blocks(TimeSpent.of(scope)))}
    assert said & {
        line.text
        for line in terminal_lines(comparison_blocks(cachescope.compare("run:0", "run:1", within=scope)))
    }
    (tmp_path / "1" / "context.json").unlink()
    half = cachescope.read(tmp_path)
    assert "on other machines" not in repr(cachescope.compare("run:0", "run:1", within=half))
    assert sorted(half.contexts["cores"].isna()) == [False, True]
