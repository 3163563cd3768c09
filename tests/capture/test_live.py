"""Blocks recorded in a live process: the scenarios of live_program.py, all in one process with real compiles."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.programs import ran

pytestmark = pytest.mark.torch
PROGRAM = Path(__file__).with_name("live_program.py")
ROOT = PROGRAM.parents[2]


def scenario_names() -> list[str]:
    """Read, not imported: importing it imports torch."""
    return re.findall(r"^def ([a-z]\w*)\(\) -> None:", PROGRAM.read_text(), re.MULTILINE)


def environment(folder: Path) -> dict[str, str]:
    """Directories of its own for everything that torch would share, the default root included."""
    (folder / "tmp").mkdir()
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("TORCH_")},
        "PYTHONPATH": str(ROOT),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        # Told, not tried: the trial compile takes seconds of each fresh cache, and nothing here is about it.
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
        "TORCH_TRACE": str(folder / "trace"),
        "TMPDIR": str(folder / "tmp"),
        "USER": "someone",
        "LOGNAME": "someone",
    }


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """What became of each scenario: None, or its traceback."""
    folder = tmp_path_factory.mktemp("live")
    ran([sys.executable, PROGRAM, folder / "results.json"], environment(folder))
    found: dict[str, str | None] = json.loads((folder / "results.json").read_text())
    left = sorted(path.name[:16] for path in (folder / "tmp").glob("cachescope-*"))
    # One block fails on purpose and keeps its caches.
    found["left"] = None if left == ["cachescope-fresh"] else f"left: {left}"
    return found


@pytest.mark.parametrize("name", [*scenario_names(), "left"])
def test_a_recorded_block(name: str, results: dict[str, str | None]) -> None:
    assert results[name] is None, results[name]
