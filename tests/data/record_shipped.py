"""Records the files that people ship: ``python tests/data/record_shipped.py PYTHON`` for an interpreter with torch 2.10 or later.

Writes ``tests/data/shipped/VERSION.tar.xz``: the files that `shipped_program.py` makes, what torch says of them
(``torchs.json``), and the trace of the run. With ``--library`` also an AOTInductor package with its compiled library, of 1.5 MB.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from packing import pack

_PROGRAM = Path(__file__).with_name("shipped_program.py")
# The files hold the path and the text of the program.
_FOLDER = Path("/tmp/cachescope-recording/shipped")


def record_into(folder: Path, python: str, options: list[str]) -> None:
    """Run the program with a trace and an empty cache."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    program = shutil.copy(_PROGRAM, _FOLDER / "program.py")
    with tempfile.TemporaryDirectory(dir=_FOLDER) as cache:
        environment = os.environ | {"TORCH_TRACE": str(folder / "trace"), "TORCHINDUCTOR_CACHE_DIR": cache}
        subprocess.run([python, program, str(folder), *options], check=True, env=environment, cwd=_FOLDER)


def main() -> None:
    """Record with the interpreter that the command line names."""
    python, *options = sys.argv[1:]
    pack("shipped", python, lambda folder: record_into(folder, python, options))


if __name__ == "__main__":
    main()
