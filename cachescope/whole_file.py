"""Writing a file at one stroke: whoever reads it sees what was there before, or all that is there now."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(target: Path, data: bytes) -> None:
    """Write a file, replacing one that is there.

    Where a link leads to it, the link stays. A pipe or a device, such as ``/dev/null``, is written to and stays as well.
    """
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    place = Path(os.path.realpath(target))
    part = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        part.write_bytes(data)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
