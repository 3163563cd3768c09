"""SGLang's ``torch_compile_cache``, as its own backend wrote it on a CPU (tests/data/README.md says what was stood in for)."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.cli import main
from cachescope.readers.directory.place_of import place_of
from cachescope.readers.directory.vllm_places import FOLDER, PART, RANK, TREE
from tests.conftest import Archive


@pytest.fixture
def sglang(archive: Archive) -> Path:
    return archive("sglang/0.5.23")


def steps(sglang: Path) -> dict[str, dict[str, Any]]:
    return json.loads((sglang / "steps.json").read_text())["steps"]


def test_all_files_are_known(sglang: Path) -> None:
    scope = cachescope.read(sglang / "cache")
    assert scope.problems.empty
    assert set(scope.entries["status"]) == {"ok"}
    # One graph for each step: of the compiler "eager" nothing else is stored.
    kinds = Counter(scope.entries["cache"])
    assert (kinds["vllm_graph"], kinds["vllm_handles"], kinds["fxgraph"]) == (4, 1, 2)


def test_the_name_is_of_torch_and_the_device_alone(sglang: Path) -> None:
    """`InductorAdaptor.compute_hash`, by what SGLang's functions returned: another model has the same folder."""
    for name, step in steps(sglang).items():
        factors = [step["system"], bytes.fromhex(step["torch_key"])]
        own = hashlib.md5(str(factors).encode(), usedforsecurity=False).hexdigest()[:10]
        assert step["name"] == ("" if name == "eager" else own)
    folders = cachescope.read(sglang / "cache").vllm_folders
    names = {steps(sglang)["first"]["name"], "torch_compile_cache"}
    assert set(folders["folder"]) == names
    assert set(folders["name_is"]) == {"of_torch"}
    assert folders[["rank", "dp_rank", "prefix"]].drop_duplicates().to_numpy().tolist() == [
        [0, 0, "backbone"]
    ]


def test_what_it_compiled_are_entries_of_torch(sglang: Path) -> None:
    """The keys that SGLang says it stored."""
    entries = cachescope.read(sglang / "cache").entries
    keys = {handle[0] for step in steps(sglang).values() for _, handle in step["handles"]}
    assert set(entries.loc[entries["cache"] == "fxgraph", "cache_key"]) == keys
    (detail,) = entries.loc[entries["cache"] == "vllm_handles", "detail"]
    assert detail == "1 artifact of 1 subgraph: inductor"


def test_every_folder_is_known_by_itself(sglang: Path) -> None:
    tree = sglang / "cache" / "torch_compile_cache"
    folder = tree / steps(sglang)["first"]["name"]
    for path, place in {
        tree: TREE,
        folder: FOLDER,
        folder / "rank_0_0": RANK,
        folder / "rank_0_0" / "backbone": PART,
        tree / "rank_0_0": RANK,
    }.items():
        assert place_of(str(path)) is place, path


def test_explain_says_what_the_name_is_made_of(sglang: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(sglang / "cache")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "SGLang: 2 folders" in text
    assert "makes its name of torch, the GPU and CUDA alone" in text
    assert "vLLM" not in text


@pytest.mark.parametrize("content", ["{", "print(1)", "[]", "{1: 2}", "{(1, 2): 3}"])
def test_damaged_handles_are_damaged(content: str, tmp_path: Path) -> None:
    part = tmp_path / "torch_compile_cache" / "0123456789" / "rank_0_0" / "backbone"
    part.mkdir(parents=True)
    (part / "sglang_compile_cache.py").write_text(content)
    scope = cachescope.read(tmp_path)
    (row,) = scope.entries.to_dict("records")
    assert (row["status"], len(scope.problems)) == ("damaged", 1)
    assert row["damage"].startswith("sglang_compile_cache.py ")
