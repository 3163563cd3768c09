"""Records precompile packages: ``python tests/data/record_precompile.py PYTHON`` for an interpreter with torch 2.10 or later.

Writes ``tests/data/precompile/VERSION.tar.xz``: the package that `precompile_program.py` lets torch write, and what
torch unpickles of it (``torchs.json``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from packing import pack_each

_PROGRAM = Path(__file__).with_name("precompile_program.py")
# The package holds the path and the text of the program.
_FOLDER = Path("/tmp/cachescope-recording/precompile")


def record_into(folder: Path, python: str) -> None:
    """Run the program with an empty cache, and keep the package alone of that."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    program = shutil.copy(_PROGRAM, _FOLDER / "program.py")
    cache = folder / "cache"
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(cache), "TORCH_CACHING_PRECOMPILE": "1"}
    subprocess.run([python, program, str(folder)], check=True, env=environment, cwd=_FOLDER)
    shutil.move(cache / "dynamo", folder / "dynamo")


if __name__ == "__main__":
    pack_each("precompile", record_into, leave_out={"cache"})
