"""Records what `compile_programs.py` or `shape_programs.py` compiles: ``python tests/data/record_compiles.py compiles|shapes PYTHON…``.

Each PYTHON is an interpreter with torch. Writes ``tests/data/compiles/VERSION.tar.xz`` or ``tests/data/shapes/VERSION.tar.xz`` with the trace,
the log of recompiles and symbols that torch itself prints, and the facts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

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


def record(what: str, python: str) -> Path:
    """Pack what one interpreter does, under the version of its torch; `what` is one of `PROGRAMS`."""
    version = subprocess.run(
        [python, "-c", "import torch; print(torch.__version__)"], check=True, capture_output=True, text=True
    )
    name = version.stdout.strip().split("+")[0]
    program = _FOLDER / PROGRAMS[what].name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_bytes(PROGRAMS[what].read_bytes())
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / name
        folder.mkdir()
        record_into(folder, python, program)
        packed = _HERE / what / f"{name}.tar.xz"
        packed.parent.mkdir(exist_ok=True)
        with tarfile.open(packed, "w:xz") as archive:
            archive.add(folder, name)
    return packed


if __name__ == "__main__":
    for interpreter in sys.argv[2:]:
        made = record(sys.argv[1], interpreter)
        print(made, made.stat().st_size)
