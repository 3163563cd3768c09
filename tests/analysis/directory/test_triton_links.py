"""Kernel -> best configuration -> Triton directory, and bundle -> Triton directory, against what torch said it stored.

The directories are of torch.compile and Triton themselves, compiling for sm_90 without a GPU (tests/data/compile_triton.py).
"""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.directory import links as module
from cachescope.analysis.directory.links import TRITON_SOURCE
from cachescope.analysis.directory.unused import OTHER_PATHS
from cachescope.readers.directory.places import triton_hash
from tests.conftest import Directory

VENVS = ["t2150", "t2100", "t260"]


@pytest.fixture
def recorded(directory: Directory) -> Path:
    return directory("triton_kernels")


def truths(recorded: Path, venv: str) -> list[dict[str, Any]]:
    """What torch said of every process that wrote into the directory of a torch."""
    steps = json.loads((recorded / "provenance.json").read_text())["steps"]
    return [step["truth"] for step in steps if step["step"].endswith(venv)]


def kernels_of(recorded: Path, venv: str) -> list[dict[str, Any]]:
    return [kernel for truth in truths(recorded, venv) for kernel in truth["kernels"]]


def snapshot(recorded: Path, venv: str, folder: Path) -> Path:
    """An isolation context with torch's own key, spelled as `_CompileContext.torch_version_hash` does."""
    key = base64.b64encode(bytes.fromhex(truths(recorded, venv)[0]["torch_key"])).decode()
    file = folder / "context.json"
    file.write_text(json.dumps({"runtime_context": None, "compile_context": {"torch_version_hash": key}}))
    return file


def pairs(scope: cachescope.Scope, kind: str, child_kind: str) -> pd.DataFrame:
    """Links of two kinds, with the names of the files and the keys."""
    entries = scope.entries.set_index("entry")
    names = entries["path"].map(lambda path: Path(path).name)
    links = scope.links
    links = links[(links["parent_kind"] == kind) & (links["child_kind"] == child_kind)]
    return links.assign(
        parent_name=links["parent"].map(names),
        child_name=links["child"].map(names),
        hash=links["child"].map(entries["cache_key"]),
    )


def copied(recorded: Path, venv: str, to: Path) -> Path:
    return Path(shutil.copytree(recorded / f"cache_{venv}", to / "cache"))


@pytest.mark.parametrize("venv", VENVS)
def test_every_best_configuration_has_its_kernel_by_name(venv: str, recorded: Path, tmp_path: Path) -> None:
    kernels = kernels_of(recorded, venv)
    said = {(Path(one["kernel_file"]).name, Path(one["best_config"]).name) for one in kernels}
    scope = cachescope.read(recorded / f"cache_{venv}", snapshot(recorded, venv, tmp_path))
    found = pairs(scope, "code", "best_config")
    assert set(zip(found["parent_name"], found["child_name"], strict=True)) == said
    assert len(found) == len(said)
    by_name = {"t260": {module.NAME, module.ONE_IN_FOLDER}}.get(venv, {module.NAME_OF_TORCH})
    # In 2.6 no entry holds the cache key tag, so that the tagged ones are told by their folder.
    assert set(found["known_by"]) == by_name


@pytest.mark.parametrize("venv", ["t2150", "t2100"])
def test_without_torchs_key_the_compiled_kernel_tells(venv: str, recorded: Path, tmp_path: Path) -> None:
    cache = copied(recorded, venv, tmp_path)
    kernels = kernels_of(recorded, venv)
    said = {(Path(one["kernel_file"]).name, Path(one["best_config"]).name) for one in kernels}
    found = pairs(cachescope.read(cache), "code", "best_config")
    assert set(found["known_by"]) == {module.COMPILED_FROM}
    assert set(zip(found["parent_name"], found["child_name"], strict=True)) == said
    shutil.rmtree(cache / "triton")
    found = pairs(cachescope.read(cache), "code", "best_config")
    assert set(found["known_by"]) == {module.ONE_IN_FOLDER}
    assert set(zip(found["parent_name"], found["child_name"], strict=True)) == said


@pytest.mark.parametrize("venv", ["t2150", "t2100"])
def test_a_best_configuration_leads_to_the_directory_that_won(venv: str, recorded: Path) -> None:
    found = pairs(cachescope.read(recorded / f"cache_{venv}"), "best_config", "triton")
    said = {(Path(one["best_config"]).name, triton_hash(one["chosen"])) for one in kernels_of(recorded, venv)}
    assert set(zip(found["parent_name"], found["hash"], strict=True)) == said
    assert set(found["known_by"]) == {module.WINNER}
    assert found["child_name"].str.fullmatch(r"triton_\w+\.json").all()


@pytest.mark.parametrize("venv", VENVS)
def test_a_kernel_leads_to_what_was_compiled_from_it(venv: str, recorded: Path) -> None:
    found = pairs(cachescope.read(recorded / f"cache_{venv}"), "code", "triton")
    said = set()
    for one in kernels_of(recorded, venv):
        said |= {(Path(one["kernel_file"]).name, triton_hash(key)) for key in one["compiled"]}
    assert set(zip(found["parent_name"], found["hash"], strict=True)) == said
    assert len(said) == 5


@pytest.mark.parametrize("venv", VENVS)
def test_a_bundle_leads_to_the_directories_it_copies(venv: str, recorded: Path) -> None:
    scope = cachescope.read(recorded / f"cache_{venv}")
    found = pairs(scope, "fxgraph", "triton")
    assert set(found["known_by"]) == {module.BUNDLE}
    # Everything that one process compiled is in the bundles of its two graphs.
    compiled = [triton_hash(key) for one in kernels_of(recorded, venv) for key in one["compiled"]]
    assert sorted(found["hash"]) == sorted(compiled)
    assert scope.entries[scope.entries["cache"] == "fxgraph"]["triton_hashes"].map(len).sum() == len(compiled)


@pytest.mark.parametrize("venv", VENVS)
def test_kernels_in_use_are_not_alone(venv: str, recorded: Path) -> None:
    scope = cachescope.read(recorded / f"cache_{venv}")
    assert len(scope.links[scope.links["known_by"] == TRITON_SOURCE]) == 3
    # The directory lies where it was unpacked, and Triton writes absolute paths.
    assert set(scope.orphans["reason"]) == {OTHER_PATHS}
    assert len(scope.orphans) == 5
    assert scope.removable.empty
