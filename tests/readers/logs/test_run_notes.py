"""What `cachescope record` notes of a command is read with its logs: the command, and how it ended."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

import cachescope
from cachescope.capture.recording import record
from tests.cli.conftest import Run, run
from tests.conftest import Recording
from tests.programs import ran

__all__ = ["run"]


@pytest.fixture(scope="module")
def trace(recording: Recording) -> Path:
    return max((recording("2.13.0", "config_flip") / "trace").iterdir())


def noted(note: bytes, trace: Path, folder: Path) -> cachescope.Scope:
    """The trace with a note beside it."""
    (folder / trace.name).write_bytes(trace.read_bytes())
    (folder / "run.json").write_bytes(note)
    return cachescope.read(folder)


@pytest.mark.parametrize(("ending", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)])
def test_command_and_exit_status_stand_beside_the_run(
    ending: str, status: int, trace: Path, tmp_path: Path
) -> None:
    # Stands in for a program that compiles: its trace is a recorded one.
    script = f'cp "$0" "$TORCH_TRACE"; {ending}'
    recorded = record(["sh", "-c", script, str(trace)], tmp_path / "runs")
    assert recorded.exit_status == status
    (run,) = cachescope.read(tmp_path / "runs").runs.itertuples()
    assert run.exit_status == status
    assert run.command.startswith("sh -c 'cp ")
    assert run.command.endswith(str(trace))


def test_runs_are_called_by_what_tells_their_commands_apart(trace: Path, tmp_path: Path, run: Run) -> None:
    script = 'cp "$0" "$TORCH_TRACE"'
    given = (["--bs", "8", "zyqvort\x1b[1m"], ["--bs", "16"], ["--bs", "16"])
    for one, more in zip(
        sorted(trace.parent.iterdir(), key=lambda path: path.read_bytes()[:40]), given, strict=True
    ):
        record(["sh", "-c", script, str(shutil.copy(one, tmp_path / "log")), *more], tmp_path / "runs")
    runs = cachescope.read(tmp_path / "runs").runs
    assert runs["label"].tolist() == ["--bs 8 'zyqvort\x1b[1m'", "--bs 16", "--bs 16"]
    said = run("time", tmp_path / "runs").out
    assert "run 1 (--bs 16, pid" in said and "run 0 (--bs 8 'zyqvort\\x1b[1m', pid" in said
    assert "zyqvort" not in run("time", tmp_path / "runs", "--redact").out


def test_else_by_a_variable_the_commit_or_the_label_that_was_given(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in os.environ:
        if name.startswith(("TORCH", "PYTORCH", "VLLM", "TRITON", "OMP")):
            monkeypatch.delenv(name)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept").write_text("1")
    for command in (["init", "-q"], ["add", "kept"], ["commit", "-qm", "one"]):
        ran([*git, *command])
    copied = iter(sorted(trace.parent.iterdir(), key=lambda path: path.read_bytes()[:40]))

    def recorded(label: str | None = None) -> list[str | None]:
        shutil.copy(next(copied), "log")
        record(["sh", "-c", 'cp log "$TORCH_TRACE"'], "runs", more_about={"label": label})
        return [None if isinstance(one, float) else one for one in cachescope.read("runs").runs["label"]]

    assert recorded() == [None]
    monkeypatch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1")
    monkeypatch.setenv("VLLM_API_KEY", "zyqvort")
    (tmp_path / "kept").write_text("2")
    first, second = recorded()
    assert first == f"commit {ran([*git, 'rev-parse', '--short=12', 'HEAD']).stdout.strip()}"
    assert second == f"TORCHINDUCTOR_MAX_AUTOTUNE=1 VLLM_API_KEY=… {first}-dirty"
    assert recorded("two threads") == [first, second, "two threads"]


def test_a_folder_is_told_by_what_lies_below_the_one_that_all_share(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of runs are cut: two long paths would be told by what they have in common."""
    for one, cache in zip(sorted(trace.parent.iterdir()), ("cache", "cold/x", "cold"), strict=False):
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", f"/scratch/somebody/project/{cache}")
        shutil.copy(one, tmp_path / "log")
        record(["sh", "-c", f'cp {tmp_path}/log "$TORCH_TRACE"'], tmp_path / "runs")
    labels = cachescope.read(tmp_path / "runs").runs["label"].tolist()
    names = ("cache", "cold", "cold/x")[: len(labels)]
    assert sorted(labels) == [f"TORCHINDUCTOR_CACHE_DIR=…/{name}" for name in names]


def test_a_value_that_most_runs_have_names_none_of_them(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = sorted(trace.parent.iterdir(), key=lambda path: path.read_bytes()[:40])
    for one, threads in zip(logs, ("1", "1", "2"), strict=True):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        shutil.copy(one, tmp_path / "log")
        record(["sh", "-c", f'cp {tmp_path}/log "$TORCH_TRACE"'], tmp_path / "runs")
    labels = cachescope.read(tmp_path / "runs").runs["label"]
    assert labels.isna().tolist() == [True, True, False] and labels[2] == "OMP_NUM_THREADS=2"


def test_a_run_that_goes_on_has_no_status_yet(trace: Path, tmp_path: Path) -> None:
    began = "2026-01-01T00:00:00+00:00"
    note = {"cachescope_run": 1, "command": ["python", "my train.py"], "start_time": began}
    runs = noted(json.dumps(note).encode(), trace, tmp_path).runs
    assert runs["command"].tolist() == ["python 'my train.py'"]
    assert runs["exit_status"].isna().all()


@pytest.mark.parametrize(
    "note",
    [b"", b"[]", b'{"command": ["x"], "exit_status": 1}', b'{"cachescope_run": 1, "command": "x"}', b"\xff"],
)
def test_a_note_of_something_else_says_nothing(note: bytes, trace: Path, tmp_path: Path) -> None:
    runs = noted(note, trace, tmp_path).runs
    assert runs["command"].isna().all()
    assert runs["exit_status"].isna().all()


WRONG = [
    str(-(2**31) - 1), str(1 << 64), "9" * 5_000, "true", '"1"', "NaN", '"\\ud800"',
    "[" * 100_000 + "]" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("status", ["0", str(-(2**31)), "255", *WRONG], ids=range(11))
def test_a_status_is_what_a_system_can_give(status: str, trace: Path, tmp_path: Path) -> None:
    """Python gives less than none for a signal."""
    note = json.dumps({"cachescope_run": 1, "command": ["a"], "exit_status": "@"}).replace('"@"', status)
    scope = noted(note.encode(), trace, tmp_path)
    assert scope.runs["exit_status"].fillna(-1).tolist() == [-1 if status in WRONG else int(status)]
    assert len(scope.problems) == (status in WRONG)


def test_when_the_command_began_and_ended_stands_beside_the_run(trace: Path, tmp_path: Path) -> None:
    before = time.time_ns()
    recorded = record(["sh", "-c", 'cp "$0" "$TORCH_TRACE"; sleep 0.1', str(trace)], tmp_path / "runs")
    after = time.time_ns()
    (run,) = cachescope.read(recorded.folder).runs.itertuples()
    # The note has whole microseconds.
    start, end = run.command_start_time.value, run.command_end_time.value
    assert before - 1000 <= start <= end - 10**8 <= after - 10**8


@pytest.mark.parametrize(("begin", "end", "wanted", "wrong"), [
    ("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:02+00:00", (True, True), 0),
    ("2026-01-01T00:00:00+00:00", None, (True, False), 0),
    ("2026-01-01T00:00:00+00:00", "2025-01-01T00:00:00+00:00", (True, False), 0),
    ("2026-01-01T00:00:00+00:00", "soon", (True, False), 1),
    ("9999-01-01", "2026-01-01T00:00:02+00:00", (False, False), 1),
    (1, "2026-01-01T00:00:02+00:00", (False, False), 1),
])  # fmt: skip
def test_times_of_a_command_are_such(
    begin: object, end: str | None, wanted: tuple[bool, bool], wrong: int, trace: Path, tmp_path: Path
) -> None:
    note = {"cachescope_run": 1, "command": ["a"], "start_time": begin, "end_time": end}
    scope = noted(json.dumps(note).encode(), trace, tmp_path)
    (told,) = scope.runs[["command_start_time", "command_end_time"]].notna().values.tolist()
    assert tuple(told) == wanted
    assert len(scope.problems) == wrong
