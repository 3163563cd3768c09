"""A cause names the known defect of torch whose sign it has; docs/upstream has the programs, which `tests/docs/test_upstream.py` runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import upstream_page

import cachescope

pytestmark = [pytest.mark.torch, pytest.mark.sweep]


@pytest.mark.parametrize("name", ["autocast", "weak_container"])
def test_the_cause_of_a_bypass_is_said_to_be_a_known_defect(name: str, tmp_path: Path) -> None:
    settings = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "TORCH_TRACE": str(tmp_path / "trace")}
    program = upstream_page.FOLDER / f"{name}.py"
    subprocess.run([sys.executable, program], env=os.environ | settings, check=True, timeout=300)
    advised = " ".join(cachescope.read(tmp_path / "trace").causes["advice"].dropna())
    assert "This may be a known defect of torch" in advised
