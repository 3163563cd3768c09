"""Collecting the tests is quick, and works where torch is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import RECORDINGS

ROOT = RECORDINGS.parents[2]


@pytest.mark.slow
def test_collecting_the_tests_does_not_import_torch() -> None:
    code = (
        "import sys, pytest\n"
        "options = ['--collect-only', '-q', '--benchmark-disable', '-p', 'no:nbval', '-p', 'no:cacheprovider']\n"
        "status = pytest.main([*options, 'tests'])\n"
        "sys.exit(int(status) or ('torch' in sys.modules and 'torch is imported'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
