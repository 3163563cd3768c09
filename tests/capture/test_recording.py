"""Recording a command: what it sees, what is kept, what the terminal shows."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cachescope.capture.recording import CommandNotFoundError, child_environment, record
from cachescope.terms import LOGGERS
from tests.cli.conftest import command, environment, in_pipe, on_screen

pytestmark = pytest.mark.slow  # each test starts processes

PYTHON = sys.executable


def recording_of(folder: Path, program: str) -> list[str]:
    """The command that records a program."""
    return command("record", "-o", folder, "--", PYTHON, "-c", program)


def started(folder: Path, program: str, **streams: Any) -> subprocess.Popen[bytes]:
    """A recording under way; what goes to no named stream is not kept."""
    silent = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    arguments = recording_of(folder, program)
    return subprocess.Popen(arguments, env=environment(), cwd=folder, **(silent | streams))


# The environment and the folder.


def test_loggers_are_added_to_those_that_are_set(tmp_path: Path) -> None:
    shell = {"TORCH_LOGS": "+dynamo", "TORCH_LOGS_FORMAT": "short", "HOME": "/h"}
    changed = child_environment(shell, tmp_path)
    assert changed["TORCH_LOGS"] == f"+dynamo,{LOGGERS}" and changed["TORCH_TRACE"] == str(tmp_path)
    assert changed["TORCH_LOGS_OUT"] == str(tmp_path / "torch.log")
    assert "TORCH_LOGS_FORMAT" not in changed and changed["HOME"] == "/h"


def test_each_run_has_a_folder_with_its_command_but_no_secrets(tmp_path: Path) -> None:
    program = [PYTHON, "-c", "import sys; sys.exit(7)", "--hf-token", "abc", "--api_key=def", "--lr", "1"]
    first, second = record(program, tmp_path / "runs"), record(program, tmp_path / "runs")
    assert first.folder != second.folder and (first.exit_status, first.ended_by) == (7, None)
    about = json.loads((first.folder / "run.json").read_text())
    assert about["command"][3:] == ["--hf-token", "…", "--api_key=…", "--lr", "1"]
    assert about["exit_status"] == 7 and about["start_time"] < about["end_time"]


@pytest.mark.parametrize(("make", "status"), [(False, 127), (True, 126)])
def test_a_command_that_cannot_be_started_leaves_nothing(tmp_path: Path, make: bool, status: int) -> None:
    program = tmp_path / "program"
    if make:
        program.write_text("")
    with pytest.raises(CommandNotFoundError) as caught:
        record([str(program)], tmp_path / "runs")
    assert caught.value.status == status
    assert not (tmp_path / "runs").exists()
    done = in_pipe(command("record", "-o", tmp_path / "runs", "--", program))
    assert done.returncode == status and done.stderr.count("\n") == 1


# The streams and the exit status.


def test_streams_pass_in_a_pipe_and_the_exit_status_is_kept(tmp_path: Path) -> None:
    program = "import sys; print(sys.stdin.read()); sys.stderr.write('x' * 300_000 + 'end\\n'); sys.exit(3)"
    done = in_pipe(recording_of(tmp_path, program), input="typed")
    assert done.returncode == 3 and done.stdout == "typed\n"
    assert done.stderr.startswith("x" * 300_000 + "end\n") and "nothing was recorded" in done.stderr


def test_a_command_ended_by_a_signal(tmp_path: Path) -> None:
    done = in_pipe(recording_of(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert done.returncode == 128 + signal.SIGKILL and "ended by SIGKILL" in done.stderr


def test_an_open_line_of_standard_error_arrives_before_the_command_goes_on(tmp_path: Path) -> None:
    program = "import sys; sys.stderr.write('V1'); sys.stderr.flush(); sys.stdin.read(1)"
    process = started(tmp_path, program, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None and process.stderr.read(2) == b"V1"
    process.communicate(b"x", timeout=300)
    assert process.returncode == 0


def test_a_process_left_behind_does_not_hold_the_end(tmp_path: Path) -> None:
    program = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()'], stdout=subprocess.DEVNULL)"
    process = started(tmp_path, program, stdin=subprocess.PIPE)
    assert process.wait(timeout=300) == 0 and process.stdin is not None
    process.stdin.close()


# torch/_logging/_internal.py, `_init_logs`: up to 2.13 a handler of the standard library, from 2.14 on one that inherits only its base.
_OF_2_14 = "type('_StderrHandler', (logging.Handler,), {'emit': lambda self, record: print(record.msg, file=sys.stderr)})"


@pytest.mark.parametrize("handler", ["logging.StreamHandler", _OF_2_14])
def test_only_what_torch_logs_of_its_caches_stays_off_standard_error(tmp_path: Path, handler: str) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    program = (
        "import logging, sys, torch\n"
        f"for handler in ({handler}(), logging.FileHandler('log')): logging.getLogger('torch').addHandler(handler)\n"
        "for name in sys.argv[1:]:\n"
        "    logger = logging.getLogger(name); logger.setLevel(logging.DEBUG)\n"
        "    for level in (logging.DEBUG, logging.INFO, logging.WARNING): logger.log(level, f'{name} {level}')\n"
    )
    others = ("torch._inductor.compile_fx", "torch._inductor.codecache.__output_code")
    names = [*LOGGERS.replace("+", "").split(","), *others]
    (tmp_path / "program.py").write_text(program)
    done = in_pipe(command("record", "-o", "runs", "--", PYTHON, "program.py", *names), cwd=tmp_path)
    logged = [f"{name} {level}" for name in names for level in (10, 20, 30)]
    assert (tmp_path / "log").read_text().splitlines() == logged
    # Warnings and errors would be printed without the log, too.
    printed = [line for line in logged if line.endswith("30") or line.split()[0] in names[2:]]
    assert [line for line in done.stderr.splitlines() if line.startswith("torch.")] == printed


def test_the_terminal_is_the_commands(tmp_path: Path) -> None:
    program = (
        "import os, sys; print([s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr)], "
        "os.get_terminal_size(2).columns); sys.stderr.write('one\\ntwo\\n')"
    )
    shown = on_screen(recording_of(tmp_path, program), columns=90)
    assert shown.status == 0 and shown.rows[0] == "[True, True, True] 90"
    assert shown.rows[1:3] == ["one", "two"]


def test_ctrl_c_on_the_terminal_reaches_the_command_once_and_is_reported(tmp_path: Path) -> None:
    program = (
        "import signal, sys; wanted = {signal.SIGINT}; signal.pthread_sigmask(signal.SIG_BLOCK, wanted)\n"
        "print('ready', flush=True); signal.sigwait(wanted)\n"
        "sys.exit(41 if signal.sigtimedwait(wanted, 0.3) is None else 42)"
    )
    shown = on_screen(recording_of(tmp_path, program), keys=b"\x03")
    assert shown.status == 41
    ended = "import signal; print('ready', flush=True); signal.pause()"
    shown = on_screen(recording_of(tmp_path, ended), keys=b"\x03")
    assert shown.status == 130
    assert any("exit status 130" in row for row in shown.rows)
    assert not any("cachescope/" in row and "File" in row for row in shown.rows)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_sent_to_us_is_passed_on(tmp_path: Path, number: signal.Signals) -> None:
    program = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); print('ready', flush=True); signal.pause()"
    piped = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    process = started(tmp_path, program, **piped, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 128 + number and f"ended by {number.name}" in err.decode()


@pytest.mark.torch
def test_a_real_program_recorded_twice_hits_and_its_flood_stays_off_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, torch\n"
        "torch.compile(lambda x: torch.relu(x) + 1)(torch.ones(3))\n"
        "sys.stderr.write('said\\n'); sys.exit(5)\n"
    )
    recorded = command("record", "-o", tmp_path / "runs", "--", PYTHON, program)
    cold = in_pipe([*recorded[:4], "--json", *recorded[4:]])
    assert cold.returncode == 5 and cold.stderr.startswith("said\n")
    assert "codecache.py" not in cold.stderr
    printed = json.loads(cold.stdout)
    assert printed["recorded"]["runs"] == [0]
    assert {lookup["details"] for lookup in printed["lookups"]} == {"recorded"}
    warm = on_screen(recorded)
    assert warm.status == 5 and "codecache.py" not in warm.sent
    assert any("All 2 lookups hit" in row for row in warm.rows)
