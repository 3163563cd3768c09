"""Which processes of the command had ended when this one began: what they store lies there in a real run, too.

Each process leaves its number in the folder of the pre-flight. Times would not do: a real run takes longer to compile.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final

from cachescope.capture.preflight.cache_folder import OWN_FOLDER

_FOLDER: Final = "processes"

_earlier: list[int] = []


def note_beginning() -> None:
    """Note that this process has begun, and which others had ended by then."""
    if OWN_FOLDER not in os.environ:
        return
    folder = os.path.join(os.environ[OWN_FOLDER], _FOLDER)
    with suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        others = [int(name) for name in os.listdir(folder) if name != str(os.getpid())]
        _earlier[:] = [pid for pid in others if not _is_alive(pid)]
        with open(os.path.join(folder, str(os.getpid())), "w"):
            pass


def ended_before() -> list[int]:
    """The processes that had ended; a forked one says what the process did that it was forked from."""
    return sorted(_earlier)


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32":  # such a signal would end it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # not ours
        return True
    return True
