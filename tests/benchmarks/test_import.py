"""Import time, beside pandas in the same run: `import cachescope` may take 1.15 times `import pandas`.

It takes far less, as what reads is loaded at its first use; so that is measured as well.
"""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "program", ["import pandas", "import cachescope", "import cachescope; cachescope.read, cachescope.Scope"]
)
@pytest.mark.benchmark(group="import")
def test_import(program: str, benchmark) -> None:  # type: ignore[no-untyped-def]
    benchmark.pedantic(
        lambda: subprocess.run([sys.executable, "-c", program], check=True),
        rounds=15,
        warmup_rounds=2,
    )
