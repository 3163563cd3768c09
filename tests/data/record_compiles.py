"""Records what `compile_programs.py` compiles: ``python tests/data/record_compiles.py PYTHON`` for an interpreter with torch.

Writes ``tests/data/compiles/VERSION.tar.xz`` with the trace, the log of recompiles and symbols that torch itself prints, and the facts.
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


def record_into(folder: Path, python: str = sys.executable, program: Path | None = None) -> Path:
    """Run the program; the folder then holds ``trace``, ``torch.log`` and ``facts.json``."""
    program = program or _HERE / "compile_programs.py"
    environment = os.environ | {"TORCH_TRACE": str(folder / "trace"), "TORCH_LOGS": "recompiles,dynamic"}
    with (folder / "torch.log").open("wb") as log:
        command = [python, str(program), str(folder / "facts.json")]
        subprocess.run(command, check=True, env=environment, stdout=log, stderr=log)
    return folder


def record(python: str) -> Path:
    """Pack what one interpreter does, under the version of its torch."""
    version = subprocess.run(
        [python, "-c", "import torch; print(torch.__version__)"], check=True, capture_output=True, text=True
    )
    name = version.stdout.strip().split("+")[0]
    program = _FOLDER / "compile_programs.py"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_bytes((_HERE / "compile_programs.py").read_bytes())
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / name
        folder.mkdir()
        record_into(folder, python, program)
        packed = _HERE / "compiles" / f"{name}.tar.xz"
        packed.parent.mkdir(exist_ok=True)
        with tarfile.open(packed, "w:xz") as archive:
            archive.add(folder, name)
    return packed


if __name__ == "__main__":
    for path in map(record, sys.argv[1:]):
        print(path, path.stat().st_size)
