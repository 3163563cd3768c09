"""Links in directories that real torch filled: entries to code, kernels, compiled files, best configurations and Triton directories."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.directory import links as module
from cachescope.analysis.directory.unused import OTHER_PATHS
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.directory.places import triton_hash
from tests.conftest import Directory, Recording

TORCHES = ["torch_2.13.0", "torch_2.15.0", "torch_2.10.0", "torch_2.6.0"]


def with_names(scope: cachescope.Scope) -> pd.DataFrame:
    names = scope.entries.set_index("entry")["path"].map(lambda path: Path(path).name)
    links = scope.links
    return links.assign(parent_name=links["parent"].map(names), child_name=links["child"].map(names))


@pytest.mark.slow
@pytest.mark.parametrize("name", TORCHES)
def test_a_wrapper_leads_to_the_compiled_files_of_its_kernels(name: str, directory: Directory) -> None:
    links = with_names(cachescope.read(directory(name) / "cache"))
    kernels = links[links["known_by"].str.startswith(module.CPP_SOURCE)]
    assert len(kernels)
    assert (kernels["known_by"] == module.CPP_SOURCE).all(), "each was compiled by one command"
    compiled = links[links["known_by"] == module.SAME_NAME]
    for link in compiled.itertuples():
        assert link.child_name.partition(".")[0] == link.parent_name.partition(".")[0]
    with_library = set(compiled[compiled["child_name"].str.endswith(".so")]["parent"])
    # The recorded 2.6 failed to compile the kernel that max-autotune chose.
    assert len(set(kernels["child"]) - with_library) == (1 if name == "torch_2.6.0" else 0)
    assert not (links["known_by"] == module.NOT_THERE).any()


def test_older_kernels_include_a_header_of_the_directory(directory: Directory) -> None:
    cache = directory("torch_2.6.0") / "cache"
    links = with_names(cachescope.read(cache))
    included = links[links["known_by"] == module.INCLUDE]
    for link in included.itertuples():
        (source,) = cache.glob(f"??/{link.parent_name}")
        assert link.child_name in source.read_text()
    heads = [line for file in cache.glob("??/c*.cpp") for line in file.read_text().split("\n")[:3]]
    assert len(included) == sum('.h"' in line for line in heads)


def choices(folder: Path) -> list[str]:
    provenance = json.loads((folder / "provenance.json").read_text())
    (step,) = [step for step in provenance["steps"] if step["step"].endswith("max_autotune")]
    timings: dict[str, Any] = step["truth"]["cache"]
    return [
        choice
        for by_inputs in timings.values()
        for by_precision in by_inputs.values()
        for by_choice in by_precision.values()
        for choice in by_choice
    ]


@pytest.mark.parametrize("name", TORCHES)
def test_timings_lead_to_the_code_that_was_measured(name: str, directory: Directory) -> None:
    scope = cachescope.read(directory(name) / "cache")
    links = with_names(scope)
    measured = links[links["parent_kind"] == "autotune"]
    assert set(measured["known_by"]) == {module.CHOICE}
    # Two layers: a template of its own for each, and the library's, which has no file.
    templates = {one.rpartition("-")[2] for one in choices(directory(name)) if "_mkl_linear" not in one}
    assert len(templates) == 2
    assert set(measured["child_key"]) == templates
    assert measured["child_name"].str.endswith(".cpp").all()
    assert not set(measured["child"]) & set(scope.orphans["entry"])


A_KEY, B_KEY = (f"c{letter * 51}" for letter in "ab")


def row(number: int, cache: str = "code", key: str | None = A_KEY, **told: Any) -> EntryRow:
    made = {"entry": number, "cache": cache, "cache_key": key, "root": "/c", "path": f"/c/aa/{key}.py"}  # fmt: skip
    return EntryRow(**(made | told))


def timed(number: int, **told: Any) -> EntryRow:
    return row(number, "autotune", None, **{"path": "/c/cache/x", **told})


@pytest.mark.parametrize(("rows", "timings", "wanted"), [
    ([row(0), timed(1)], [(1, f"triton_mm-{A_KEY}")], [(1, [0])]),
    ([row(0), timed(1)], [(1, A_KEY)], [(1, [0])]),
    # A choice of a library has the hash of its name, and no file.
    ([row(0), timed(1)], [(1, f"mkl-{B_KEY}")], []),
    ([row(0), timed(1)], [(1, "mm"), (1, f"{A_KEY}-mm"), (1, f"mm{A_KEY}")], []),
    ([row(0), timed(1, root="/d")], [(1, A_KEY)], []),
    # Each code once for each file of timings.
    ([row(0), timed(1), timed(2)], [(1, A_KEY), (1, f"x-{A_KEY}"), (2, A_KEY)], [(1, [0]), (2, [0])]),
    # What is no file of timings that is there names nothing.
    ([row(0), timed(1)], [(0, A_KEY), (7, A_KEY)], []),
    ([row(0), timed(1, status="temporary")], [(1, A_KEY)], []),
    # C++ that begins with that text, where there is no Python of that name.
    ([row(0, key=B_KEY, path="/c/bb/x.cpp", kernel_keys=(A_KEY,)), timed(1)], [(1, A_KEY)], [(1, [0])]),
    ([row(0, key=B_KEY, path="/c/bb/x.cpp", kernel_keys=(A_KEY,)), row(1), timed(2)], [(2, A_KEY)], [(2, [1])]),
])  # fmt: skip
def test_links_of_timings(
    rows: list[EntryRow], timings: list[tuple[int, str]], wanted: list[tuple[int, list[int]]]
) -> None:
    found = list(module.choice_links(module.Files(rows), timings))
    of_parents = [(parent, child) for parent, children in wanted for child in children]
    assert [(link.parent, link.child) for link in found] == of_parents
    ends = {(link.child_kind, link.child_key, link.known_by) for link in found}
    assert ends <= {("code", A_KEY, module.CHOICE)}


@pytest.fixture
def cache(recording: Recording, tmp_path: Path) -> Path:
    """A directory of forward and backward graphs under two configs, to take files from."""
    return Path(shutil.copytree(recording("2.13.0", "training") / "cache", tmp_path / "cache"))


def test_every_layer_is_joined_to_the_next(cache: Path) -> None:
    scope = cachescope.read(cache)
    links = scope.links
    entries = scope.entries.set_index("entry")
    aot = links[links["parent_kind"] == "aotautograd"]
    # Two AOTAutograd entries, each with a forward and a backward graph.
    assert len(aot) == 4
    of_fx = entries.loc[entries["cache"] == "fxgraph", "cache_key"]
    assert set(entries.loc[aot["child"], "cache_key"]) == set(of_fx)
    code = links[links["parent_kind"] == "fxgraph"]
    assert len(code) == 4
    for link in code.itertuples():
        assert Path(entries.loc[link.child, "path"]).stem == link.child_key
    assert scope.orphans.empty


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
    ends = {"parent_name": links["parent"].map(names), "child_name": links["child"].map(names)}
    return links.assign(**ends, hash=links["child"].map(entries["cache_key"]))


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
    assert len(scope.links[scope.links["known_by"] == module.TRITON_SOURCE]) == 3
    # The directory lies where it was unpacked, and Triton writes absolute paths.
    assert set(scope.orphans["reason"]) == {OTHER_PATHS}
    assert len(scope.orphans) == 5
    assert scope.removable.empty
