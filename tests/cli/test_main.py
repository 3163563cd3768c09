"""The command line as a whole: help, wrong usage, interrupts, closed pipes and streams, a full disk; and sources that cannot be read, which do not stop the others."""

import json
import os
import re
import shlex
import shutil
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
from tests.nobody import as_nobody
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


ANSWERING = {
    "explain": [], "check": ["--min-hit-rate", "0"], "report": ["-o"], "what-if": [], "time": [],
    "compiles": [], "entries": [], "devices": [], "contexts": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def good(recording: Recording) -> Path:
    return recording("2.13.0", "config_flip") / "trace"


def make_bad(what: str, folder: Path) -> Path:
    path = folder / what
    if what == "empty":
        path.touch()
    elif what == "foreign":
        path.write_bytes(bytes(range(256)))
    return path


def test_it_is_a_problem_beside_what_was_read(good: Path, tmp_path: Path) -> None:
    bad = make_bad("foreign", tmp_path)
    for sources in ([good, bad], [bad, good]):
        scope = cachescope.read(*sources)
        assert len(scope.lookups) == 6
        told = scope.problems[["source", "where", "kind"]].values.tolist()
        assert told == [[str(bad), "the whole source", "unknown_source"]]
    with pytest.raises(cachescope.SourceError) as caught:
        cachescope.read(bad)
    assert (caught.value.source, caught.value.kind) == (str(bad), "unknown_source")
    with pytest.raises(cachescope.SourceError):
        cachescope.read(good, bad, strict=True)


@pytest.mark.parametrize("command", ANSWERING)
def test_every_command_answers_and_ends_with_1(command: str, good: Path, tmp_path: Path, run: Run) -> None:
    options = [*ANSWERING[command], *([tmp_path / "page.html"] if command == "report" else [])]
    bad = [str(make_bad(what, tmp_path)) for what in ("missing", "empty")]
    answer, said = run(command, good, *options), run(command, good, *bad, *options)
    assert (answer.status, said.status) == (0, 1)
    first = said.out.splitlines()[0]
    if command == "check":
        # The bar is met by what was read; it is not passed beside a status that says otherwise.
        assert first.startswith("check not passed: 2 sources could not be read;")
    else:
        assert first == answer.out.splitlines()[0]
    assert said.err.splitlines() == [
        f"cachescope: {bad[0]}: there is no such file or directory",
        f"cachescope: {bad[1]}: this file is empty",
    ]
    # With nothing to answer for, and where the first stops it: one line.
    for arguments in ([command, *bad, *options], [command, good, *bad, "--strict", *options]):
        said = run(*arguments)
        assert (said.status, said.out, len(said.err.splitlines())) == (1, "", 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone may become another user")
def test_what_may_not_be_opened_in_a_folder_stops_nothing(good: Path, tmp_path: Path, run: Run) -> None:
    for log in good.iterdir():
        # torch makes traces that nobody else may read.
        Path(shutil.copy(log, tmp_path)).chmod(0o644)
    check = ("check", tmp_path, "--min-hit-rate", "0.1")
    # What is imported on the way may lie where the other user may not look.
    assert run(*check).status == 0
    secret, closed = tmp_path / "secret.log", tmp_path / "closed"
    shutil.copy(next(good.iterdir()), secret)
    secret.chmod(0o600)
    closed.mkdir(mode=0o700)

    def look() -> list[object]:
        scope, done = cachescope.read(tmp_path), run(*check)
        return [len(scope.lookups), scope.problems[["source", "kind"]].values.tolist(), done.status, done.err]

    lookups, problems, status, said = as_nobody(look, below=tmp_path)
    assert (lookups, status) == (6, 1) and str(secret) in said
    assert sorted(problems) == sorted([[str(secret), "unreadable"], [str(closed), "unreadable"]])


def test_standard_input_is_a_source(good: Path, tmp_path: Path) -> None:
    room = os.environ | {"TMPDIR": str(tmp_path)}
    for log in sorted(good.parent.glob("text/*.log")):
        with log.open("rb") as given:
            said = ran(command("explain", "-"), room, stdin=given)
        assert said.stdout == ran(command("explain", log)).stdout and said.stderr == ""
    assert not list(tmp_path.iterdir())  # nothing of it stays


@pytest.mark.parametrize(("given", "said"), [("", "this file is empty"), ("x", "this file holds no trace")])
def test_standard_input_without_a_log_is_told(given: str, said: str) -> None:
    assert said in ran(command("explain", "-"), status=1, input=given).stderr


def test_standard_input_that_does_not_fit_is_one_line() -> None:
    limited = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *command("explain", "-")]
    done = ran(limited, status=1, input="x" * 100_000)
    assert done.stderr.splitlines() == ["cachescope: -: standard input cannot be kept: File too large"]
