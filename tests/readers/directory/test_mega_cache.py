"""What a mega-cache says of itself, and the entries in it: bytes put together by hand, and a real one."""

import base64
import zlib
from pathlib import Path

import pytest
from hostile_pickles import Object, detail_line, entry_bytes, entry_name

import cachescope
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent
from cachescope.readers.directory.bundles import artifacts, entries_inside, fill_mega_cache
from cachescope.readers.kinds import mega_cache_start
from cachescope.readers.reading import Reading
from cachescope.readers.sources import read_sources
from tests.conftest import Directory
from tests.readings import read_by

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


def filled(data: bytes) -> tuple[EntryRow, Reading, str | None]:
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
    entry, _, found = filled(data)
    assert (entry.detail, found) == (detail, damage)
    assert (mega_cache_start(data[:64]) is not None) is (damage != "no mega-cache")


def test_it_stores_the_details_of_its_graphs_and_names_their_keys_and_devices() -> None:
    entry, reading, _ = filled(body(("inductor", [(FX, GRAPH), (OTHER, OF_CPU), (FX, GRAPH)])))
    assert entry.fx_keys == (FX, OTHER)
    assert entry.device_types == ("cuda", "cpu")
    assert reading.details_of_key == {FX: 0}
    # Those before a fault are known.
    entry, reading, damage = filled(body(("inductor", [(FX, GRAPH), (OTHER, OF_CPU)]))[:-1])
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
