"""What one process of real torch writes to its trace, with a cache of its own."""

import os
import sys
from pathlib import Path

from cachescope.terms import LOGGERS
from tests.programs import ran


def traced(program: Path, folder: Path, *arguments: str) -> str:
    """Run a program; its traces are in `folder` / trace, and what it logged in `folder` / log. Returns what it printed."""
    variables = {
        "TORCH_TRACE": str(folder / "trace"), "TORCH_LOGS": f"{LOGGERS},recompiles",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }  # fmt: skip
    done = ran([sys.executable, program, *arguments], os.environ | variables)
    (folder / "log").write_text(done.stderr)
    return done.stdout
