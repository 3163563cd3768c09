"""One source that cannot be read does not stop the others: they are answered for, and the exit status is 1."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import cachescope
from cachescope.cli import main
from tests.conftest import Recording

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]

COMMANDS = {
    "explain": [],
    "check": ["--min-hit-rate", "0"],
    "report": ["-o"],
    "what-if": [],
    "time": [],
    "compiles": [],
    "entries": [],
    "devices": [],
    "contexts": [],
}
BAD = {
    "missing": "missing",
    "empty": "empty",
    "foreign": "unknown_source",
    "empty folder": "empty",
    "without caching": "unknown_source",
    "dangling link": "missing",
    "link to itself": "missing",
}


@pytest.fixture(scope="module")
def good(recording: Recording) -> Path:
    return recording("2.13.0", "config_flip") / "trace"


def make_bad(what: str, folder: Path) -> Path:
    path = folder / what
    if what == "empty":
        path.touch()
    elif what == "foreign":
        path.write_bytes(bytes(range(256)))
    elif what == "empty folder":
        path.mkdir()
    elif what == "without caching":
        path.write_text("epoch 1 loss 0.3\nepoch 2 loss 0.2\n")
    elif what == "dangling link":
        path.symlink_to(folder / "nowhere")
    elif what == "link to itself":
        path.symlink_to(path)
    return path


@pytest.mark.parametrize("what", BAD)
def test_it_is_a_problem_beside_what_was_read(what: str, good: Path, tmp_path: Path) -> None:
    bad = make_bad(what, tmp_path)
    alone = cachescope.read(good)
    for sources in ([good, bad], [bad, good]):
        scope = cachescope.read(*sources)
        assert len(scope.lookups) == len(alone.lookups) == 6
        assert scope.problems[["source", "where", "kind"]].values.tolist() == [
            [str(bad), "the whole source", BAD[what]]
        ]
    with pytest.raises(cachescope.SourceError) as caught:
        cachescope.read(bad)
    assert (caught.value.source, caught.value.kind) == (str(bad), BAD[what])
    with pytest.raises(cachescope.SourceError):
        cachescope.read(good, bad, strict=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_answers_and_ends_with_status_1(
    command: str, good: Path, tmp_path: Path, capsys: Capture
) -> None:
    options = [*COMMANDS[command], str(tmp_path / "page.html")] if command == "report" else COMMANDS[command]
    bad = [str(make_bad(what, tmp_path)) for what in ("missing", "empty")]
    assert main([command, str(good), *options]) == 0
    answer = capsys.readouterr().out
    assert main([command, str(good), *bad, *options]) == 1
    said = capsys.readouterr()
    first = said.out.splitlines()[0]
    if command == "check":
        # The bar is met by what was read; it is not passed beside a status that says otherwise.
        assert first.startswith("check not passed: 2 sources could not be read;")
    else:
        assert first == answer.splitlines()[0]
    assert said.err.splitlines() == [
        f"cachescope: {bad[0]}: there is no such file or directory",
        f"cachescope: {bad[1]}: this file is empty",
    ]
    # With nothing to answer for, and where the first stops it: one line.
    for arguments in ([command, *bad, *options], [command, str(good), *bad, "--strict", *options]):
        assert main(arguments) == 1
        said = capsys.readouterr()
        assert (said.out, len(said.err.splitlines())) == ("", 1)


def test_json_holds_the_problem(good: Path, tmp_path: Path, capsys: Capture) -> None:
    bad = make_bad("foreign", tmp_path)
    assert main(["explain", str(good), str(bad), "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert len(printed["lookups"]) == 6
    assert [(p["source"], p["kind"]) for p in printed["problems"]] == [(str(bad), "unknown_source")]


def test_a_bar_is_not_met_in_silence(good: Path, tmp_path: Path, capsys: Capture) -> None:
    bad = str(make_bad("missing", tmp_path))
    assert main(["check", str(good), "--min-hit-rate", "0.1"]) == 0
    assert main(["check", str(good), bad, "--min-hit-rate", "0.1"]) == 1
    assert main(["check", str(good), "--min-hit-rate", "0.9"]) == 3
    assert main(["check", str(good), bad, "--min-hit-rate", "0.9"]) == 1
    assert bad in capsys.readouterr().err


def test_of_two_sides_both_have_to_be_there(good: Path, tmp_path: Path, capsys: Capture) -> None:
    first, second = sorted(str(path) for path in good.iterdir())[:2]
    assert main(["diff", first, second]) == 0
    capsys.readouterr()
    for sides in ([first, str(tmp_path / "missing")], [str(tmp_path / "missing"), first]):
        assert main(["diff", *sides]) == 1
        said = capsys.readouterr()
        assert (said.out, len(said.err.splitlines())) == ("", 1)


def test_workers_note_the_same(good: Path, tmp_path: Path) -> None:
    for path in good.iterdir():
        shutil.copy(path, tmp_path)
    # Looks like a log until its whole is read.
    (tmp_path / "a.log").write_bytes(b"V1122 10:00:00.000000 1 torch/x.py:1] {\n")
    alone = cachescope.read(tmp_path, tmp_path / "missing")
    with ThreadPoolExecutor(2) as threads:
        told = cachescope.read(tmp_path, tmp_path / "missing", executor=threads)
    assert told.problems.values.tolist() == alone.problems.values.tolist()
    assert len(told.lookups) == len(alone.lookups) == 6


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone may become another user")
def test_what_may_not_be_opened_in_a_folder_stops_nothing(good: Path, capsys: Capture) -> None:
    # The folder of pytest is closed to others.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for log in good.iterdir():
            # torch makes traces that nobody else may read.
            Path(shutil.copy(log, folder)).chmod(0o644)
        check = ["check", name, "--min-hit-rate", "0.1"]
        # What is imported on the way may lie where the other user may not look.
        assert main(check) == 0
        capsys.readouterr()
        secret, closed = folder / "secret.log", folder / "closed"
        shutil.copy(next(good.iterdir()), secret)
        secret.chmod(0o600)
        closed.mkdir(mode=0o700)
        folder.chmod(0o755)
        os.seteuid(65534)
        try:
            scope = cachescope.read(folder)
            status = main(check)
        finally:
            os.seteuid(0)
    assert len(scope.lookups) == 6
    problems = scope.problems[["source", "kind"]].values.tolist()
    assert sorted(problems) == sorted([[str(secret), "unreadable"], [str(closed), "unreadable"]])
    assert status == 1
    assert str(secret) in capsys.readouterr().err
