"""What commands of cachescope print: for the README and for the pages of the docs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# A bar that is not met is an answer too.
_ANSWERED = (0, 3)


def output_of(command: str, lines: str = "") -> str:
    """What a command prints in a pipe, from the root of the repository.

    Parameters
    ----------
    command : str
        As it is typed.
    lines : str
        Some of its lines, such as ``1-3``; dots stand for those left out. All of them by default.

    Raises
    ------
    RuntimeError
        If the command failed.
    """
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "NO_COLOR": "1"},
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    if done.returncode not in _ANSWERED:
        raise RuntimeError(f"{command}: exit status {done.returncode}: {done.stderr}")
    printed = done.stdout.strip("\n").splitlines()
    if not lines:
        return "\n".join(printed)
    first, last = map(int, lines.split("-"))
    shown = printed[first - 1 : last]
    return "\n".join([*["…"][: first > 1], *shown, *["…"][: last < len(printed)]])
