"""Precompile packages of three versions of torch, against what torch itself unpickles of them."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

import cachescope

RECORDED = Path(__file__).parents[2] / "data" / "precompile"
VERSIONS = ("2.10.0", "2.13.0", "2.15.0")


def unpacked(version: str, folder: Path) -> Path:
    with tarfile.open(RECORDED / f"{version}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / version


def only_row(path: Path) -> dict[str, Any]:
    scope = cachescope.read(path)
    assert scope.problems.empty
    (row,) = scope.entries.to_dict("records")
    return row


@pytest.mark.parametrize("version", VERSIONS)
def test_a_package_says_what_torch_wrote(version: str, tmp_path: Path) -> None:
    folder = unpacked(version, tmp_path)
    truth: dict[str, dict[str, Any]] = json.loads((folder / "torchs.json").read_text())
    for key, told in truth.items():
        row = only_row(folder / "dynamo")
        assert row["cache_key"] == key
        assert (row["cache"], row["status"], row["device_types"]) == ("precompile", "ok", (told["device"],))
        assert (
            row["name"]
            == f"{told['function']} at /tmp/cachescope-recording/precompile/program.py:{told['line']}"
        )
        assert row["detail"] == (
            f"{told['backends']} compiled graphs, torch {told['torch']}, Python {told['python']}"
        )


@pytest.mark.parametrize("below", ["", "dynamo", "dynamo/*", "dynamo/*/entry"])
def test_a_package_is_known_wherever_one_points(below: str, tmp_path: Path) -> None:
    """The name of its folder could be one of Triton's."""
    folder = unpacked("2.15.0", tmp_path)
    (folder / "torchs.json").unlink()
    (path,) = folder.glob(below) if below else (folder,)
    assert only_row(path)["cache"] == "precompile"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_audit_says_nothing_against_what_torch_wrote(version: str, tmp_path: Path) -> None:
    folder = unpacked(version, tmp_path)
    (folder / "torchs.json").unlink()
    (package,) = (folder / "dynamo").iterdir()
    for path in (folder, folder / "dynamo", package, package / "entry"):
        assert set(cachescope.audit(path)["level"]) <= {"note"}
