"""The cell magic, in a shell of IPython with real compiles; and blocks in a live process, the scenarios of live_program.py."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.programs import ran

pytestmark = pytest.mark.torch
PROGRAM = Path(__file__).with_name("magic_program.py")


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("magic")
    surroundings = environment(folder) | {"IPYTHONDIR": str(folder / "ipython")}
    del surroundings["TORCH_TRACE"]
    done = ran([sys.executable, PROGRAM], surroundings, cwd=folder)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def shown(cell: dict[str, Any]) -> str:
    """The explanation below the cell."""
    assert "<div" in cell["shown"][-1]["text/html"]
    return str(cell["shown"][-1]["text/plain"])


def test_a_cell_is_explained_below_it(cells: dict[str, Any]) -> None:
    assert cells["load"]["success"] and cells["load"]["text"] == ""
    assert "All 2 lookups hit" in shown(cells["hit"])


@pytest.mark.parametrize(
    ("name", "is_shown"), [("valued", True), ("silenced", False), ("valued_again", True)]
)
def test_a_semicolon_at_the_end_keeps_it_back(name: str, is_shown: bool, cells: dict[str, Any]) -> None:
    assert cells[name]["success"]
    assert "no lookup of this run is recorded" in shown(cells[name])
    values = [output["text/plain"] for output in cells[name]["shown"][:-1]]
    assert ("the value" in cells[name]["text"] + "".join(values)) == is_shown


def test_a_miss_is_compared_with_the_cells_before(cells: dict[str, Any]) -> None:
    assert "epilogue_fusion: True -> False" in shown(cells["changed"])
    assert cells["changed"]["text"].count("the value") == 1 or "the value" in str(cells["changed"]["shown"])


def test_a_cell_is_predicted_below_it(cells: dict[str, Any]) -> None:
    assert shown(cells["predicted"]).startswith("a real run would make 2 lookups: 2 would hit, 0 would miss")
    assert "the value" in cells["predicted"]["text"] + str(cells["predicted"]["shown"])
    told = shown(cells["predicted_changed"])
    assert told.startswith("a real run would make 2 lookups: 0 would hit, 2 would miss")
    assert "max_fusion_size: 64 -> 3" in told
    said = "a real run would make 2 lookups: 0 would hit, 2 would miss"
    assert shown(cells["predicted_nowhere"]).startswith(said)
    assert "no-such-folder" in shown(cells["predicted_nowhere"])
    assert cells["predicted_left"]["text"].split() == ["2", "torch", "True"]
    assert not cells["predicted_error"]["success"]
    assert cells["predicted_error"]["text"].count("ZeroDivisionError: ") == 1


def test_a_fresh_cell_is_a_cold_start(cells: dict[str, Any]) -> None:
    assert "2 lookups in 1 run: 0 hit, 2 missed (0 %" in shown(cells["fresh"])
    assert "first lookups (cold start): 2 misses" in shown(cells["fresh"])
    assert cells["after"]["text"].strip() == "False True"


@pytest.mark.parametrize("name", ["unknown", "quote", "both"])
def test_wrong_usage_is_one_line_and_runs_nothing(name: str, cells: dict[str, Any]) -> None:
    assert not cells[name]["success"] and not cells[name]["shown"]
    (line,) = cells[name]["text"].strip().splitlines()
    assert "usage: %%cachescope [--fresh | --preflight] [--against PATH]..." in line
    assert "ran" not in line.split(";")[0]


@pytest.mark.parametrize(
    ("name", "error"),
    [("error", "ZeroDivisionError"), ("error_fresh", "ZeroDivisionError"), ("syntax", "SyntaxError")],
)
def test_an_error_is_shown_once_and_fails_the_cell(name: str, error: str, cells: dict[str, Any]) -> None:
    text = cells[name]["text"]
    assert not cells[name]["success"]
    assert text.count("Traceback (most recent call last)") <= 1 and text.count(f"{error}: ") == 1
    assert "CellFailedError" not in text and "run_cell" not in text
    assert ("kept at" in text) == (name == "error_fresh")
    assert "no lookup of this run is recorded" in shown(cells[name])


def test_a_cell_may_await(cells: dict[str, Any]) -> None:
    assert cells["awaited"]["success"], cells["awaited"]["text"]
    assert "awaited" in cells["awaited"]["text"]


LIVE_PROGRAM = Path(__file__).with_name("live_program.py")
ROOT = LIVE_PROGRAM.parents[2]


def scenario_names() -> list[str]:
    """Read, not imported: importing it imports torch."""
    return re.findall(r"^def ([a-z]\w*)\(\) -> None:", LIVE_PROGRAM.read_text(), re.MULTILINE)


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
    ran([sys.executable, LIVE_PROGRAM, folder / "results.json"], environment(folder))
    found: dict[str, str | None] = json.loads((folder / "results.json").read_text())
    left = sorted(path.name[:16] for path in (folder / "tmp").glob("cachescope-*"))
    # One block fails on purpose and keeps its caches.
    found["left"] = None if left == ["cachescope-fresh"] else f"left: {left}"
    return found


@pytest.mark.parametrize("name", [*scenario_names(), "left"])
def test_a_recorded_block(name: str, results: dict[str, str | None]) -> None:
    assert results[name] is None, results[name]
