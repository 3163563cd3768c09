"""Files that people ship by themselves, mega-caches among them, and precompile packages, against what torch says of them and the trace of their run."""

import base64
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
from hostile_pickles import Object, detail_line, entry_bytes, entry_name, hostile
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent, read_marked
from cachescope.readers.directory import aotinductor
from cachescope.readers.directory.bundles import artifacts, entries_inside, fill_mega_cache
from cachescope.readers.directory.cache_dir import SHIPPED_READERS
from cachescope.readers.kinds import (
    looks_like_aot_compile,
    looks_like_standalone,
    mega_cache_start,
    shipped_kind,
)
from cachescope.readers.reading import Reading
from cachescope.readers.sources import read_sources
from tests.conftest import DATA, Archive, Directory
from tests.readings import read_by

Package = Callable[[str], Path]
RECORDED = DATA / "shipped"
VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in RECORDED.glob("*.tar.xz"))
QUICK = [pytest.param(one, marks=() if one == "2.13.0" else pytest.mark.slow) for one in VERSIONS]
KINDS = {
    "bundle.bin": "mega_cache", "function.pt": "aot_compile", "library.pt2": "aotinductor",
    "model.pt": "aot_compile", "sources.pt2": "aotinductor", "standalone.bin": "standalone",
    "standalone_aot.bin": "standalone",
}  # fmt: skip


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
    assert read_marked(SHIPPED_READERS[KINDS[name]], entry, str(path), path.name, reading)
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


IN_PACKAGE = "model/data/aotinductor/model"


def packed(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as made:
        for name, content in members.items():
            made.writestr(f"{IN_PACKAGE}/{name}", content)
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


@pytest.mark.parametrize(("mark", "behind", "other", "told"), [
    (b"PK\5\6", 12, b"\0\0\x50\0", ("unreadable", "its directory has 5242880 bytes: not read")),
    # Of a later version of zip.
    (b"PK\1\2", 6, b"\xff\0", ("damaged", "no whole archive: zip file version 25.5")),
    (b"library", 0, b"LIBRARY", ("damaged", f"{IN_PACKAGE}/x.so: checksum differs from the content")),
])  # fmt: skip
def test_a_changed_package(
    mark: bytes, behind: int, other: bytes, told: tuple[str, str], tmp_path: Path
) -> None:
    path = packed(tmp_path / "x.pt2", {"x.so": b"library" * 100})
    data = bytearray(path.read_bytes())
    at = data.rindex(mark) + behind
    data[at : at + len(other)] = other
    path.write_bytes(bytes(data))
    scope = cachescope.read(path)
    assert len(scope.problems) == 1
    (row,) = scope.entries.to_dict("records")
    assert (row["cache"], row["status"], row["damage"]) == ("aotinductor", *told)


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


FX, OTHER = "f" + "a" * 51, "f" + "b" * 51
AOT = "a" + "b" * 51
SHAPE = "torch._inductor.output_code.CompiledFxGraph"
_STATE = {"device_types": {"cuda"}, "_fx_graph_cache_debug_lines": [detail_line("gm", "g")]}
GRAPH = entry_bytes(Object(SHAPE, _STATE))
OF_CPU = entry_bytes(Object(SHAPE, {"device_types": {"cpu"}}))
CUT = GRAPH[:-5]


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def text(value: str) -> bytes:
    raw = base64.b64encode(value.encode())
    return number(len(raw)) + raw


def body(*groups: tuple[str, list[tuple[str, bytes]]], version: int = 1) -> bytes:
    made = number(version)
    for kind, listed in groups:
        made += text(kind) + number(len(listed))
        made += b"".join(text(key) + number(len(content)) + content for key, content in listed)
    return made


def summed(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "big") + data


def mega_filled(data: bytes) -> tuple[EntryRow, Reading, str | None]:
    entry, reading = EntryRow(cache="mega_cache", path="/m.bin", root="/"), Reading()
    try:
        fill_mega_cache(entry, "m.bin", data, reading)
    except DamagedContent as error:
        return entry, reading, error.what
    return entry, reading, None


@pytest.mark.parametrize(("data", "detail", "damage"), [
    (body(("pgo", [("k", b"x")])), "pgo 1", None),
    (summed(body(("pgo", [("k", b"x")]))), "pgo 1", None),
    (body(("pgo", [("k", b"x"), ("k2", b"")]), ("autotune", [("k", b"y")])), "pgo 2, autotune 1", None),
    # A kind of which there is none, and one of which the last is empty.
    (body(("inductor", [])), "", None),
    (body(("pgo", [("", b"")])), "pgo 1", None),
    (b"\0" * 4 + body(("pgo", [])), "", "checksum differs from the content"),
    (body(("inductor", [(FX, GRAPH)])), "inductor 1", None),
    (body(("inductor", [(FX, CUT)])), "inductor 1", f"inductor {FX}: truncated"),
    (body(("aot_autograd", [(AOT, b"")])), "aot_autograd 1", f"aot_autograd {AOT}: empty file"),
    # Others are only counted.
    (body(("autotune", [("k", CUT)])), "autotune 1", None),
    (b"\0" * 4 + body(("inductor", [(FX, b"")])), "inductor 1", f"checksum differs from the content; inductor {FX}: empty file"),
    # Three faults are enough, and of a key the part that torch's have.
    (body(("inductor", [(f"f{n}", b"") for n in range(4)])), "inductor 4", "; ".join(f"inductor f{n}: empty file" for n in range(3))),
    (body(("inductor", [("k" * 61, b"")])), "inductor 1", f"inductor {'k' * 60}: empty file"),
    (body(("pgo", []), ("other", [])), "", "an artifact of unknown type 'other'"),
    (body(("pgo", []), ("o" * 41, [])), "", f"an artifact of unknown type {'o' * 40!r}"),
    (body(("pgo", [("k", b"x")]))[:-1], "", "truncated"),
    (body(("pgo", [("k", b"x"), ("k", b"y")]))[:-1], "pgo 1", "truncated"),
    (body(("pgo", []))[:-1], "", "truncated"),
    (body(("pgo", [])) + b"\0" * 7, "", "truncated"),
    (body(("pgo", [])) + number(2) + b"??", "", "a text that is no base64 of UTF-8"),
    (body(("pgo", [])) + number(4) + base64.b64encode(b"\xff"), "", "a text that is no base64 of UTF-8"),
    (body(("pgo", []), version=2), None, "no mega-cache"),
    (body(("other", [])), None, "no mega-cache"),
    (b"", None, "no mega-cache"),
    (b"\0" * 3 + body(("pgo", [])), None, "no mega-cache"),
])  # fmt: skip
def test_what_is_in_it_and_what_is_wrong(data: bytes, detail: str | None, damage: str | None) -> None:
    entry, _, found = mega_filled(data)
    assert (entry.detail, found) == (detail, damage)
    assert (mega_cache_start(data[:64]) is not None) is (damage != "no mega-cache")


def test_it_stores_the_details_of_its_graphs_and_names_their_keys_and_devices() -> None:
    entry, reading, _ = mega_filled(body(("inductor", [(FX, GRAPH), (OTHER, OF_CPU), (FX, GRAPH)])))
    assert entry.fx_keys == (FX, OTHER)
    assert entry.device_types == ("cuda", "cpu")
    assert reading.details_of_key == {FX: 0}
    # Those before a fault are known.
    entry, reading, damage = mega_filled(body(("inductor", [(FX, GRAPH), (OTHER, OF_CPU)]))[:-1])
    assert (entry.fx_keys, list(reading.details_of_key), damage) == ((FX,), [FX], "truncated")


def test_each_artifact_with_where_its_content_begins() -> None:
    data = summed(body(("pgo", [("k", b"one")]), ("autotune", [("l", b""), ("m", b"three")])))
    found = list(artifacts(data))
    assert [one[:3] for one in found[:1]] == [("pgo", "k", b"one")]
    assert [one[:3] for one in found[1:]] == [("autotune", "l", b""), ("autotune", "m", b"three")]
    assert all(data[at : at + len(content)] == content for _, _, content, at, _ in found)
    assert found[0][3] == data.index(b"one")
    with pytest.raises(DamagedContent, match="no mega-cache"):
        list(artifacts(b"other"))


@pytest.mark.parametrize(("data", "wanted"), [
    (summed(body(("inductor", [(FX, GRAPH), (OTHER, CUT)]), ("pgo", [("k", b"")]))), [("fxgraph", FX, "ok", None), ("fxgraph", OTHER, "damaged", "truncated")]),
    (body(("aot_autograd", [(AOT, b"")])), [("aotautograd", AOT, "damaged", "empty file")]),
    (body(("inductor", [(FX, b"N" * 1_000_001)])), [("fxgraph", FX, "unreadable", "more than 1000000 opcodes")]),
    # Those before a cut are read.
    (body(("inductor", [(FX, GRAPH), (OTHER, GRAPH)]))[:-1], [("fxgraph", FX, "ok", None)]),
    (b"no mega-cache", []),
])  # fmt: skip
def test_the_entries_in_it(data: bytes, wanted: list[tuple[object, ...]], tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(data)
    found = entries_inside(str(tmp_path / "m.bin"), Reading())
    assert [(one.cache, one.cache_key, one.status, one.damage) for one in found] == wanted
    assert {one.path for one in found} <= {str(tmp_path / "m.bin")}
    assert entries_inside(str(tmp_path / "gone.bin"), Reading()) == []


def recorded(directory: Directory) -> Path:
    (found,) = directory("torch_2.13.0").rglob("mega_cache.bin")
    return found


def names(path: Path) -> list[tuple[str, str | None]]:
    return [(entry.cache, entry.cache_key) for entry in entries_inside(str(path), Reading())]


def test_the_entries_are_what_the_reader_counts(directory: Directory) -> None:
    path = recorded(directory)
    (row,) = cachescope.read(path).entries.to_dict("records")
    inside = entries_inside(str(path), Reading())
    counts = dict(part.rsplit(" ", 1) for part in row["detail"].split(", "))
    kinds = [entry.cache for entry in inside]
    assert kinds.count("fxgraph") == int(counts["inductor"])
    assert kinds.count("aotautograd") == int(counts["aot_autograd"])
    assert tuple(entry.cache_key for entry in inside if entry.cache == "fxgraph") == row["fx_keys"]
    assert all(entry.status == "ok" for entry in inside)
    assert all(entry.source_code for entry in inside if entry.cache == "fxgraph")


@pytest.mark.slow
def test_a_file_that_is_cut_gives_what_comes_before_the_cut(directory: Directory, tmp_path: Path) -> None:
    path = recorded(directory)
    data, whole = path.read_bytes(), names(path)
    cut = tmp_path / "cut.bin"
    for length in range(0, len(data), max(len(data) // 40, 1)):
        cut.write_bytes(data[:length])
        found = names(cut)
        assert found == whole[: len(found)]
    assert len(found) < len(whole)


def test_a_standalone_artifact_holds_what_its_mega_cache_does(directory: Directory, tmp_path: Path) -> None:
    """If its header says that it has one: torch reads anything else as a pickle."""
    path = recorded(directory)
    key = base64.b64encode(b"a" * 52)
    for header, parts, wanted in (
        (b"CacheCompiledArtifact", (b"k" * 32, key), names(path)),
        (b"AOTCompiledArtifact", (b"k" * 32,), []),
    ):
        content = b"".join(number(len(part)) + part for part in (header, *parts, path.read_bytes()))
        made = tmp_path / "artifact.bin"
        made.write_bytes(summed(content))
        assert names(made) == wanted


def test_of_several_saves_the_first_is_lost(tmp_path: Path) -> None:
    saves = [("inductor", [(key, GRAPH)]) for key in (FX, OTHER)]
    (tmp_path / "m.bin").write_bytes(summed(body(*saves)))
    for key in (FX, OTHER):
        file = tmp_path / "cache" / "fxgraph" / key[1:3] / key / entry_name(GRAPH)
        file.parent.mkdir(parents=True)
        file.write_bytes(GRAPH)
    found = cachescope.compare(tmp_path / "m.bin", tmp_path / "cache").coverage.set_index("cache_key")
    assert found["held"].to_dict() == {FX: "no", OTHER: "yes"}
    assert "of several saves torch loads only the last" in found.loc[FX, "reason"]


def test_the_details_of_keys_that_it_holds_are_known(directory: Directory) -> None:
    path = recorded(directory)
    reading = read_by(read_sources, [str(path)])
    inside = entries_inside(str(path), Reading())
    known = {entry.cache_key for entry in inside if entry.cache == "fxgraph" and entry.detail_set is not None}
    assert known and set(reading.details_of_key) == known
