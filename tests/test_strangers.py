"""Forms of caches that strangers made on GPUs and no recording has, made here of recordings: `tests/strangers.py` asks the caches themselves."""

import json
import os
import shutil
from pathlib import Path

import pytest

import cachescope
from tests.conftest import Directory, Recording


@pytest.fixture
def triton(directory: Directory, tmp_path: Path) -> Path:
    return Path(shutil.copytree(directory("triton_kernels") / "cache_t2150", tmp_path / "work" / "cache"))


def alone(cache: Path) -> set[tuple[str, str]]:
    found = cachescope.read(cache).orphans
    return set(zip(found["cache"], found["reason"], strict=True))


@pytest.mark.parametrize("start", ["", "./", "../other/../"])
def test_relative_paths_of_triton_lead_to_the_folder_that_they_lie_in(triton: Path, start: str) -> None:
    groups = list(triton.rglob("__grp__*.json"))
    for group in groups:
        names = json.loads(group.read_text())["child_paths"]
        relative = {name: f"{start}{os.path.relpath(group.parent / name, triton.parent)}" for name in names}
        group.write_text(json.dumps({"child_paths": relative}))
    assert groups and "triton" not in {
        kind for kind, reason in alone(triton) if "another directory" in reason
    }
    entries = cachescope.read(triton).entries
    details = entries.loc[entries["path"].isin(list(map(str, groups))), "detail"]
    assert all("by relative paths" in detail for detail in details)
    moved = triton.rename(triton.with_name("other"))
    assert ("triton", "its paths are those of another directory, so Triton compiles again") in alone(moved)


def test_best_configurations_at_the_root_are_those_of_a_mega_cache(triton: Path) -> None:
    for number, file in enumerate(triton.rglob("*.best_config")):
        shutil.copy(file, triton / f"{number:064x}.best_config")
    scope = cachescope.read(triton)
    assert scope.orphans["reason"].str.contains("when it loads a mega-cache").sum() == number + 1
    assert set(scope.entries["root"]) == {str(triton)}
    # Nothing else at the root tells what it is: a folder of code has such files, too.
    only = triton / "only"
    only.mkdir()
    shutil.copy(file, only)
    assert set(cachescope.read(only).entries["cache"]) == {"best_config"}


def test_a_best_configuration_belongs_to_a_kernel_in_a_wrapper(triton: Path) -> None:
    scope = cachescope.read(triton)
    files = scope.entries.set_index("entry")
    kernels = [Path(path) for path in files.loc[files["name"].notna() & (files["cache"] == "code"), "path"]]
    for kernel in kernels:
        kernel.unlink(missing_ok=True)
    shutil.rmtree(triton / "triton")  # its .ttir would name the kernel
    links = cachescope.read(triton).links.query("child_kind == 'best_config'")
    assert (
        len(links) == len(list(triton.rglob("*.best_config")))
        and links["known_by"].str.contains("in the wrapper").any()
    )
    assert "there is no kernel next to it" not in {reason for _, reason in alone(triton)}


def test_copies_of_an_entry_are_one_entry_in_several_places(recording: Recording, tmp_path: Path) -> None:
    cache = recording("2.13.0", "config_flip") / "cache"
    backbone = tmp_path / "torch_compile_cache" / "0123456789" / "rank_0_0" / "backbone"
    for number in range(3):
        shutil.copytree(cache, backbone / f"artifact_shape_None_subgraph_{number}")
    (backbone / "vllm_compile_cache.py").write_text("{}")
    one, many = cachescope.read(cache), cachescope.read(tmp_path)
    assert len(many.entries) == 3 * len(one.entries) + 1
    assert many.past_misses["verdict"].tolist() == one.past_misses["verdict"].tolist() == ["key_changed"]
    columns = [
        "cache_key",
        "guards_expr",
        "code_key",
        "kernel_keys",
        "time_taken_ns",
        "device_types",
        "fx_keys",
    ]
    assert many.entries[columns].value_counts(dropna=False).max() % 3 == 0
    explained = many.entries.drop_duplicates([*columns, "size_bytes", "cache"])
    assert len(explained) == len(one.entries.drop_duplicates([*columns, "size_bytes", "cache"])) + 1
