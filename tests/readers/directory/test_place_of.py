"""Which place of a cache a path is, by names alone: a few made files, and what they tell; one line for each branch."""

import os
from pathlib import Path

import pytest

from cachescope.readers.directory import place_of as module
from cachescope.readers.directory import places, vllm_places
from cachescope.readers.directory.place_of import holds_file_of, is_linked_root, place_of, place_of_file
from cachescope.readers.directory.vllm_places import vllm_place_of, vllm_place_of_file

FX, AOT_KEY = "f" + "a" * 51, "a" + "b" * 51
CODE = "c" + "d" * 51
TRITON = "A" * 52
HEX8, HEX32, HEX64 = "0" * 8, "1" * 32, "2" * 64


def made(folder: Path, *files: str) -> Path:
    """Files, and folders where a name ends with a slash."""
    folder.mkdir(exist_ok=True)
    for file in files:
        path = folder / file
        (path if file.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not file.endswith("/"):
            path.write_text("")
    return folder


@pytest.mark.parametrize(("files", "wanted"), [(files, wanted) for wanted, trees in [
    # One such folder says what is around it.
    (places.FX_GRAPHS, [[f"{FX}/"]]),
    (places.AOT_GRAPHS, [[f"{AOT_KEY}/"]]),
    (places.TRITON_KEYS, [[f"{TRITON}/"]]),
    (places.SYSTEM_CACHE, [["on_disk_cache/"], ["inductor_on_disk_cache/"], ["dcache_dump/"],
     ["should_pad/"]]),
    # A folder is no file of that name, a file no folder.
    (None, [[FX], ["should_pad"], [f"{HEX32}/"]]),
    # One such file.
    (places.CODE_FOLDER, [[f"{CODE}.py"], [f"{HEX64}.best_config"]]),
    (None, [[f"{CODE}.so.lock"], [f"{CODE}..py"], ["notes.txt", "a/b/c/notes.txt"], []]),
    (places.LOCKS, [[f"{CODE}.lock"]]),
    (places.SYSTEM_CACHE, [[HEX64]]),
    (places.DYNAMO, [["code_state_job.pkl"], ["code_state_a/b.pkl"]]),
    (places.ROOT, [["memoizer_cache.json"], [f"configs_{HEX8}.json"]]),
    (places.MEMOIZED, [[HEX32], ["dir.lock"]]),
    # A place by its name and by what is in it.
    (places.ROOT, [[f"fxgraph/{FX}/"], [f"fxgraph/aa/{FX}/"], [f"aotautograd/{AOT_KEY}/"], [f"ab/{CODE}.py"],
     [f"triton/{TRITON}/"], [f"triton/0/{TRITON}/"], [f"cache/{HEX64}"], [f"locks/{CODE}.lock"],
     [f"precompiled_headers/{CODE}.h"], [f"precompiled_headers/{CODE}.lock"], ["dynamo/code_state_x.pkl"],
     ["dynamo/code_state_a/b.pkl"]]),
    (places.FX_GRAPHS, [[f"aa/{FX}/"]]),
    (None, [[f"fxgraph/{AOT_KEY}/"], [f"aotautograd/{FX}/"], [f"abc/{CODE}.py"], [f"x/{TRITON}/"]]),
    (places.TRITON_DEVICES, [[f"0/{TRITON}/"]]),
    (places.SYSTEM_CACHE, [[f"my_function/{HEX32}"]]),
    # Beside what is no part of a cache, a folder `cache` says nothing: torch writes one into /tmp itself.
    (None, [[f"cache/{HEX64}", "notes.txt"]]),
    (places.ROOT, [[f"cache/{HEX64}", "fxgraph/"]]),
    # Not deeper than four folders.
    (places.ROOT, [[f"fxgraph/aa/{FX}/entry"]]),
] for files in trees])  # fmt: skip
def test_what_a_folder_is(files: list[str], wanted: places.Place | None, tmp_path: Path) -> None:
    assert place_of(str(made(tmp_path / "some", *files))) is wanted


@pytest.mark.parametrize(("name", "wanted"), [
    (FX, places.FX_KEY_FOLDER),
    (AOT_KEY, places.AOT_KEY_FOLDER),
    (TRITON, places.TRITON_FOLDER),
    ("fxgraph", None),
])  # fmt: skip
def test_an_empty_folder_is_what_its_key_says(name: str, wanted: places.Place | None, tmp_path: Path) -> None:
    folder = made(tmp_path / name)
    assert place_of(str(folder)) is wanted
    assert place_of(str(folder) + "/") is wanted


@pytest.mark.parametrize(("levels", "wanted"), [(1, None), (2, None), (3, places.ROOT), (4, places.ROOT)])
def test_how_deep_is_looked(
    levels: int, wanted: places.Place | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEVELS", levels)
    assert place_of(str(made(tmp_path / "c", f"fxgraph/aa/{FX}/"))) is wanted


def test_a_thousand_names_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_LOOK_AT", 0)
    assert place_of(str(made(tmp_path / "c", f"{CODE}.py"))) is None
    assert not holds_file_of(str(tmp_path / "c"), places.CODE_FOLDER)
    monkeypatch.setattr(places, "_LOOK_AT", 1)
    assert place_of(str(tmp_path / "c")) is places.CODE_FOLDER
    assert holds_file_of(str(tmp_path / "c"), places.CODE_FOLDER)
    for name in (f"{CODE}.o", "notes"):
        assert not holds_file_of(str(made(tmp_path / name, name)), places.CODE_FOLDER)


@pytest.mark.parametrize(("path", "place", "kind"), [
    (f"x/{FX}/entry", places.FX_KEY_FOLDER, "fxgraph"),
    (f"x/{AOT_KEY}/entry", places.AOT_KEY_FOLDER, "aotautograd"),
    (f"x/{TRITON}/k.json", places.TRITON_FOLDER, "triton"),
    (f"x/cache/{HEX64}", places.SYSTEM_CACHE, "autotune"),
    ("x/cache/notes", None, None),
    ("cache/dcache_dump/imc.save", "imc", "imc"),
    (f"cache/on_disk_cache/{HEX32}", "on_disk_cache", "on_disk_cache"),
    (f"cache/function/{HEX32}", places.MEMOIZED, "caching_package"),
    # A root may be named `cache`.
    (f"cache/ab/{CODE}.py", places.CODE_FOLDER, "code"),
    (f"other/function/{HEX32}", None, None),
    ("x/dynamo/code_state_a.pkl", places.DYNAMO, "pgo"),
    ("x/dynamo/notes", None, None),
    (f"x/y/{CODE}.py", places.CODE_FOLDER, "code"),
    # Only a name with a hash tells the place of code.
    ("x/y/kernel.py", None, None),
    ("x/y/memoizer_cache.json", places.ROOT, "memoizer_dump"),
    (f"x/y/configs_{HEX8}.json", places.ROOT, "cutlass_configs"),
    # A root has locks as well, and so has everybody.
    ("x/y/any.lock", None, None),
    ("x/y/notes", None, None),
])  # fmt: skip
def test_what_a_single_file_is(path: str, place: places.Place | str | None, kind: str | None) -> None:
    found = place_of_file(f"/made/up/{path}")
    if found is None:
        assert (place, kind) == (None, None)
        return
    assert found[0] is place if isinstance(place, places.Place) else found[0].kind == place
    assert found[1].kind == kind


@pytest.mark.parametrize(("files", "wanted"), [(files, wanted) for wanted, trees in [
    (True, [[f"fxgraph/{FX}/"], [f"fxgraph/aa/{FX}/"], [f"aotautograd/{AOT_KEY}/"]]),
    # What other places hold is not asked for: the link may lead anywhere.
    (False, [[f"cache/{HEX64}", f"ab/{CODE}.py"], [f"fxgraph/{CODE}.py"], [f"fxgraph/x/{FX}/"],
     [f"deep/fxgraph/{FX}/"], []]),
] for files in trees])  # fmt: skip
def test_whether_a_link_leads_to_a_cache(files: list[str], wanted: bool, tmp_path: Path) -> None:
    assert is_linked_root(str(made(tmp_path / "c", *files))) is wanted


def test_links_by_torchs_names_are_looked_behind_and_no_others(tmp_path: Path) -> None:
    there = made(tmp_path / "there", f"aa/{FX}/", f"function/{HEX32}")
    for name, wanted in (("fxgraph", places.ROOT), ("function", None), ("notes", None)):
        folder = made(tmp_path / f"of_{name}")
        (folder / name).symlink_to(there)
        assert place_of(str(folder)) is wanted, name
    # Behind a link, what may have any name says nothing.
    folder = made(tmp_path / "of_functions")
    (folder / "cache").symlink_to(made(tmp_path / "c", f"function/{HEX32}"))
    assert place_of(str(folder)) is None
    (folder / "lost").symlink_to(tmp_path / "nowhere")
    (folder / "fxgraph").symlink_to(tmp_path / "nowhere")
    assert place_of(str(folder)) is None


def test_a_link_with_a_key_for_its_name_is_a_folder_only_if_it_leads_to_one(tmp_path: Path) -> None:
    for number, (target, wanted) in enumerate(
        [("folder", places.FX_GRAPHS), ("file", None), ("nowhere", None)]
    ):
        made(tmp_path, "folder/", "file")
        folder = made(tmp_path / f"c{number}")
        (folder / FX).symlink_to(tmp_path / target)
        assert place_of(str(folder)) is wanted, target


def test_a_folder_that_may_not_be_listed_is_known_by_its_name_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not by chmod: the tests may run as root, who may read everything.
    real = os.scandir

    def refuse(path: str) -> object:
        if Path(path).name in ("fxgraph", "aotautograd", "shut"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    for name, wanted in (("fxgraph", places.ROOT), ("aotautograd", places.ROOT), ("shut", None)):
        folder = made(tmp_path / f"of_{name}", f"{name}/")
        assert place_of(str(folder)) is wanted
    assert place_of(str(tmp_path / "of_shut" / "shut")) is None
    # A shut folder beside others hides nothing of them.
    assert place_of(str(made(tmp_path / "both", "shut/", f"{CODE}.py"))) is places.CODE_FOLDER
    assert place_of(str(made(tmp_path / "deep", "shut/", f"ab/{CODE}.py"))) is places.ROOT
    assert place_of(str(tmp_path / "absent")) is None
    assert not holds_file_of(str(tmp_path / "of_shut" / "shut"), places.CODE_FOLDER)


KEY, NAME = "0" * 64, "0123456789"
FACTORS, HANDLES = "cache_key_factors.json", "vllm_compile_cache.py"
SGLANG = "computation_graph_1795348800.25.py"


@pytest.mark.parametrize(("name", "files", "wanted"), [(name, files, wanted) for name, wanted, trees in [
    ("backbone", vllm_places.PART, [[FACTORS], [HANDLES, "notes"], ["sglang_compile_cache.py"], [SGLANG]]),
    ("backbone", None, [["computation_graph.py"]]),
    ("rank_0_0", vllm_places.RANK, [[FACTORS], [f"backbone/{FACTORS}"],
     [f"backbone/{FACTORS}", "eagle_head/"]]),
    ("rank_0_0", None, [["backbone/notes", "model"]]),
    (f"{KEY}/rank_0_0", vllm_places.AOT_RANK, [["model"]]),
    (f"{KEY}/rank_0_0", None, [["notes"]]),
    (f"{NAME}/rank_0_0", None, [["model"]]),
    (NAME, vllm_places.FOLDER, [[f"rank_0_0/backbone/{FACTORS}"]]),
    # A rank may have written nothing yet.
    (NAME, vllm_places.FOLDER, [[f"rank_0_0/backbone/{FACTORS}", "rank_1_0/"],
     ["rank_0_0/", f"rank_1_0/backbone/{FACTORS}"]]),
    (NAME, None, [["rank_0_0/notes"]]),
    (KEY, vllm_places.AOT_FOLDER, [["rank_0_0/model"], ["rank_0_0/", "rank_1_0/model"]]),
    (KEY, None, [["rank_0_0/notes"]]),
    ("other", None, [["rank_0_0/model"]]),
    ("aot", vllm_places.AOT, [[f"{KEY}/rank_0_0/model"], [f"{KEY}/rank_0_0/model", f"{'1' * 64}/", "notes"]]),
    ("aot", None, [[f"{KEY}/rank_0_0/notes"]]),
    ("tree", vllm_places.TREE, [[f"{NAME}/rank_0_0/backbone/{FACTORS}"],
     [f"{NAME}/rank_0_0/backbone/{FACTORS}", f"{'a' * 10}/", "notes"],
     [f"torch_aot_compile/{KEY}/rank_0_0/model"]]),
    # Beside a folder of an engine, that of a rank is of the tree.
    ("tree", vllm_places.TREE, [[f"{NAME}/rank_0_0/backbone/{FACTORS}", f"rank_0_0/backbone/{FACTORS}"]]),
    ("tree", None, [[f"other/{KEY}/rank_0_0/model"], [f"not_a_hash/rank_0_0/backbone/{FACTORS}"],
     [f"{NAME}/"], ["torch_aot_compile/notes"], []]),
] for files in trees])  # fmt: skip
def test_what_a_folder_of_vllm_is(
    name: str, files: list[str], wanted: places.Place | None, tmp_path: Path
) -> None:
    (tmp_path / name).mkdir(parents=True)
    folder = str(made(tmp_path / name, *files))
    assert vllm_place_of(folder) is wanted
    # Some of these names could be those of Triton's keys.
    assert wanted in (None, place_of(folder))


def test_a_folder_that_is_absent_or_has_too_many_names_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert vllm_place_of(str(tmp_path / "absent")) is None
    folder = str(made(tmp_path / "part", FACTORS))
    monkeypatch.setattr(places, "_LOOK_AT", 0)
    assert vllm_place_of(folder) is None


@pytest.mark.parametrize(("path", "place", "kind"), [
    (f"x/{FACTORS}", vllm_places.PART, "vllm_factors"),
    (f"x/{HANDLES}", vllm_places.PART, "vllm_handles"),
    ("x/artifact_compile_range_1_8_subgraph_0", vllm_places.PART, "vllm_artifact"),
    ("x/artifact_shape_None_subgraph_25", vllm_places.PART, "vllm_artifact"),
    # Others have files of that name.
    ("x/computation_graph.py", None, None),
    (f"{KEY}/rank_0_0/model", vllm_places.AOT_RANK, "vllm_aot"),
    (f"{KEY}/rank_0_0/notes", None, None),
    (f"{KEY}/other/model", None, None),
    (f"{NAME}/rank_0_0/model", None, None),
])  # fmt: skip
def test_what_a_single_file_of_vllm_is(path: str, place: places.Place | None, kind: str | None) -> None:
    found = vllm_place_of_file(f"/made/up/{path}")
    assert (place, kind) == (None, None) if found is None else (found[0], found[1].kind) == (place, kind)
