"""The frame phases: of the traces as they were read, whatever became of them since."""

import gzip
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.phases.frame import read_phases
from cachescope.frames.recorded_rows import RunRow
from cachescope.readers.logs.second_pass import CHANGED
from cachescope.rows import columns_of
from tests.conftest import Recording


@pytest.fixture
def log(recording: Recording, tmp_path: Path) -> Path:
    """A copy of the trace of a cold start, by a name of its own."""
    traces = (recording("2.13.0", "training") / "trace").iterdir()
    largest = max(traces, key=lambda path: path.stat().st_size)
    return Path(shutil.copy(largest, tmp_path / "one.log"))


def test_a_trace_that_is_gone_is_a_problem_and_no_zero(log: Path) -> None:
    scope = cachescope.read(log)
    log.unlink()
    assert scope.phases.empty
    assert scope.phase_problems[["source", "kind"]].values.tolist() == [[str(log), "missing"]]


@pytest.mark.parametrize("change", ["shorter", "same size", "another process", "packed"])
def test_a_trace_that_changed_since_is_a_problem(change: str, log: Path) -> None:
    data = log.read_bytes()
    pid = data.split(b" ", 3)[2]
    if change == "packed":
        log.write_bytes(gzip.compress(data[: len(data) // 2]))
    scope = cachescope.read(log)
    match change:
        case "shorter":
            log.write_bytes(data[:-1000])
        case "same size":
            os.utime(log, ns=(0, 0))
        case "packed":
            log.write_bytes(gzip.compress(data))
        case _:
            log.write_bytes(data.replace(b" %b torch" % pid, b" 99 torch") + data)
    assert scope.phases.empty
    assert scope.phase_problems["kind"].tolist() == [CHANGED]


def test_of_a_trace_that_grows_the_part_counts_that_was_read(log: Path) -> None:
    data = log.read_bytes()
    cut = data.rindex(b"\nV", 0, len(data) // 2) + 1
    log.write_bytes(data[:cut])
    before, late = cachescope.read(log), cachescope.read(log)
    phases = before.phases
    with log.open("ab") as file:
        file.write(data[cut:])
    pd.testing.assert_frame_equal(late.phases, phases)
    assert late.phase_problems.empty
    assert late.read_again().phases["count"].sum() > phases["count"].sum()


@pytest.mark.slow
def test_a_saved_scope_keeps_its_phases(log: Path, tmp_path: Path) -> None:
    scope = cachescope.read(log)
    scope.save(tmp_path / "saved")
    log.unlink()
    again = cachescope.read(tmp_path / "saved")
    pd.testing.assert_frame_equal(again.phases, scope.phases)
    assert again.phase_problems.empty
    scope = cachescope.read(tmp_path / "saved")
    scope.save(tmp_path / "saved again")
    pd.testing.assert_frame_equal(cachescope.read(tmp_path / "saved again").phases, scope.phases)


def test_a_saved_scope_says_which_events_could_not_be_read(log: Path, tmp_path: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'"ts": 1', b'"ts": -1', 1))
    scope = cachescope.read(log)
    assert scope.problems.empty
    assert scope.phase_problems["kind"].tolist() == ["bad_value"]
    scope.save(tmp_path / "saved")
    saved = cachescope.read(tmp_path / "saved")
    pd.testing.assert_frame_equal(saved.problems, scope.phase_problems)


def test_a_copy_of_a_trace_is_not_counted_again(log: Path, tmp_path: Path) -> None:
    phases = cachescope.read(log).phases
    copied = shutil.copy(log, tmp_path / "two.log")
    pd.testing.assert_frame_equal(cachescope.read(log, copied).phases, phases)


def test_a_text_log_has_no_events(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "training") / "text")
    assert len(scope.runs) == 4
    assert scope.phases.empty
    assert scope.phase_problems.empty


def test_an_event_of_no_known_name_is_a_phase_of_its_own(log: Path) -> None:
    before = cachescope.read(log).phases
    log.write_bytes(log.read_bytes().replace(b'"name": "gc"', b'"name": "new in 3"'))
    phases = cachescope.read(log).phases
    (row,) = phases[phases["event"] == "new in 3"].to_dict("records")
    assert row["phase"] == "not named: new in 3"
    assert pd.isna(row["is_skipped_by_hit"])
    assert phases["self_time_ns"].sum() == before["self_time_ns"].sum()


@pytest.mark.parametrize("name", ["/**", "a\x00b", "\ud800", "/"])
def test_a_source_of_any_name_is_gone_at_once(name: str) -> None:
    """As a saved scope that was changed may hold it."""
    row: dict[str, Any] = dict.fromkeys(column.name for column in columns_of(RunRow))
    phases, problems = read_phases([RunRow(**row | {"run": 0, "source": "one", "sources": (name,)})], {})
    assert (phases, len(problems)) == ([], 1)
