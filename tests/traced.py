"""What one process of real torch writes to its trace, with a cache of its own."""

import os
import subprocess
import sys
from pathlib import Path

from cachescope.terms import LOGGERS


def traced(program: Path, folder: Path, *arguments: str) -> str:
    """Run a program; its traces are in `folder` / trace, and what it logged in `folder` / log. Returns what it printed."""
    variables = {
        "TORCH_TRACE": str(folder / "trace"), "TORCH_LOGS": f"{LOGGERS},recompiles",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, program, *arguments], env={**os.environ, **variables}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder / "log").write_text(done.stderr)
    return done.stdout
