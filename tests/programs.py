"""Programs that tests start, in processes of their own."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def ran(
    command: Sequence[str | Path],
    variables: Mapping[str, str] | None = None,
    *,
    status: int | None = 0,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a command, which is to end with a status, if one is given; what it printed is kept as texts."""
    options = {"capture_output": True, "text": True, "timeout": 1500} | options
    done: subprocess.CompletedProcess[str] = subprocess.run(command, env=variables, check=False, **options)
    assert status is None or done.returncode == status, f"{done.stdout}{done.stderr}"
    return done


def python(code: str, *arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run some lines of Python."""
    return ran([sys.executable, "-c", code, *arguments], **options)
