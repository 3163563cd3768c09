"""Files of vLLM and of SGLang: what they say, and that damaged and hostile ones are problems and nothing else.

SGLang's were written by its own backend on a CPU; tests/data/README.md says what was stood in for.
"""

import base64
import hashlib
import json
import os
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.cli import main
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import ReadFile, read_marked
from cachescope.readers.directory.cache_dir import CONTENT_READERS
from cachescope.readers.directory.place_of import place_of
from cachescope.readers.directory.vllm_places import FOLDER, PART, RANK, TREE
from cachescope.readers.reading import Reading
from cachescope.terms import VLLM_AOT, VLLM_ARTIFACT, VLLM_FACTORS, VLLM_HANDLES
from tests.conftest import Archive
from tests.vllm_folders import ENV, make_folder
from tests.vllm_recordings import ARCHIVES, VERSIONS, recorded

FACTORS = {"env": ENV, "config_hash": "a", "code_hash": "b", "compiler_hash": "c"}
ARTIFACT = "artifact_compile_range_1_8_subgraph_0"
PATH = f"/cache/torch_compile_cache/0123456789/rank_2_1/backbone/{ARTIFACT}"


def read(reader: ReadFile, data: bytes, folder: Path, name: str = ARTIFACT) -> tuple[EntryRow, Reading]:
    file = folder / name
    file.write_bytes(data)
    entry, reading = EntryRow(cache="vllm", path=PATH, root="/cache"), Reading()
    assert read_marked(reader, entry, str(file), name, reading)
    return entry, reading


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def with_checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "big") + data


def artifact(header: bytes = b"CacheCompiledArtifact", key: str = "a" * 52, blob: bytes = b"") -> bytes:
    head = sized(header) if header else b""
    return with_checksum(head + sized(b"k" * 32) + sized(base64.b64encode(key.encode())) + sized(blob))


def test_factors_know_where_they_lie(tmp_path: Path) -> None:
    _, reading = read(CONTENT_READERS[VLLM_FACTORS], json.dumps(FACTORS).encode(), tmp_path)
    (one,) = reading.vllm_factors
    assert (one.folder, one.rank, one.dp_rank, one.prefix) == ("0123456789", 2, 1, "backbone")
    assert json.loads(one.env) == ENV


@pytest.mark.parametrize("content", [
    b"", b"{", b"[]", b"{}", json.dumps({**FACTORS, "env": []}).encode(),
    json.dumps({**FACTORS, "code_hash": None}).encode(),
    json.dumps({**FACTORS, "code_hash": "x" * 1000}).encode(),
    json.dumps({**FACTORS, "env": {str(n): n for n in range(10_000)}}).encode(),
    b'{"env": {"x": ' + b"[" * 900 + b"]" * 900 + b'}, "config_hash": "a", "code_hash": "b"}',
    b" " * (5 << 20),
])  # fmt: skip
def test_factors_that_are_none_are_a_problem(content: bytes, tmp_path: Path) -> None:
    entry, reading = read(CONTENT_READERS[VLLM_FACTORS], content, tmp_path)
    assert entry.status in ("damaged", "unreadable")
    assert len(reading.problems) == 1
    assert not reading.vllm_factors


@pytest.mark.parametrize(("keys", "detail"), [
    ([((1, 8), 0, "inductor_standalone")], "1 artifact of 1 subgraph: inductor_standalone"),
    ([((1, 8), 0, "a"), ((1, 8), 1, "a"), (None, 1, "a")], "3 artifacts of 2 subgraphs: a"),
    ([((1, 8), 0, "b"), ((1, 8), 0, "a")], "2 artifacts of 1 subgraph: a, b"),
    ([((1, 8), 0, 7)], "1 artifact of 1 subgraph: "),
    ([], "0 artifacts of 0 subgraphs: "),
])  # fmt: skip
def test_handles_are_counted(keys: list[tuple[object, ...]], detail: str, tmp_path: Path) -> None:
    text = repr({key: {"cache_key": "a", "graph_handle": ("x", "/x")} for key in keys})
    entry, _ = read(CONTENT_READERS[VLLM_HANDLES], text.encode(), tmp_path)
    assert entry.detail == detail


@pytest.mark.parametrize("text", ["{(0, 'a'): 1}", "{((1, 8), 0, 'a', 1): 1}", "{'key': 1}", "{'abc': 1}"])
def test_keys_that_are_not_of_vllm_are_damage(text: str, tmp_path: Path) -> None:
    entry, _ = read(CONTENT_READERS[VLLM_HANDLES], text.encode(), tmp_path)
    assert entry.damage == f"{ARTIFACT} has a key that is not of vLLM"


@pytest.mark.parametrize("text", [
    "__import__('os').system('touch {}')", "{{(1, 2, 'x'): open('{}', 'w')}}", "import os\nos.mkdir('{}')",
    "[1]", "{{1: 2}}", "(" * 100_000, "{{" * 300, "\x00", "{{[]: 1}}",
])  # fmt: skip
def test_handles_are_never_executed(text: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    entry, reading = read(CONTENT_READERS[VLLM_HANDLES], text.format(made).encode(), tmp_path)
    assert entry.status == "damaged"
    assert len(reading.problems) == 1
    assert not made.exists()


def test_handles_beyond_any_size_are_not_read(tmp_path: Path) -> None:
    entry, _ = read(CONTENT_READERS[VLLM_HANDLES], b"{" + b" " * (3 << 20) + b"}", tmp_path)
    assert entry.status == "unreadable"


@pytest.mark.parametrize(("content", "damage"), [
    (b"\0" * 100, "checksum differs"),
    (artifact(), "no mega-cache"),
    (artifact(header=b"SomethingElse"), "no standalone artifact"),
    (with_checksum(sized(b"CacheCompiledArtifact")), "truncated"),
    (with_checksum((1 << 63).to_bytes(8, "big")), "truncated"),
    (with_checksum(sized(b"AOTCompiledArtifact") + sized(b"k" * 32) + sized(b"cos\nsystem\n.")), "hostile"),
])  # fmt: skip
def test_artifacts_that_are_none_are_a_problem(content: bytes, damage: str, tmp_path: Path) -> None:
    entry, reading = read(CONTENT_READERS[VLLM_ARTIFACT], content, tmp_path)
    assert entry.status == "damaged"
    assert len(reading.problems) == 1
    assert damage in (entry.damage or "") or damage == "checksum differs"


READERS = [CONTENT_READERS[kind] for kind in (VLLM_FACTORS, VLLM_HANDLES, VLLM_ARTIFACT, VLLM_AOT)]


@given(st.sampled_from(READERS), st.binary(max_size=200))
def test_any_bytes_are_a_row(tmp_path_factory: pytest.TempPathFactory, reader: ReadFile, data: bytes) -> None:
    entry, _ = read(reader, data, tmp_path_factory.getbasetemp())
    assert entry.status in ("ok", "damaged", "unreadable")


def test_a_folder_with_a_file_called_model_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "rank_0_0").mkdir()
    (tmp_path / "rank_0_0" / "model").write_bytes(b"\x80")
    assert place_of(str(tmp_path)) is None


def test_caches_of_torch_in_a_folder_are_read_as_such(tmp_path: Path) -> None:
    name = make_folder(tmp_path)
    nested = tmp_path / "torch_compile_cache" / name / "rank_0_0" / "inductor_cache"
    key = "f" + "a" * 51
    (nested / "fxgraph" / "aa" / key).mkdir(parents=True)
    (nested / "fxgraph" / "aa" / key / ("b" * 51)).write_bytes(b"")
    entries = cachescope.read(tmp_path).entries.set_index("cache")
    assert entries.loc["fxgraph", "root"] == str(nested)
    assert entries.loc["fxgraph", "cache_key"] == key


def test_what_the_recordings_need_is_there() -> None:
    assert {f"{version}{kind}.tar.xz" for version in VERSIONS for kind in ("", "_ranks")} == {
        path.name for path in ARCHIVES.iterdir() if path.suffix == ".xz"
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compiled_model_says_what_it_is_and_for_which_torch(version: str, tmp_path: Path) -> None:
    told = recorded(version, tmp_path)
    entries = cachescope.read(told.cache).entries
    models = entries[entries["cache"] == "vllm_aot"]
    assert set(models["status"]) == {"ok"}
    assert all("vllm_model.py:" in name and name.startswith("Model.forward at ") for name in models["name"])
    assert set(models["device_types"]) == {("cpu",)}
    details = set(models["detail"])
    assert details == {"torch 2.13.0+cpu, Python 3.11.7, backend vllm.compilation.backends.VllmBackend"}


@pytest.mark.parametrize(("data", "size", "told"), [
    (b"PT2AOT\x01", 3 << 30, ("ok", "a compiled model that is too big to be opened here", None)),
    (b"\x80\x04}\x94.", 5, ("damaged", None, "no package of a compiled function")),
], ids=["gigabytes are not opened", "something else is damaged"])  # fmt: skip
def test_a_model_that_is_not_read(
    data: bytes, size: int, told: tuple[str | None, ...], tmp_path: Path
) -> None:
    path = tmp_path / "torch_aot_compile" / ("0" * 64) / "rank_0_0" / "model"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    os.truncate(path, size)
    scope = cachescope.read(tmp_path)
    (row,) = scope.entries.astype(object).where(scope.entries.notna(), None).to_dict("records")
    assert (row["status"], row["detail"], row["damage"]) == told
    assert len(scope.problems) == (told[0] == "damaged")


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
    (part,) = folders[["rank", "dp_rank", "prefix"]].drop_duplicates().to_numpy().tolist()
    assert part == [0, 0, "backbone"]


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
