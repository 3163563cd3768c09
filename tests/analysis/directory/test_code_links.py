"""AOTAutograd -> FX -> wrapper -> kernels -> compiled files, and timings -> code, in directories that real torch filled."""

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.directory.linked_files import Files
from cachescope.analysis.directory.links import (
    CHOICE,
    CPP_SOURCE,
    INCLUDE,
    NOT_THERE,
    SAME_NAME,
    choice_links,
)
from cachescope.frames.directory_rows import EntryRow
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
    kernels = links[links["known_by"].str.startswith(CPP_SOURCE)]
    assert len(kernels)
    assert (kernels["known_by"] == CPP_SOURCE).all(), "each was compiled by one command"
    compiled = links[links["known_by"] == SAME_NAME]
    for link in compiled.itertuples():
        assert link.child_name.partition(".")[0] == link.parent_name.partition(".")[0]
    with_library = set(compiled[compiled["child_name"].str.endswith(".so")]["parent"])
    # The recorded 2.6 failed to compile the kernel that max-autotune chose.
    assert len(set(kernels["child"]) - with_library) == (1 if name == "torch_2.6.0" else 0)
    assert not (links["known_by"] == NOT_THERE).any()


def test_older_kernels_include_a_header_of_the_directory(directory: Directory) -> None:
    cache = directory("torch_2.6.0") / "cache"
    links = with_names(cachescope.read(cache))
    included = links[links["known_by"] == INCLUDE]
    for link in included.itertuples():
        (source,) = cache.glob(f"??/{link.parent_name}")
        assert link.child_name in source.read_text()
    assert len(included) == sum(
        '.h"' in line for file in cache.glob("??/c*.cpp") for line in file.read_text().split("\n")[:3]
    )


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
    assert set(measured["known_by"]) == {CHOICE}
    # Two layers: a template of its own for each, and the library's, which has no file.
    templates = {
        choice.rpartition("-")[2] for choice in choices(directory(name)) if "_mkl_linear" not in choice
    }
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
    found = list(choice_links(Files(rows), timings))
    assert [(link.parent.entry, [one.entry for one in link.children]) for link in found] == wanted
    assert {(link.kind, link.key, link.known_by) for link in found} <= {("code", A_KEY, CHOICE)}


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
    assert set(entries.loc[aot["child"], "cache_key"]) == set(
        entries.loc[entries["cache"] == "fxgraph", "cache_key"]
    )
    code = links[links["parent_kind"] == "fxgraph"]
    assert len(code) == 4
    for link in code.itertuples():
        assert Path(entries.loc[link.child, "path"]).stem == link.child_key
    assert scope.orphans.empty
