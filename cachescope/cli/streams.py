"""Standard output and error where the shell closed them, or where nothing more can be written to them."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def open_closed_streams() -> None:
    """Where a shell closed a stream (``>&-``), write to nobody: Python has None there, and the next file takes its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(
                os.devnull, os.O_RDWR
            )  # it gets the lowest free number, and no command that is started has it
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def discard(stream: TextIO) -> None:
    """Send what is left of a stream nowhere: Python would fail once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
