"""What `cachescope record` notes beside the logs of a run: the command, and how it ended."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable
from typing import Any, Final

from cachescope.readers.reading import Process
from cachescope.readers.remote import is_address

MANIFEST: Final = "run.json"
_MAX_BYTES: Final = 1 << 20


def tell_of_runs(processes: Iterable[Process]) -> None:
    """Say of each process which command it belongs to, and that command's exit status, where that was noted.

    It is read with the logs every time: it is written when the run begins, and again when it ends.
    """
    known: dict[str, dict[str, Any]] = {}
    for process in processes:
        if is_address(process.source):
            continue
        folder = os.path.dirname(process.source)
        if folder not in known:
            known[folder] = _note(os.path.join(folder, MANIFEST))
        command, status = known[folder].get("command"), known[folder].get("exit_status")
        if isinstance(command, list) and all(isinstance(word, str) for word in command):
            process.command = shlex.join(command)
        if type(status) is int:
            process.exit_status = status


def _note(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            note = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) and "cachescope_run" in note else {}
