"""The note that `cachescope record` writes next to the logs of a run: the command and its exit status."""

from __future__ import annotations

import os
import shlex
from typing import Final

from cachescope.readers.json_record import Record, load_json
from cachescope.readers.logs.remote import is_address
from cachescope.readers.reading import Reading
from cachescope.terms import RUN_NOTE

_MAX_BYTES: Final = 1 << 20
_OURS: Final = b"cachescope_run"


def tell_of_runs(reading: Reading) -> None:
    """Set the command and its exit status on each process that has a note.

    The note is read with the logs every time: it is written when the run begins and again when it ends.
    """
    known: dict[str, tuple[str | None, int | None]] = {}
    for process in reading.processes:
        if is_address(process.source):
            continue
        folder = os.path.dirname(process.source)
        if folder not in known:
            known[folder] = _note(os.path.join(folder, RUN_NOTE), reading)
        command, status = known[folder]
        process.command = process.command if command is None else command
        process.exit_status = process.exit_status if status is None else status


def _note(path: str, reading: Reading) -> tuple[str | None, int | None]:
    """Command and exit status; None for both if the file is not a note of `cachescope record`."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES)
        values = load_json(data)
    except OSError:
        return None, None
    except ValueError as error:
        if _OURS in data:
            reading.problem(path, "", "not_json", str(error))
        return None, None
    if not isinstance(values, dict) or _OURS.decode() not in values:
        return None, None
    note = Record(values)
    words, status = note.texts("command"), note.whole("exit_status", least=-(1 << 31))
    if note.wrong:
        reading.problem(path, "", "bad_value", "; ".join(note.wrong))
    return None if words is None else shlex.join(words), status
