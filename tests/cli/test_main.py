"""The command line as a whole: help, wrong usage, interrupts, closed pipes and streams, a full disk."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cachescope
from cachescope import cli
from cachescope.cli import COMMANDS
from tests.cli.conftest import ROOT, Run, command, environment, in_pipe
from tests.conftest import Recording
from tests.programs import ran

pytestmark = pytest.mark.slow  # each test starts processes


def test_help_lists_every_command_and_loads_nothing_heavy() -> None:
    code = (
        "import sys; from cachescope.cli import COMMANDS, main; main(['--help']); "
        "statuses = {main([name, '--help']) for name in COMMANDS}; "
        "print(statuses, sorted({'torch', 'rich', 'plotly', 'pandas', 'numpy'} & set(sys.modules)))"
    )
    done = in_pipe([*command()[:1], "-c", code])
    assert all(re.search(rf"^    {name}\s", done.stdout, re.MULTILINE) for name in COMMANDS)
    assert done.stdout.endswith("{0} []\n")


def test_help_of_one_command_loads_none_of_the_others() -> None:
    code = (
        "import sys; from cachescope.cli import main; main(['explain', '--help']); "
        "print(*(name for name in sys.modules if name.startswith('cachescope')))"
    )
    loaded = in_pipe([*command()[:1], "-c", code]).stdout.splitlines()[-1].split()
    assert len(loaded) <= 13
    assert {name for name in loaded if name in COMMANDS.values()} == {"cachescope.cli.explain"}


def test_version(run: Run) -> None:
    assert run("--version").out == f"cachescope {cachescope.__version__}\n"


def test_without_a_command_they_are_listed(run: Run) -> None:
    done = run()
    assert done.status == 2
    assert all(re.search(rf"^    {name}\s", done.err, re.MULTILINE) for name in COMMANDS)


def test_an_interrupt_is_130_without_a_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cachescope.cli.sources.read", interrupt)
    done = run("explain", "x")
    assert (done.status, done.out, done.err) == (130, "", "")


def interrupted(arguments: list[str], ready: str, **changed: str) -> tuple[int, str]:
    """The status and the errors of a process that is interrupted once it says so."""
    process = subprocess.Popen(
        arguments, env=environment(**changed),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == f"{ready}\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    return process.returncode, err


def test_an_interrupt_of_a_real_process() -> None:
    code = (
        "import os, sys; from cachescope import cli, readers; import cachescope.scope as s\n"
        "def wait(*a, **k): print('ready', flush=True); sys.stdin.read()\n"
        "s.read = wait\n"
        "sys.exit(cli.main(['explain', 'x']))"
    )
    assert interrupted([*command()[:1], "-c", code], "ready") == (130, "")


def start_of_the_script() -> list[str]:
    """What the installed `cachescope` does."""
    (entry,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"].values()
    module, _, function = entry.partition(":")
    return [sys.executable, "-c", f"import sys; from {module} import {function}; sys.exit({function}())"]


@pytest.mark.parametrize("start", [command(), start_of_the_script()], ids=["module", "script"])
def test_an_interrupt_while_it_is_still_loading(start: list[str], tmp_path: Path) -> None:
    # Loading takes a while: in the place of orjson, as long as the test likes.
    (tmp_path / "orjson.py").write_text("import sys; print('loading', flush=True); sys.stdin.read()")
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    assert interrupted([*start, "explain", "x"], "loading", PYTHONPATH=path) == (130, "")


def test_a_closed_pipe_is_quiet(recording: Recording) -> None:
    arguments = command("explain", recording("2.13.0", "four_graphs"), "--json")
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(arguments, env=environment(), **pipes)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(timeout=300) == 141


def test_an_ascii_terminal_gets_what_it_can_show(recording: Recording) -> None:
    env = {**environment(), "PYTHONIOENCODING": "ascii"}
    for form in ([], ["--json"]):
        done = ran(command("explain", recording("2.13.0", "config_flip"), *form), env, text=False)
        assert done.stderr == b"" and done.stdout.isascii()


def test_commands_are_small_modules() -> None:
    for path in Path(cli.__file__).parent.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 200, path


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_no_wider_than_the_terminal(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([name, "--help"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].startswith(f"usage: cachescope {name}")
    prose = [line for line in lines if not line.startswith("    ")]
    assert max(map(len, prose)) < 80


FLIP = cachescope.sample("config_flip")
NOT_MET = ("check", FLIP, "--min-hit-rate", "0.9")


def in_shell(arguments: list[str], redirections: str) -> subprocess.CompletedProcess[str]:
    return in_pipe(["sh", "-c", f"{shlex.join(arguments)} {redirections}"])


@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_none_at_all(redirections: str) -> None:
    done = in_shell(command(*NOT_MET), redirections)
    assert done.returncode == 3 and done.stderr == ""
    assert (">&-" in redirections.split()) == (done.stdout == "")


@pytest.mark.parametrize("redirections", ["2>&-", "<&- >&- 2>&-"])
def test_a_command_that_is_recorded_finds_them_closed_as_without(redirections: str, tmp_path: Path) -> None:
    closed = tmp_path / "closed.json"
    program = (
        "import json, os\n"
        "def is_closed(number):\n"
        "    try: os.fstat(number)\n"
        "    except OSError: return True\n"
        f"json.dump([is_closed(0), is_closed(1)], open({str(closed)!r}, 'w'))"
    )
    alone = in_shell([sys.executable, "-c", program], redirections)
    expected = json.loads(closed.read_text())
    closed.unlink()
    done = in_shell(command("record", "-o", tmp_path, "--", sys.executable, "-c", program), redirections)
    assert (alone.returncode, done.returncode) == (0, 0)
    assert json.loads(closed.read_text()) == expected


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("arguments", [("explain", FLIP), ("explain", FLIP, "--json")])
def test_a_full_disk_is_one_line(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        pipes = {"capture_output": False, "stdout": full, "stderr": subprocess.PIPE}
        done = ran(command(*arguments), environment(), status=1, **pipes)
    assert done.stderr == "cachescope: standard output cannot be written: No space left on device\n"
