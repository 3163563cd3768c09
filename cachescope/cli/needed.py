"""What every command but `record` and `capture` needs beside Python: ``pip install --no-deps`` leaves it out.

A training environment keeps its own pandas and numpy that way, and its runs are explained elsewhere.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Final

NEEDED: Final = (
    *("filelock", "numpy", "orjson", "pandas", "platformdirs", "pyarrow", "rich"),
    *(("backports",) if sys.version_info < (3, 14) else ()),
)


def missing_package() -> str | None:
    """The first of `NEEDED` that is not installed here."""
    return next((name for name in NEEDED if find_spec(name) is None), None)
