"""Kernel -> best configuration -> Triton directory, and bundle -> Triton directory, against what torch said it stored.

The directories are of torch.compile and Triton themselves, compiling for sm_90 without a GPU (tests/data/compile_triton.py).
"""

from __future__ import annotations

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
from cachescope.analysis.directory.unused import NO_KERNEL, OTHER_PATHS, UNUSED_TRITON
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


def test_of_two_kernels_in_a_folder_none_is_guessed(recorded: Path, tmp_path: Path) -> None:
    cache = copied(recorded, "t2150", tmp_path)
    shutil.rmtree(cache / "triton")
    first, second, third = sorted(
        path for path in cache.glob("??/c*.py") if list(path.parent.glob("*.best_config"))
    )
    shutil.copy(second, first.parent)
    found = pairs(cachescope.read(cache), "code", "best_config")
    assert set(found["parent_name"]) == {second.name, third.name}
    by_name = pairs(cachescope.read(cache, snapshot(recorded, "t2150", tmp_path)), "code", "best_config")
    assert set(by_name["parent_name"]) == {first.name, second.name, third.name}


def test_another_torchs_key_names_nothing(recorded: Path, tmp_path: Path) -> None:
    other = snapshot(recorded, "t2100", tmp_path)
    found = pairs(cachescope.read(recorded / "cache_t2150", other), "code", "best_config")
    assert set(found["known_by"]) == {module.COMPILED_FROM}


@pytest.mark.parametrize("venv", ["t2150", "t2100"])
def test_a_best_configuration_leads_to_the_directory_that_won(venv: str, recorded: Path) -> None:
    scope = cachescope.read(recorded / f"cache_{venv}")
    found = pairs(scope, "best_config", "triton")
    said = {(Path(one["best_config"]).name, triton_hash(one["chosen"])) for one in kernels_of(recorded, venv)}
    assert set(zip(found["parent_name"], found["hash"], strict=True)) == said
    assert set(found["known_by"]) == {module.WINNER}
    assert found["child_name"].str.fullmatch(r"triton_\w+\.json").all()


@pytest.mark.parametrize("venv", VENVS)
def test_a_kernel_leads_to_what_was_compiled_from_it(venv: str, recorded: Path) -> None:
    scope = cachescope.read(recorded / f"cache_{venv}")
    found = pairs(scope, "code", "triton")
    said = {
        (Path(one["kernel_file"]).name, triton_hash(key))
        for one in kernels_of(recorded, venv)
        for key in one["compiled"]
    }
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


def test_a_triton_directory_elsewhere_is_found_when_it_is_read(recorded: Path, tmp_path: Path) -> None:
    cache = copied(recorded, "t2150", tmp_path)
    elsewhere = tmp_path / "home" / "triton"
    elsewhere.parent.mkdir()
    shutil.move(cache / "triton" / "0", elsewhere)
    alone = cachescope.read(cache)
    # Nothing is gone: it was not read.
    assert "triton" not in set(alone.links["child_kind"])
    assert alone.orphans.empty
    scope = cachescope.read(cache, elsewhere)
    found = pairs(scope, "best_config", "triton")
    assert len(found) == 6
    assert set(found["known_by"]) == {module.WINNER + module.ELSEWHERE}
    assert len(pairs(scope, "code", "triton")) == 5


@pytest.mark.parametrize("venv", VENVS)
def test_kernels_in_use_are_not_alone(venv: str, recorded: Path) -> None:
    scope = cachescope.read(recorded / f"cache_{venv}")
    kernels = scope.links[scope.links["known_by"] == TRITON_SOURCE]
    assert len(kernels) == 3
    # The directory lies where it was unpacked, and Triton writes absolute paths.
    assert set(scope.orphans["reason"]) == {OTHER_PATHS}
    assert len(scope.orphans) == 5
    assert scope.removable.empty


def test_a_kernel_that_no_graph_needs_is_alone(recorded: Path, tmp_path: Path) -> None:
    cache = copied(recorded, "t2100", tmp_path)
    entries = cachescope.read(cache).entries
    gone = entries[entries["cache"] == "fxgraph"].iloc[0]
    Path(gone["path"]).unlink()
    scope = cachescope.read(cache)
    (wrapper,) = cache.glob(f"??/{gone['code_key']}.py")
    defined = entries[entries["cache_key"] == gone["code_key"]].iloc[0]["kernel_keys"]
    alone = scope.orphans[scope.orphans["cache"] == "code"]["entry"]
    paths = scope.entries.set_index("entry").loc[alone, "path"]
    assert {Path(path).stem for path in paths} == {wrapper.stem, *defined}


def test_a_configuration_that_lost_is_alone_once_nothing_bundles_it(recorded: Path, tmp_path: Path) -> None:
    cache = copied(recorded, "t2100", tmp_path)
    shutil.rmtree(cache / "fxgraph")
    kernels = kernels_of(recorded, "t2100")
    lost = {triton_hash(key) for one in kernels for key in one["compiled"]}
    lost -= {triton_hash(one["chosen"]) for one in kernels}
    assert len(lost) == 2

    def alone() -> set[str]:
        scope = cachescope.read(cache)
        orphans = scope.orphans[scope.orphans["reason"] == UNUSED_TRITON]
        return set(scope.entries.set_index("entry").loc[orphans["entry"], "cache_key"])

    assert alone() == lost
    assert not set(cachescope.read(cache).removable["cache"]) & {"triton", "best_config"}
    # What cannot be read might be what refers to it.
    next(cache.glob("??/*.best_config")).write_text("{")
    assert alone() == set()


def test_triton_directories_alone_say_nothing_about_use(recorded: Path) -> None:
    scope = cachescope.read(recorded / "cache_t2100" / "triton" / "0")
    assert set(scope.orphans["reason"]) == {OTHER_PATHS}


def test_a_winner_that_is_gone_is_missed(recorded: Path, tmp_path: Path) -> None:
    cache = copied(recorded, "t2100", tmp_path)
    chosen = kernels_of(recorded, "t2100")[0]["chosen"]
    shutil.rmtree(cache / "triton" / "0" / chosen)
    scope = cachescope.read(cache)
    (orphan,) = scope.orphans[scope.orphans["cache"] == "best_config"].itertuples()
    assert orphan.reason == f"its Triton directory {triton_hash(chosen)} is gone"
    # The bundle brings it back at the next hit.
    assert set(scope.orphans["cache"]) == {"best_config", "triton"}
    assert scope.removable.empty


def test_a_best_configuration_without_a_kernel_is_told_and_stays(recorded: Path, tmp_path: Path) -> None:
    cache = copied(recorded, "t2100", tmp_path)
    best = next(cache.glob("??/*.best_config"))
    for kernel in best.parent.glob("c*.py"):
        kernel.unlink()
    scope = cachescope.read(cache)
    orphans = scope.orphans.merge(scope.entries[["entry", "path"]], on="entry")
    (orphan,) = orphans[orphans["reason"] == NO_KERNEL].itertuples()
    assert Path(orphan.path) == best
    assert "best_config" not in set(scope.removable["cache"])


def test_the_name_of_2_5_is_that_of_the_kernel(recorded: Path, tmp_path: Path) -> None:
    # By hand: no recording of 2.5 has kernels of Triton.
    cache = copied(recorded, "t260", tmp_path)
    kernel = Path(kernels_of(recorded, "t260")[0]["kernel_file"])
    folder = cache / kernel.parent.name
    best = next(folder.glob("*.best_config"))
    best.rename(folder / f"{kernel.stem}.best_config")
    found = pairs(cachescope.read(cache), "code", "best_config")
    (old,) = found[found["child_name"] == f"{kernel.stem}.best_config"].itertuples()
    assert (old.parent_name, old.known_by) == (kernel.name, module.KERNELS_NAME)
