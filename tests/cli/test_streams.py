"""Standard streams that a shell closed, and those of which the disk is full."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import cachescope
from tests.cli.conftest import command, environment, in_pipe

pytestmark = pytest.mark.slow  # each test starts processes

FLIP = cachescope.sample("config_flip")
NOT_MET = ("check", FLIP, "--min-hit-rate", "0.9")


def in_shell(arguments: list[str], redirections: str) -> subprocess.CompletedProcess[str]:
    return in_pipe(["sh", "-c", f"{shlex.join(arguments)} {redirections}"])


@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_none_at_all(redirections: str) -> None:
    done = in_shell(command(*NOT_MET), redirections)
    assert done.returncode == 3
    assert done.stderr == ""
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
        done = subprocess.run(
            command(*arguments),
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "cachescope: standard output cannot be written: No space left on device\n"
