"""One source that cannot be read does not stop the others: they are answered for, and the exit status is 1."""

import os
import shutil
from pathlib import Path

import pytest

import cachescope
from tests.cli.conftest import Run, command
from tests.conftest import Recording
from tests.nobody import as_nobody
from tests.programs import ran

pytestmark = pytest.mark.slow

COMMANDS = {
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


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_answers_and_ends_with_1(command: str, good: Path, tmp_path: Path, run: Run) -> None:
    options = [*COMMANDS[command], *([tmp_path / "page.html"] if command == "report" else [])]
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
