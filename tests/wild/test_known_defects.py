"""Known defects and limits of torch's caches, shown with real torch by its own counters, and that what is advised helps."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cachescope

pytestmark = [pytest.mark.torch, pytest.mark.sweep]
PROGRAMS = Path(__file__).parents[1] / "data" / "defect_programs.py"


def ran(name: str, root: Path, **environment: str) -> dict[str, Any]:
    """What a program printed: torch's own counters, and what it computed."""
    settings = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(root / "cache"), **environment}
    done = subprocess.run(
        [sys.executable, str(PROGRAMS), name],
        env=settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(("name", "shows", "helped"), [
    ("autocast", "autograd_cache_bypass", {"CHOICE": "outside"}),
    ("weak_container", "autograd_cache_bypass", {"CHOICE": "without"}),
    ("set_in_metadata", "autograd_cache_miss", {"CHOICE": "sorted"}),
    ("set_in_metadata", "autograd_cache_miss", {"CHOICE": "stable"}),
    ("set_in_metadata", "autograd_cache_miss", {"PYTHONHASHSEED": "3"}),
    ("backward_without_operator", "autograd_cache_miss", {"CHOICE": "operator"}),
    ("backward_never_run", "autograd_cache_miss", {"CHOICE": "no_grad"}),
])  # fmt: skip
def test_torch_shows_it_in_each_process_and_the_advice_helps(
    name: str, shows: str, helped: dict[str, str], tmp_path: Path
) -> None:
    for seed in ("1", "2"):
        counted = ran(name, tmp_path / "as_it_is", PYTHONHASHSEED=seed, TORCH_TRACE=str(tmp_path / "trace"))
        assert counted.get(shows) == 1 and "autograd_cache_hit" not in counted
    first, second = (
        ran(name, tmp_path / "helped", **{"PYTHONHASHSEED": seed, **helped}) for seed in ("1", "2")
    )
    assert first["autograd_cache_miss"] == first["autograd_cache_saved"] == second["autograd_cache_hit"] == 1
    if shows == "autograd_cache_bypass":
        advised = " ".join(cachescope.read(tmp_path / "trace").causes["advice"].dropna())
        assert "This may be a known defect of torch" in advised


def test_a_class_that_hashes_itself_is_not_stored_with_what_cannot_be_pickled(tmp_path: Path) -> None:
    for _ in range(2):
        counted = ran("weak_container", tmp_path, CHOICE="stable")
        assert counted["autograd_cache_miss"] == 1 and "autograd_cache_saved" not in counted


def test_an_edited_backward_of_a_custom_operator_is_not_seen(tmp_path: Path) -> None:
    first, edited = (ran("custom_backward", tmp_path, CHOICE=factor) for factor in ("2", "3"))
    assert (first["result"], edited["result"], edited["autograd_cache_hit"]) == (4, 4, 1)
    # In a directory of its own it is right.
    assert ran("custom_backward", tmp_path / "other", CHOICE="3")["result"] == 6


def test_a_list_of_timings_ends_a_compile(tmp_path: Path) -> None:
    assert ran("list_of_timings", tmp_path)["result"] == "AssertionError"
