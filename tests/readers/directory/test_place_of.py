"""Which place of a cache a path is, by names alone: a few made files, and what they tell; one line for each branch."""

import os
from pathlib import Path

import pytest

from cachescope.readers.directory import place_of as module
from cachescope.readers.directory import vllm_places
from cachescope.readers.directory.place_of import holds_file_of, is_linked_root, place_of, place_of_file
from cachescope.readers.directory.places import (
    AOT_GRAPHS,
    AOT_KEY_FOLDER,
    CODE_FOLDER,
    DYNAMO,
    FX_GRAPHS,
    FX_KEY_FOLDER,
    LOCKS,
    MEMOIZED,
    ROOT,
    SYSTEM_CACHE,
    TRITON_DEVICES,
    TRITON_FOLDER,
    TRITON_KEYS,
    Place,
)
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


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        # One such folder says what is around it.
        ([f"{FX}/"], FX_GRAPHS),
        ([f"{AOT_KEY}/"], AOT_GRAPHS),
        ([f"{TRITON}/"], TRITON_KEYS),
        (["on_disk_cache/"], SYSTEM_CACHE),
        (["inductor_on_disk_cache/"], SYSTEM_CACHE),
        (["dcache_dump/"], SYSTEM_CACHE),
        (["should_pad/"], SYSTEM_CACHE),
        # A folder is no file of that name, a file no folder.
        ([FX], None),
        (["should_pad"], None),
        ([f"{HEX32}/"], None),
        # One such file.
        ([f"{CODE}.py"], CODE_FOLDER),
        ([f"{CODE}.so.lock"], None),
        ([f"{CODE}.lock"], LOCKS),
        ([f"{CODE}..py"], None),
        ([f"{HEX64}.best_config"], CODE_FOLDER),
        ([HEX64], SYSTEM_CACHE),
        (["code_state_job.pkl"], DYNAMO),
        (["memoizer_cache.json"], ROOT),
        ([f"configs_{HEX8}.json"], ROOT),
        ([HEX32], MEMOIZED),
        (["dir.lock"], MEMOIZED),
        (["notes.txt", "a/b/c/notes.txt"], None),
        ([], None),
        # A place by its name and by what is in it.
        ([f"fxgraph/{FX}/"], ROOT),
        ([f"fxgraph/aa/{FX}/"], ROOT),
        ([f"aa/{FX}/"], FX_GRAPHS),
        ([f"aotautograd/{AOT_KEY}/"], ROOT),
        ([f"fxgraph/{AOT_KEY}/"], None),
        ([f"aotautograd/{FX}/"], None),
        ([f"ab/{CODE}.py"], ROOT),
        ([f"abc/{CODE}.py"], None),
        ([f"triton/{TRITON}/"], ROOT),
        ([f"triton/0/{TRITON}/"], ROOT),
        ([f"0/{TRITON}/"], TRITON_DEVICES),
        ([f"x/{TRITON}/"], None),
        ([f"cache/{HEX64}"], ROOT),
        ([f"locks/{CODE}.lock"], ROOT),
        ([f"precompiled_headers/{CODE}.h"], ROOT),
        ([f"precompiled_headers/{CODE}.lock"], ROOT),
        (["dynamo/code_state_x.pkl"], ROOT),
        ([f"my_function/{HEX32}"], SYSTEM_CACHE),
        # Beside what is no part of a cache, a folder `cache` says nothing: torch writes one into /tmp itself.
        ([f"cache/{HEX64}", "notes.txt"], None),
        ([f"cache/{HEX64}", "fxgraph/"], ROOT),
        # Not deeper than four folders.
        ([f"fxgraph/aa/{FX}/entry"], ROOT),
    ],
)  # fmt: skip
def test_what_a_folder_is(files: list[str], wanted: Place | None, tmp_path: Path) -> None:
    assert place_of(str(made(tmp_path / "some", *files))) is wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [(FX, FX_KEY_FOLDER), (AOT_KEY, AOT_KEY_FOLDER), (TRITON, TRITON_FOLDER), ("fxgraph", None)],
)
def test_an_empty_folder_is_what_its_own_key_says(name: str, wanted: Place | None, tmp_path: Path) -> None:
    folder = made(tmp_path / name)
    assert place_of(str(folder)) is wanted
    assert place_of(str(folder) + "/") is wanted


@pytest.mark.parametrize(("levels", "wanted"), [(1, None), (2, None), (3, ROOT), (4, ROOT)])
def test_how_deep_is_looked(levels: int, wanted: Place | None, tmp_path: Path) -> None:
    assert place_of(str(made(tmp_path / "c", f"fxgraph/aa/{FX}/")), levels) is wanted


def test_a_thousand_names_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_AT", 0)
    assert place_of(str(made(tmp_path / "c", f"{CODE}.py"))) is None
    assert not holds_file_of(str(tmp_path / "c"), CODE_FOLDER)
    monkeypatch.setattr(module, "_LOOK_AT", 1)
    assert place_of(str(tmp_path / "c")) is CODE_FOLDER
    assert holds_file_of(str(tmp_path / "c"), CODE_FOLDER)
    for name in (f"{CODE}.so", "notes"):
        assert not holds_file_of(str(made(tmp_path / name, name)), CODE_FOLDER)


@pytest.mark.parametrize(
    ("path", "place", "kind"),
    [
        (f"x/{FX}/entry", FX_KEY_FOLDER, "fxgraph"),
        (f"x/{AOT_KEY}/entry", AOT_KEY_FOLDER, "aotautograd"),
        (f"x/{TRITON}/k.json", TRITON_FOLDER, "triton"),
        (f"x/cache/{HEX64}", SYSTEM_CACHE, "autotune"),
        ("x/cache/notes", None, None),
        ("cache/dcache_dump/imc.save", "imc", "imc"),
        (f"cache/on_disk_cache/{HEX32}", "on_disk_cache", "on_disk_cache"),
        (f"cache/function/{HEX32}", MEMOIZED, "caching_package"),
        # A root may be named `cache`.
        (f"cache/ab/{CODE}.py", CODE_FOLDER, "code"),
        (f"other/function/{HEX32}", None, None),
        ("x/dynamo/code_state_a.pkl", DYNAMO, "pgo"),
        ("x/dynamo/notes", None, None),
        (f"x/y/{CODE}.py", CODE_FOLDER, "code"),
        # Only a name with a hash tells the place of code.
        ("x/y/kernel.py", None, None),
        ("x/y/memoizer_cache.json", ROOT, "memoizer_dump"),
        (f"x/y/configs_{HEX8}.json", ROOT, "cutlass_configs"),
        # A root has locks as well, and so has everybody.
        ("x/y/any.lock", None, None),
        ("x/y/notes", None, None),
    ],
)  # fmt: skip
def test_what_a_single_file_is(path: str, place: Place | str | None, kind: str | None) -> None:
    found = place_of_file(f"/made/up/{path}")
    if found is None:
        assert (place, kind) == (None, None)
        return
    assert found[0] is place if isinstance(place, Place) else found[0].kind == place
    assert found[1].kind == kind


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ([f"fxgraph/{FX}/"], True),
        ([f"fxgraph/aa/{FX}/"], True),
        ([f"aotautograd/{AOT_KEY}/"], True),
        # What other places hold is not asked for: the link may lead anywhere.
        ([f"cache/{HEX64}", f"ab/{CODE}.py"], False),
        ([f"fxgraph/{CODE}.py"], False),
        ([f"fxgraph/x/{FX}/"], False),
        ([f"deep/fxgraph/{FX}/"], False),
        ([], False),
    ],
)
def test_whether_a_link_leads_to_a_cache(files: list[str], wanted: bool, tmp_path: Path) -> None:
    assert is_linked_root(str(made(tmp_path / "c", *files))) is wanted


def test_links_by_torchs_names_are_looked_behind_and_no_others(tmp_path: Path) -> None:
    there = made(tmp_path / "there", f"aa/{FX}/", f"function/{HEX32}")
    for name, wanted in (("fxgraph", ROOT), ("function", None), ("notes", None)):
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
    for number, (target, wanted) in enumerate([("folder", FX_GRAPHS), ("file", None), ("nowhere", None)]):
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
    for name, wanted in (("fxgraph", ROOT), ("aotautograd", ROOT), ("shut", None)):
        folder = made(tmp_path / f"of_{name}", f"{name}/")
        assert place_of(str(folder)) is wanted
    assert place_of(str(tmp_path / "of_shut" / "shut")) is None
    # A shut folder beside others hides nothing of them.
    assert place_of(str(made(tmp_path / "both", "shut/", f"{CODE}.py"))) is CODE_FOLDER
    assert place_of(str(made(tmp_path / "deep", "shut/", f"ab/{CODE}.py"))) is ROOT
    assert place_of(str(tmp_path / "absent")) is None
    assert not holds_file_of(str(tmp_path / "of_shut" / "shut"), CODE_FOLDER)


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
def test_what_a_folder_of_vllm_is(name: str, files: list[str], wanted: Place | None, tmp_path: Path) -> None:
    (tmp_path / name).mkdir(parents=True)
    assert vllm_place_of(str(made(tmp_path / name, *files))) is wanted


def test_a_folder_that_is_absent_or_has_too_many_names_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert vllm_place_of(str(tmp_path / "absent")) is None
    folder = str(made(tmp_path / "part", FACTORS))
    monkeypatch.setattr(vllm_places, "_LOOK_AT", 0)
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
def test_what_a_single_file_of_vllm_is(path: str, place: Place | None, kind: str | None) -> None:
    found = vllm_place_of_file(f"/made/up/{path}")
    assert (place, kind) == (None, None) if found is None else (found[0], found[1].kind) == (place, kind)
