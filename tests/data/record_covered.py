"""Records what a bundle covers: ``python tests/data/record_covered.py PYTHON`` for an interpreter with torch 2.10 or later.

Writes ``tests/data/covered/VERSION.tar.xz``: a run that saves a bundle before its last compiles and one at its end, its trace and its
cache directory; and a run each that begins with one of the bundles in an empty directory, with its trace: what hits there
is what the bundle covers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from packing import pack_each

_PROGRAM = Path(__file__).with_name("covered_program.py")
_FOLDER = Path("/tmp/cachescope-recording/covered")


def record_into(folder: Path, python: str) -> None:
    """Run the program three times, each with a trace and an empty cache."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    program = shutil.copy(_PROGRAM, _FOLDER / "program.py")
    for name, words in (
        ("make", ["make"]),
        ("load_early", ["load", "early.bin"]),
        ("load_late", ["load", "late.bin"]),
    ):
        with tempfile.TemporaryDirectory(dir=_FOLDER) as cache:
            environment = os.environ | {
                "TORCH_TRACE": str(folder / name / "trace"),
                "TORCHINDUCTOR_CACHE_DIR": cache,
            }
            step, *bundle = words
            command = [python, program, step, str(folder), *bundle]
            subprocess.run(command, check=True, env=environment, cwd=_FOLDER)
            if name == "make":
                shutil.copytree(
                    cache, folder / name / "cache", ignore=shutil.ignore_patterns("*.so", "*.o", "*.gch")
                )


if __name__ == "__main__":
    pack_each("covered", record_into)
