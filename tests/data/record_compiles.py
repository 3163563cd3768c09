"""Records what `compile_programs.py` or `shape_programs.py` compiles: ``python tests/data/record_compiles.py compiles|shapes PYTHON…``.

Each PYTHON is an interpreter with torch. Writes ``tests/data/compiles/VERSION.tar.xz`` or ``tests/data/shapes/VERSION.tar.xz`` with the trace,
the log of recompiles and symbols that torch itself prints, and the facts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from packing import pack

_HERE = Path(__file__).resolve().parent
_FOLDER = Path("/tmp/cachescope-recording/compiles")
PROGRAMS = {"compiles": _HERE / "compile_programs.py", "shapes": _HERE / "shape_programs.py"}


def record_into(folder: Path, python: str = sys.executable, program: Path = PROGRAMS["compiles"]) -> Path:
    """Run the program; the folder then holds ``trace``, ``torch.log`` and ``facts.json``."""
    environment = os.environ | {"TORCH_TRACE": str(folder / "trace"), "TORCH_LOGS": "recompiles,dynamic"}
    with (folder / "torch.log").open("wb") as log:
        command = [python, str(program), str(folder / "facts.json")]
        subprocess.run(command, check=True, env=environment, stdout=log, stderr=log)
    return folder


def record(what: str, python: str) -> None:
    """Pack what one interpreter does, under the version of its torch; `what` is one of `PROGRAMS`."""
    program = _FOLDER / PROGRAMS[what].name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_bytes(PROGRAMS[what].read_bytes())
    pack(what, python, partial(record_into, python=python, program=program))


if __name__ == "__main__":
    for interpreter in sys.argv[2:]:
        record(sys.argv[1], interpreter)
