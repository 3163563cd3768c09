"""Records what is built under equal keys: ``python tests/data/record_built.py PYTHON`` for an interpreter with torch.

Writes ``tests/data/built/VERSION.tar.xz``: one cache directory for each of `STEPS`, without locks and precompiled headers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from packing import pack_each

STEPS = {
    "first": {"PASS": "sigmoid", "FASTEST": "Extern"},
    "again": {"PASS": "sigmoid", "FASTEST": "Extern"},
    "other_pass": {"PASS": "tanh", "FASTEST": "Extern"},
    "other_choice": {"PASS": "sigmoid", "FASTEST": "Cpp"},
}


def record_into(folder: Path, python: str = sys.executable) -> Path:
    """Run the program once for each step, each on an empty cache directory of its own."""
    program = Path(__file__).with_name("built_programs.py")
    for step, variables in STEPS.items():
        environment = os.environ | variables
        environment |= {"TORCHINDUCTOR_CACHE_DIR": str(folder / step), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        subprocess.run([python, str(program)], check=True, env=environment, timeout=300)
        for name in ("locks", "precompiled_headers"):
            shutil.rmtree(folder / step / name, ignore_errors=True)
    return folder


if __name__ == "__main__":
    pack_each("built", record_into)
