"""Packs what a torch recorded, under its version."""

from __future__ import annotations

import lzma
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Container
from functools import partial
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def pack(
    what: str, python: str, record_into: Callable[[Path], object], leave_out: Container[str] = ()
) -> Path:
    """Record into an empty folder with one interpreter, and pack it as ``tests/data/WHAT/VERSION.tar.xz``, but for some names."""
    version = subprocess.run(
        [python, "-c", "import torch; print(torch.__version__)"], check=True, capture_output=True, text=True
    )
    name = version.stdout.strip().split("+")[0]
    packed = _HERE / what / f"{name}.tar.xz"
    packed.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / name
        folder.mkdir()
        record_into(folder)
        # A third less than by default, where many files are alike.
        with tarfile.open(packed, "w:xz", preset=9 | lzma.PRESET_EXTREME) as archive:
            for path in sorted(folder.iterdir()):
                if path.name not in leave_out:
                    archive.add(path, f"{name}/{path.name}")
    print(packed, packed.stat().st_size)
    return packed


def pack_each(what: str, record_into: Callable[..., object], leave_out: Container[str] = ()) -> None:
    """`pack` with each interpreter that the command line names."""
    for python in sys.argv[1:]:
        pack(what, python, partial(record_into, python=python), leave_out)
