"""Records guard misses with their sizes: ``python tests/data/record_guards.py PYTHON…``, each an interpreter with torch.

Writes ``tests/data/guards/VERSION.tar.xz``: the traces of the steps of `guard_programs.py`, and what torch counted in each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from packing import pack_each

_HERE = Path(__file__).resolve().parent
_FOLDER = Path("/tmp/cachescope-recording/guards")


def record_into(
    folder: Path,
    python: str = sys.executable,
    steps: tuple[str, ...] = ("first", "second", "both"),
    **environment: str,
) -> Path:
    """Run steps one after the other, with one cache; the folder then holds ``trace``, ``cache`` and a file of facts for each step."""
    program = _FOLDER / "guard_programs.py"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_bytes((_HERE / program.name).read_bytes())
    own = {
        "TORCH_TRACE": str(folder / "trace"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
    }
    for step in steps:
        command = [python, str(program), step, str(folder / f"{step}.json")]
        subprocess.run(command, check=True, env=os.environ | own | environment, capture_output=True)
    return folder


if __name__ == "__main__":
    pack_each("guards", record_into, leave_out={"cache"})
