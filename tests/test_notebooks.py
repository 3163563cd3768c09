"""Committed notebooks are executed in order and small; strict nbval, which lets a never-run notebook pass, runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_executed_small_and_without_widget_state(path: Path) -> None:
    notebook = json.loads(path.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code)
    assert not any(output["output_type"] == "error" for cell in code for output in cell["outputs"])
    assert "widgets" not in notebook["metadata"]
    assert len(notebook["cells"]) <= 25
    assert path.stat().st_size < 500_000
