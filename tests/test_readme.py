"""The README tells the truth: its output is what the command prints, its code runs, its commands are there."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import cachescope
from cachescope.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_explained_miss_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    command, shown = re.findall(r"<!-- output of: (.*?) -->\n```\n(.*?)\n```", README, re.DOTALL)[0]
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == shown


def test_the_six_lines_run_and_print() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(code.strip().splitlines()) == 6
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert "48 lookups in 6 runs" in printed.getvalue()


def test_every_command_it_names_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    named = set(re.findall(r"cachescope (record|explain|diff|entries|capture|demo)\b", README))
    assert named == {"record", "explain", "diff", "entries", "capture", "demo"}
    for command in named:
        assert main([command, "--help"]) == 0
        assert command in capsys.readouterr().out


def test_every_make_target_it_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)", README)) <= targets


def test_the_verdicts_are_those_of_the_package() -> None:
    table = re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE)
    assert table == cachescope.describe("verdicts")["verdict"].tolist()
