"""``cachescope capture``: a snapshot as JSON, and one line where there is no torch."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.mark.torch
def test_a_snapshot_is_printed_or_written(run: Run, cache_root: Path, tmp_path: Path) -> None:
    printed = run("capture").json
    assert printed["cachescope_snapshot"] == 1
    done = run("capture", "-o", tmp_path / "snapshot.json")
    assert (done.status, done.out) == (0, "")
    assert json.loads((tmp_path / "snapshot.json").read_text())["context"] == printed["context"]


@pytest.mark.torch
def test_the_manifest_of_torch_is_there_where_it_is_asked_for(run: Run, cache_root: Path) -> None:
    assert run("capture").json["torch_manifest"] is None
    printed = run("capture", "--torch-manifest").json
    assert printed["torch_manifest"]["is_complete"]
    of_context = printed["context"]["compile_context"]["torch_version_hash"]
    assert printed["torch_manifest"]["torch_key"] == of_context


def test_without_torch_it_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    done = run("capture")
    assert (done.status, done.out) == (1, "") and done.err.startswith("cachescope: torch is")
    assert done.err.count("\n") == 1
