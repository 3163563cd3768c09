"""Files that people ship by themselves, and precompile packages, against what torch says of them and the trace of their run."""

import json
import pickle
import shutil
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile_pickles import hostile
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.directory import aotinductor
from cachescope.readers.directory.bundles import entries_inside
from cachescope.readers.directory.cache_dir import SHIPPED_READERS
from cachescope.readers.kinds import looks_like_aot_compile, looks_like_standalone, shipped_kind
from cachescope.readers.reading import Reading
from tests.conftest import DATA, Archive

Package = Callable[[str], Path]
RECORDED = DATA / "shipped"
VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in RECORDED.glob("*.tar.xz"))
QUICK = [pytest.param(one, marks=() if one == "2.13.0" else pytest.mark.slow) for one in VERSIONS]
KINDS = {
    "bundle.bin": "mega_cache",
    "function.pt": "aot_compile",
    "library.pt2": "aotinductor",
    "model.pt": "aot_compile",
    "sources.pt2": "aotinductor",
    "standalone.bin": "standalone",
    "standalone_aot.bin": "standalone",
}


@pytest.fixture(scope="session")
def shipped(archive: Archive) -> Package:
    return lambda version: archive(f"shipped/{version}") / version


@pytest.fixture(params=QUICK)
def folder(request: pytest.FixtureRequest, shipped: Package) -> Path:
    """The files of each version."""
    return shipped(request.param)


def row_of(path: Path) -> dict[str, Any]:
    scope = cachescope.read(path)
    assert scope.problems.empty
    (row,) = scope.entries.to_dict("records")
    return row


def row_of_damaged(path: Path) -> tuple[str, str, str]:
    scope = cachescope.read(path)
    assert len(scope.problems) == 1
    (row,) = scope.entries.to_dict("records")
    return row["cache"], row["status"], row["damage"]


def torchs(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "torchs.json").read_text())


def names_in(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.rglob("*") if path.is_file()}


def test_three_versions_of_torch_are_recorded() -> None:
    assert VERSIONS == ["2.10.0", "2.13.0", "2.15.0"]


def test_each_file_is_known_by_its_content(folder: Path, tmp_path: Path) -> None:
    for name, kind in KINDS.items():
        path = folder / name
        if name != "library.pt2" or folder.name == "2.13.0":
            other = tmp_path / "any name"
            other.write_bytes(path.read_bytes())
            assert (row_of(other)["cache"], row_of(other)["status"]) == (kind, "ok"), name


def test_keys_of_an_artifact_are_those_that_torch_unpacked(folder: Path) -> None:
    row = row_of(folder / "standalone.bin")
    assert {row["cache_key"]} == names_in(folder / "unpacked" / "aotautograd")
    assert set(row["fx_keys"]) == names_in(folder / "unpacked" / "fxgraph")
    inside = cachescope.read(folder / "unpacked").entries
    assert set(inside.loc[inside["cache"] == "aotautograd", "cache_key"]) == {row["cache_key"]}
    for name in ("standalone.bin", "standalone_aot.bin"):
        assert row_of(folder / name)["detail"].endswith(f"torch key {torchs(folder)['torch_key']}")


def test_keys_are_those_of_the_trace(folder: Path) -> None:
    """Of the run that made the files: the keys that torch asked for, and the names of the code that it wrote."""
    (log,) = (folder / "trace").iterdir()
    trace = log.read_text()
    row = row_of(folder / "standalone.bin")
    assert f'"key": "{row["cache_key"]}"' in trace
    assert [f'"key": "{key}"' in trace for key in row["fx_keys"]] == [True]
    for name in ("standalone_aot.bin", "function.pt", "model.pt", "sources.pt2"):
        assert f"/{row_of(folder / name)['code_key']}." in trace, name


def test_a_bundle_holds_what_torch_says(folder: Path) -> None:
    path, kept = folder / "bundle.bin", torchs(folder)["bundle"]
    row = row_of(path)
    assert sorted(row["fx_keys"]) == kept["inductor"]
    inside = entries_inside(str(path), Reading())
    assert sorted(one.cache_key or "" for one in inside if one.cache == "aotautograd") == kept["aot_autograd"]


def test_entries_of_an_artifact_are_asked_for_like_those_of_a_directory(folder: Path) -> None:
    """The run that made it would find them."""
    found = cachescope.will_hit(folder / "standalone.bin", folder / "trace")
    assert found["will_hit"].tolist() == ["yes", "yes"]
    assert set(found["cache"]) == {"fxgraph", "aotautograd"}


def test_a_function_says_where_it_is_and_what_made_it(folder: Path) -> None:
    row, truth = row_of(folder / "function.pt"), torchs(folder)
    assert row["name"].startswith("product at ")
    assert row["name"].endswith(f"program.py:{truth['function_line']}")
    assert row["detail"].startswith(f"torch {truth['torch']}, Python 3.")
    assert row["detail"].endswith("backend inductor")
    assert row["device_types"] == ("cpu",)
    model = row_of(folder / "model.pt")
    assert model["name"].startswith("Layer.forward at ")
    assert model["detail"].startswith(f"2 compiled graphs; torch {truth['torch']}")


def test_a_package_says_what_is_in_it_and_for_which_processor(folder: Path) -> None:
    for name in ("sources.pt2", "library.pt2"):
        path = folder / name
        if path.exists():
            row = row_of(path)
            with zipfile.ZipFile(path) as archive:
                endings = [one.rpartition(".")[2] for one in archive.namelist()]
                name = next(one for one in archive.namelist() if "metadata.json" in one)
                metadata = json.loads(archive.read(name))
            assert (row["name"], row["device_types"]) == ("model", (metadata["AOTI_DEVICE_KEY"],))
            assert metadata["AOTI_CPU_ISA"] in row["detail"]
            assert ("1 library" in row["detail"]) == ("so" in endings)
            assert f"{endings.count('cpp')} source" in row["detail"]


def test_a_link_to_a_bundle_is_followed(shipped: Package, tmp_path: Path) -> None:
    link, bundle = tmp_path / "latest", shipped("2.13.0") / "bundle.bin"
    link.symlink_to(bundle)
    row = row_of(link)
    assert (row["cache"], row["path"], row["link"]) == ("mega_cache", str(link), str(bundle.resolve()))


def test_a_file_in_the_folder_of_the_program_may_be_given_by_its_name(
    shipped: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shipped("2.13.0"))
    row = row_of(Path("bundle.bin"))
    assert (row["cache"], row["path"], row["root"]) == ("mega_cache", "bundle.bin", ".")


def filled(path: Path, name: str) -> tuple[EntryRow, Reading]:
    entry, reading = EntryRow(cache=KINDS[name], path=str(path), root=str(path.parent)), Reading()
    assert SHIPPED_READERS[KINDS[name]](entry, str(path), path.name, reading)
    return entry, reading


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["function.pt", "model.pt", "standalone.bin", "standalone_aot.bin", "sources.pt2"]
)
@given(data=st.data())
def test_a_damaged_file_is_a_row_and_a_problem(
    name: str, shipped: Package, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Cut anywhere, or with other bytes anywhere: what is not noticed has no checksum over it."""
    whole = (shipped("2.13.0") / name).read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.one_of(st.none(), st.binary(min_size=1, max_size=4)))
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_bytes(whole[:at] if other is None else whole[:at] + other + whole[at + len(other) :])
    entry, reading = filled(path, name)
    assert (entry.damage is not None) == bool(reading.problems)
    if path.read_bytes() != whole and (other is None or name.startswith("standalone")):
        assert entry.status in ("damaged", "unreadable")


@given(head=st.binary(max_size=80))
def test_any_other_bytes_are_none_of_these(head: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert not looks_like_aot_compile(head)
    assert not looks_like_standalone(head)


@pytest.mark.parametrize("where", [
    "its compiled code",
    *(pytest.param(one, marks=pytest.mark.slow) for one in ("a function", "a model", "an artifact")),
])  # fmt: skip
def test_a_hostile_pickle_runs_nothing_in_any_of_them(where: str, tmp_path: Path) -> None:
    sentinel = tmp_path / "ran"
    path = tmp_path / "file"
    kind = "standalone_aot.bin" if where == "an artifact" else "function.pt"
    for name, data in hostile(str(sentinel)).items():
        parts = {"signature": 0, "compiled_fn": ("", data), "original_code": 0, "guards_state": b""}
        header = b"AOTCompiledArtifact"
        body = b"".join(struct.pack(">Q", len(one)) + one for one in (header, b"k" * 32, data))
        files = {
            "a function": data,
            "its compiled code": pickle.dumps(parts, 4),
            "a model": pickle.dumps([data], 4),
            "an artifact": struct.pack(">I", zlib.crc32(body)) + body,
        }
        path.write_bytes(files[where])
        entry, reading = filled(path, kind)
        assert entry.status in ("damaged", "unreadable"), name
        assert len(reading.problems) == 1, name
    assert not sentinel.exists()


def packed(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as made:
        for name, content in members.items():
            made.writestr(f"model/data/aotinductor/model/{name}", content)
    return path


@pytest.mark.parametrize(("metadata", "status", "what"), [
    (b'{"AOTI_DEVICE_KEY": "cuda"}', "ok", None),
    (b'{"AOTI_DEVICE_KEY": 7}', "ok", None),
    (b"[]", "damaged", "no object"),
    (b"{", "damaged", "no whole archive"),
    # Python 3.14 parses what is nested deeper.
    (b"[" * 60_000, "damaged", "Expecting value" if sys.version_info >= (3, 14) else "nested too deep"),
    (b" " * (1 << 25), "unreadable", "too long"),
])  # fmt: skip
def test_metadata_of_a_package(metadata: bytes, status: str, what: str | None, tmp_path: Path) -> None:
    """A file that compresses a thousand times is not unpacked."""
    path = packed(tmp_path / "x.pt2", {"x.wrapper_metadata.json": metadata}, zipfile.ZIP_DEFLATED)
    assert shipped_kind(str(path), path.read_bytes()[:256]) == "aotinductor"
    entry, _ = filled(path, "sources.pt2")
    assert entry.status == status
    assert what is None or what in str(entry.damage)


def test_the_metadata_of_so_many_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = {
        f"{device}.wrapper_metadata.json": json.dumps({"AOTI_DEVICE_KEY": device}).encode()
        for device in ("cpu", "cuda", "xpu")
    }
    path = packed(tmp_path / "x.pt2", devices | {"metadata.txt": b"{}"})
    assert filled(path, "sources.pt2")[0].device_types == ("cpu", "cuda", "xpu")
    monkeypatch.setattr(aotinductor, "_MOST_METADATA", 2)
    assert filled(path, "sources.pt2")[0].device_types == ("cpu", "cuda")


def test_the_parts_of_a_package(tmp_path: Path) -> None:
    first, second = ("c" + letter * 51 for letter in "ab")
    sources = ("mine.wrapper.cpp", f"{first}.wrapper.cpp", f"{second}.wrapper.cpp", f"{second}.cpp")
    members = dict.fromkeys(("x.so", "notes.txt", *sources), b"")
    entry, _ = filled(packed(tmp_path / "x.pt2", members), "sources.pt2")
    assert (entry.code_key, entry.detail) == (first, "1 library, 4 sources")


def test_a_package_with_too_many_members_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.pt2"
    packed(path, {"x.so": b""})
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x05\x06")
    data[at + 12 : at + 16] = (5 << 20).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    entry, _ = filled(path, "sources.pt2")
    assert (entry.status, entry.damage) == ("unreadable", "its directory has 5242880 bytes: not read")


def test_an_archive_of_a_later_version_of_zip_is_damaged(tmp_path: Path) -> None:
    path = packed(tmp_path / "x.pt2", {"x.so": b""})
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 6 : at + 8] = b"\xff\x00"
    path.write_bytes(bytes(data))
    assert row_of_damaged(path) == ("aotinductor", "damaged", "no whole archive: zip file version 25.5")


def test_a_changed_library_is_noticed(tmp_path: Path) -> None:
    path = packed(tmp_path / "x.pt2", {"x.so": b"library" * 100})
    path.write_bytes(path.read_bytes().replace(b"library", b"LIBRARY", 1))
    entry, _ = filled(path, "sources.pt2")
    assert entry.damage == "model/data/aotinductor/model/x.so: checksum differs from the content"


def test_a_later_format_is_not_called_damaged(shipped: Package, tmp_path: Path) -> None:
    whole = (shipped("2.15.0") / "function.pt").read_bytes()
    path = tmp_path / "function.pt"
    path.write_bytes(whole.replace(b"PT2AOT\x01", b"PT2AOT\x02", 1))
    entry, _ = filled(path, "function.pt")
    assert (entry.status, entry.damage) == ("unreadable", "format 02 of a compiled function is not known")


def test_nothing_stands_against_what_torch_wrote(folder: Path) -> None:
    """But a model names the class of its program: nobody knows what that is."""
    for name in KINDS:
        path = folder / name
        if path.exists():
            found = cachescope.audit(path)
            assert not found["level"].isin(["danger", "warning"]).any(), found["message"].tolist()
            own = set(found.loc[found["rule"] == "user-module", "named"])
            assert own <= ({"__main__.Layer"} if name == "model.pt" else set()), name


@pytest.mark.parametrize(("backends", "detail"), [
    ([], "0 compiled graphs"),
    (["inductor"], "backend inductor"),
    ([None], ""),
    (["inductor", None], "2 compiled graphs; backend inductor"),
    ([None, "inductor"], "2 compiled graphs"),
    (["<mine.Backend object at 0x7f00>"], "backend mine.Backend"),
])  # fmt: skip
def test_the_compiled_functions_of_a_model(backends: list[str | None], detail: str, tmp_path: Path) -> None:
    functions = [
        {"signature": 0, "compiled_fn": 0, "original_code": 0, "guards_state": b"", "backend_name": backend}
        for backend in backends
    ]
    path = tmp_path / "model.pt"
    path.write_bytes(pickle.dumps([pickle.dumps(one) for one in functions]))
    entry, reading = filled(path, "model.pt")
    assert (entry.detail, reading.problems) == (detail, [])


@pytest.fixture
def package_of(archive: Archive, tmp_path: Path) -> Package:
    """A copy of a precompile package, and of what torch itself unpickles of it."""
    return lambda version: shutil.copytree(archive(f"precompile/{version}") / version, tmp_path / version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_package_says_what_torch_wrote(version: str, package_of: Package) -> None:
    folder = package_of(version)
    for key, told in torchs(folder).items():
        row = row_of(folder / "dynamo")
        assert row["cache_key"] == key
        assert (row["cache"], row["status"], row["device_types"]) == ("precompile", "ok", (told["device"],))
        place = f"/tmp/cachescope-recording/precompile/program.py:{told['line']}"
        assert row["name"] == f"{told['function']} at {place}"
        made_by = f"torch {told['torch']}, Python {told['python']}"
        assert row["detail"] == f"{told['backends']} compiled graphs, {made_by}"


@pytest.mark.parametrize("below", ["", "dynamo", "dynamo/*", "dynamo/*/entry"])
def test_a_package_is_known_wherever_one_points(below: str, package_of: Package) -> None:
    """The name of its folder could be one of Triton's."""
    folder = package_of("2.15.0")
    (folder / "torchs.json").unlink()
    (path,) = folder.glob(below) if below else (folder,)
    assert row_of(path)["cache"] == "precompile"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_audit_says_nothing_against_what_torch_wrote(version: str, package_of: Package) -> None:
    folder = package_of(version)
    (folder / "torchs.json").unlink()
    (package,) = (folder / "dynamo").iterdir()
    for path in (folder, folder / "dynamo", package, package / "entry"):
        assert set(cachescope.audit(path)["level"]) <= {"unproven", "note"}
