"""Which folder of vLLM a folder is, by the names in and around it: a few made files, one line for each branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachescope.readers.directory import vllm_places as module
from cachescope.readers.directory.places import Place
from cachescope.readers.directory.vllm_places import (
    AOT,
    AOT_FOLDER,
    AOT_RANK,
    FOLDER,
    PART,
    RANK,
    TREE,
    vllm_place_of,
    vllm_place_of_file,
)
from tests.readers.directory.test_place_of import made

KEY, NAME = "0" * 64, "0123456789"
FACTORS, HANDLES = "cache_key_factors.json", "vllm_compile_cache.py"
SGLANG = "computation_graph_1795348800.25.py"


@pytest.mark.parametrize(
    ("name", "files", "wanted"),
    [
        ("backbone", [FACTORS], PART),
        ("backbone", [HANDLES, "notes"], PART),
        ("backbone", ["sglang_compile_cache.py"], PART),
        ("backbone", [SGLANG], PART),
        ("backbone", ["computation_graph.py"], None),
        ("rank_0_0", [FACTORS], RANK),
        ("rank_0_0", [f"backbone/{FACTORS}"], RANK),
        ("rank_0_0", [f"backbone/{FACTORS}", "eagle_head/"], RANK),
        ("rank_0_0", ["backbone/notes", "model"], None),
        (f"{KEY}/rank_0_0", ["model"], AOT_RANK),
        (f"{KEY}/rank_0_0", ["notes"], None),
        (f"{NAME}/rank_0_0", ["model"], None),
        (NAME, [f"rank_0_0/backbone/{FACTORS}"], FOLDER),
        # A rank may have written nothing yet.
        (NAME, [f"rank_0_0/backbone/{FACTORS}", "rank_1_0/"], FOLDER),
        (NAME, ["rank_0_0/", f"rank_1_0/backbone/{FACTORS}"], FOLDER),
        (NAME, ["rank_0_0/notes"], None),
        (KEY, ["rank_0_0/model"], AOT_FOLDER),
        (KEY, ["rank_0_0/", "rank_1_0/model"], AOT_FOLDER),
        (KEY, ["rank_0_0/notes"], None),
        ("other", ["rank_0_0/model"], None),
        ("aot", [f"{KEY}/rank_0_0/model"], AOT),
        ("aot", [f"{KEY}/rank_0_0/model", f"{'1' * 64}/", "notes"], AOT),
        ("aot", [f"{KEY}/rank_0_0/notes"], None),
        ("tree", [f"{NAME}/rank_0_0/backbone/{FACTORS}"], TREE),
        ("tree", [f"{NAME}/rank_0_0/backbone/{FACTORS}", f"{'a' * 10}/", "notes"], TREE),
        ("tree", [f"torch_aot_compile/{KEY}/rank_0_0/model"], TREE),
        # Beside a folder of an engine, that of a rank is of the tree.
        ("tree", [f"{NAME}/rank_0_0/backbone/{FACTORS}", f"rank_0_0/backbone/{FACTORS}"], TREE),
        ("tree", [f"other/{KEY}/rank_0_0/model"], None),
        ("tree", [f"not_a_hash/rank_0_0/backbone/{FACTORS}"], None),
        ("tree", [f"{NAME}/"], None),
        ("tree", ["torch_aot_compile/notes"], None),
        ("tree", [], None),
    ],
)  # fmt: skip
def test_what_a_folder_is(name: str, files: list[str], wanted: Place | None, tmp_path: Path) -> None:
    (tmp_path / name).mkdir(parents=True)
    assert vllm_place_of(str(made(tmp_path / name, *files))) is wanted


def test_a_folder_that_is_absent_or_has_too_many_names_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert vllm_place_of(str(tmp_path / "absent")) is None
    folder = str(made(tmp_path / "part", FACTORS))
    monkeypatch.setattr(module, "_LOOK_AT", 0)
    assert vllm_place_of(folder) is None


@pytest.mark.parametrize(
    ("path", "place", "kind"),
    [
        (f"x/{FACTORS}", PART, "vllm_factors"),
        (f"x/{HANDLES}", PART, "vllm_handles"),
        ("x/artifact_compile_range_1_8_subgraph_0", PART, "vllm_artifact"),
        # Others have files of that name.
        ("x/computation_graph.py", None, None),
        (f"{KEY}/rank_0_0/model", AOT_RANK, "vllm_aot"),
        (f"{KEY}/rank_0_0/notes", None, None),
        (f"{KEY}/other/model", None, None),
        (f"{NAME}/rank_0_0/model", None, None),
    ],
)
def test_what_a_single_file_is(path: str, place: Place | None, kind: str | None) -> None:
    found = vllm_place_of_file(f"/made/up/{path}")
    assert (
        found is None if place is None else found is not None and (found[0], found[1].kind) == (place, kind)
    )
