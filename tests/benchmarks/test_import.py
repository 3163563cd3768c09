"""Import time, beside pandas in the same run: `import cachescope` may take 1.15 times `import pandas`."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["pandas", "cachescope"])
@pytest.mark.benchmark(group="import")
def test_import(module: str, benchmark) -> None:  # type: ignore[no-untyped-def]
    benchmark.pedantic(
        lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True),
        rounds=15,
        warmup_rounds=2,
    )
