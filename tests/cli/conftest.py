"""The command line run in this process, as a pipe, and on a screen of 80 by 24."""

import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cachescope.cli import main
from tests.output_gates import strict_json
from tests.programs import ran

ROOT = Path(__file__).parents[2]
_SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What was printed, as values."""
        return strict_json(self.out)

    @property
    def flat(self) -> str:
        """What was printed, as if it had been printed in one line."""
        return " ".join(self.out.split())


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Call ``run("explain", path)`` in this process."""

    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return call


def environment(**changed: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    return {**kept, "PYTHONPATH": path, "TERM": "xterm-256color", **changed}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "cachescope", *map(str, arguments)]


@dataclass(frozen=True)
class Screen:
    """What a terminal holds after a command: its rows, and the bytes that were sent."""

    status: int
    rows: list[str]
    sent: str


def on_screen(
    arguments: list[str], columns: int = 80, keys: bytes = b"", env: Mapping[str, str] | None = None
) -> Screen:
    """Run a command with all three streams on a pseudo terminal that is its controlling one."""
    # Unix alone has them, and the other fixtures are for every system.
    import fcntl
    import pty
    import termios

    pid, master = pty.fork()
    if pid == 0:
        os.execvpe(arguments[0], arguments, dict(env or environment()))
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    sent = b""
    while True:
        try:
            data = os.read(master, 1 << 16)
        except OSError:
            break
        sent += data
        if keys and b"ready" in sent:
            os.write(master, keys)
            keys = b""
        if not data:
            break
    _, status = os.waitpid(pid, 0)
    os.close(master)
    text = sent.decode("utf-8", "replace")
    return Screen(os.waitstatus_to_exitcode(status), rows_of(text), text)


def rows_of(text: str) -> list[str]:
    """What stays on the screen: enough of a terminal for lines, carriage returns and erased progress bars."""
    rows: list[list[str]] = [[]]
    row = column = at = 0
    while at < len(text):
        if match := _SEQUENCE.match(text, at):
            at = match.end()
            number = int(match[1]) if match[1].isdigit() else 0
            if match[2] == "A":
                row = max(0, row - (number or 1))
            elif match[2] == "K":
                rows[row] = [] if number == 2 else rows[row][:column]
            continue
        letter = text[at]
        at += 1
        if letter == "\n":
            row += 1
            rows += [[]] * (row + 1 - len(rows))
            rows[row] = list(rows[row])
        elif letter == "\r":
            column = 0
        else:
            rows[row] += [" "] * (column + 1 - len(rows[row]))
            rows[row][column] = letter
            column += 1
    lines = ["".join(line).rstrip() for line in rows]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def in_pipe(arguments: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    return ran(arguments, environment(), status=None, **options)
