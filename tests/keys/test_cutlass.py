"""Request keys equal those that torch gave the recorded files."""

import hashlib
import importlib.metadata
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.keys import CutlassRequest, cutlass_request_key, cutlass_requests
from cachescope.keys.cutlass import TORCH_FILE_HASHES
from tests.conftest import Directory


@pytest.fixture
def installed() -> str:
    """The version of the installed torch. Read, not asked: importing torch takes seconds."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    return importlib.metadata.version("torch")


def file_hashes() -> list[str]:
    """Of the two files of the installed torch that its request keys take in."""
    found = importlib.util.find_spec("torch")
    assert found is not None and found.origin is not None
    folder = Path(found.origin).parent / "_inductor" / "codegen" / "cutlass"
    files = (folder / name for name in ("serialization.py", "utils.py"))
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def steps(directory: Directory) -> list[dict[str, Any]]:
    provenance = (directory("cutlass_configs") / "provenance.json").read_text()
    found: list[dict[str, Any]] = json.loads(provenance)["steps"]
    return found


def recorded_hashes(step: dict[str, Any]) -> list[str]:
    """What the recorder read from the files of that torch, in the order of the key; 2.8 takes none."""
    truth = step["truth"]["file_hashes"]
    utils = truth.get("utils", truth.get("cutlass_utils"))
    return [] if utils is None else [truth["serialization"], utils]


def test_the_request_key_is_torchs(directory: Directory) -> None:
    versions = []
    for step in steps(directory):
        for named in step["truth"]["names"]:
            key = cutlass_request_key(
                bytes.fromhex(named["cutlass_key"]), named["arch"], named["toolkit"], named["level"],
                *recorded_hashes(step),
            )  # fmt: skip
            assert key == named["request_key"]
        versions.append(step["versions"]["torch_version"].partition("+")[0])
    assert versions == ["2.13.0", "2.10.0", "2.8.0", "2.13.0"]


def test_the_hashes_are_those_of_files_of_the_installed_torch(directory: Directory, installed: str) -> None:
    (step, *_) = [step for step in steps(directory) if step["versions"]["torch_version"] == installed]
    assert recorded_hashes(step) == file_hashes()


@pytest.mark.parametrize("at", [0, 1, 2], ids=["2.13", "2.10", "2.8"])
def test_a_file_is_matched_to_the_machine_it_is_for(at: int, directory: Directory) -> None:
    step = steps(directory)[at]
    name = Path(step["environment"]["TORCHINDUCTOR_CACHE_DIR"]).name
    entries = cachescope.read(directory("cutlass_configs") / name)
    written = {row["request_key"]: row for row in step["truth"]["written"]}
    configs = entries.entries.query("cache == 'cutlass_configs'")
    assert set(configs["cache_key"]) == set(written)
    for key in configs["cache_key"]:
        (found,) = cutlass_requests(
            key, archs=["75", "80", "90", "100"], toolkit_versions=["12.4", "12.8", "12.9"],
            instantiation_levels=["0", "3332"], file_hashes=recorded_hashes(step),
        )  # fmt: skip
        row = written[key]
        assert found == CutlassRequest(row["arch"], row["toolkit"], row["level"])


def test_hashes_of_releases_are_the_recorded_and_installed_ones(directory: Directory, installed: str) -> None:
    for step in steps(directory):
        release = step["versions"]["torch_version"].partition("+")[0]
        shown = TORCH_FILE_HASHES[tuple(recorded_hashes(step))]
        assert release in shown.split(" or ") or (release, shown) == ("2.8.0", "2.8 or older")
    assert installed.partition("+")[0] in TORCH_FILE_HASHES[tuple(file_hashes())].split(" or ")


def test_another_cutlass_matches_no_machine(directory: Directory) -> None:
    step = steps(directory)[3]
    named = step["truth"]["names"][0]
    asked = (named["request_key"], [named["arch"]], [named["toolkit"]], [named["level"]])
    assert cutlass_requests(*asked, file_hashes=recorded_hashes(step)) == []
    assert len(cutlass_requests(*asked, bytes.fromhex(named["cutlass_key"]), recorded_hashes(step))) == 1
