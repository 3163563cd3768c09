"""The entries that a real mega-cache file holds: those that torch counted when it made the file, however it is cut."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

import pytest

import cachescope
from cachescope.readers.directory.bundles import entries_inside
from cachescope.readers.reading import Reading
from cachescope.readers.sources import read_sources
from tests.conftest import Directory


def mega_cache(directory: Directory) -> Path:
    (found,) = directory("torch_2.13.0").rglob("mega_cache.bin")
    return found


def names(path: Path) -> list[tuple[str, str | None]]:
    return [(entry.cache, entry.cache_key) for entry in entries_inside(str(path), Reading())]


def test_they_are_what_the_reader_counts(directory: Directory) -> None:
    path = mega_cache(directory)
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
    path = mega_cache(directory)
    data, whole = path.read_bytes(), names(path)
    cut = tmp_path / "cut.bin"
    for length in range(0, len(data), max(len(data) // 40, 1)):
        cut.write_bytes(data[:length])
        found = names(cut)
        assert found == whole[: len(found)]
    assert len(found) < len(whole)


def test_a_standalone_artifact_holds_what_its_mega_cache_does(directory: Directory, tmp_path: Path) -> None:
    """If its header says that it has one: torch reads anything else as a pickle."""
    path = mega_cache(directory)
    key = base64.b64encode(b"a" * 52)
    for header, parts, wanted in (
        (b"CacheCompiledArtifact", (b"k" * 32, key), names(path)),
        (b"AOTCompiledArtifact", (b"k" * 32,), []),
    ):
        body = b"".join(len(part).to_bytes(8, "big") + part for part in (header, *parts, path.read_bytes()))
        made = tmp_path / "artifact.bin"
        made.write_bytes(zlib.crc32(body).to_bytes(4, "big") + body)
        assert names(made) == wanted


def test_a_file_that_is_gone_holds_none(tmp_path: Path) -> None:
    assert entries_inside(str(tmp_path / "gone.bin"), Reading()) == []


def test_the_details_of_keys_that_it_holds_are_known(directory: Directory) -> None:
    path = mega_cache(directory)
    reading = Reading()
    read_sources([str(path)], reading)
    inside = entries_inside(str(path), Reading())
    known = {entry.cache_key for entry in inside if entry.cache == "fxgraph" and entry.detail_set is not None}
    assert known and set(reading.details_of_key) == known
