"""Tells what cachescope itself wrote: saved scopes, and the logs of a fleet in columns. Reading them needs pyarrow."""

from __future__ import annotations

import os
from typing import Final

MANIFEST: Final = "cachescope.json"
LOGS_SUFFIX: Final = ".logs.parquet"
_MAGIC: Final = b"PAR1"


def is_saved_scope(path: str) -> bool:
    """Whether a folder was written by `Scope.save`."""
    # Not pathlib: it raises if the folder may not be listed.
    return os.path.isfile(os.path.join(path, MANIFEST))


def is_log_folder(path: str) -> bool:
    """Whether a folder contains a file that `write_logs` of `log_folder` wrote."""
    try:
        return any(is_log_file(os.path.join(path, name)) for name in os.listdir(path))
    except OSError:
        return False


def is_log_file(path: str) -> bool:
    """Whether `write_logs` wrote a file."""
    if not path.endswith(LOGS_SUFFIX):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False
