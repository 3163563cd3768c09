"""Logs at addresses read like the same files here, whatever the store does while they are read."""

import gzip
import io
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

import cachescope
from cachescope.errors import SourceError
from cachescope.readers.logs.byte_source import open_bytes
from cachescope.readers.logs.remote import addresses
from tests.conftest import Recording
from tests.readers.logs.growing import tour


@pytest.fixture(scope="module")
def traces() -> list[bytes]:
    return tour()


def packed(data: bytes, how: str) -> bytes:
    if how == "gz":
        return gzip.compress(data, 1)
    return pa.compress(data, codec="zstd", asbytes=True) if how == "zst" else data


@pytest.mark.slow
@pytest.mark.parametrize("how", ["plain", "gz", "zst"])
def test_a_pattern_at_a_store_reads_like_files_here(
    how: str, store: MemoryFileSystem, traces: list[bytes], tmp_path: Path
) -> None:
    for rank, data in enumerate(traces):
        store.pipe(f"/job/rank_{rank}.{how}", packed(data, how))
        (tmp_path / f"rank_{rank}.{how}").write_bytes(packed(data, how))
    store.pipe("/job/notes", b"not asked for")
    there, here = cachescope.read("memory://job/rank_*"), cachescope.read(tmp_path)
    assert there.runs["source"].tolist()[0].startswith("memory://")
    for name in ("lookups", "misses", "causes"):
        pd.testing.assert_frame_equal(getattr(there, name), getattr(here, name))
    without = ["source", "sources"]
    pd.testing.assert_frame_equal(there.runs.drop(columns=without), here.runs.drop(columns=without))
    assert sorted(there.runs["rank"]) == list(range(len(traces)))


def test_a_folder_is_searched_and_kinds_are_told_by_looking_inside(
    store: MemoryFileSystem, traces: list[bytes], recording: Recording
) -> None:
    text = sorted((recording("2.13.0", "config_flip") / "text").iterdir())[0]
    store.pipe("/job/deep/down/no_name_tells", packed(traces[0], "zst"))
    store.pipe("/job/text", b"a launcher's own words\n" * 5000 + text.read_bytes())
    store.pipe("/job/readme.md", b"# words\n")
    scope = cachescope.read("memory://job")
    assert sorted(scope.runs["source"]) == ["memory:///job/deep/down/no_name_tells", "memory:///job/text"]
    (one,) = cachescope.read("memory://job/text").runs["source"]
    assert one == "memory:///job/text"


@pytest.mark.slow
def test_workers_read_addresses(store: MemoryFileSystem, traces: list[bytes]) -> None:
    for rank, data in enumerate(traces):
        store.pipe(f"/job/rank_{rank}.log", data)
    with ThreadPoolExecutor(2) as executor:
        told = cachescope.read("memory://job", executor=executor)
    pd.testing.assert_frame_equal(told.lookups, cachescope.read("memory://job").lookups)


@pytest.mark.parametrize(("address", "message"), [
    ("memory://nowhere/at_all.log", "there is no such file"),
    ("memory://job/*.zst", "there is no such file"),
    ("memory://job", "holds no trace, text log"),
    ("nostore://bucket/a.log", "cannot be listed: .*nostore"),
])  # fmt: skip
def test_what_cannot_be_read_is_one_clear_line(address: str, message: str, store: MemoryFileSystem) -> None:
    store.pipe("/job/notes.txt", b"nothing of torch")
    with pytest.raises(SourceError, match=message) as error:
        cachescope.read(address)
    assert "\n" not in str(error.value)
    assert error.value.source == address


def test_an_archive_at_an_address_has_to_be_unpacked(store: MemoryFileSystem, traces: list[bytes]) -> None:
    """Its logs would be taken for one. What is beside it is read."""
    packed_together = io.BytesIO()
    with tarfile.open(fileobj=packed_together, mode="w:gz") as archive:
        for number, data in enumerate(traces):
            about = tarfile.TarInfo(f"{number}.log")
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
    store.pipe("/job/x.tar.gz", packed_together.getvalue())
    with pytest.raises(SourceError, match="this is an archive: unpack it, and give its folder"):
        cachescope.read("memory://job/x.tar.gz")
    store.pipe("/job/a.log", traces[0])
    scope = cachescope.read("memory://job")
    assert scope.runs["source"].tolist() == ["memory:///job/a.log"]
    (problem,) = scope.problems.itertuples()
    assert (problem.source, problem.kind) == ("memory:///job/x.tar.gz", "unknown_source")


def test_without_fsspec_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(SourceError, match=r"pip install 'cachescope\[remote\]'"):
        cachescope.read("s3://bucket/rank_*.log.zst")


@pytest.mark.parametrize(
    "error", [OSError("the connection was reset"), RuntimeError("no credentials any more")]
)
def test_a_log_that_is_lost_half_way_gives_what_came_before_and_a_problem(
    error: Exception, store: MemoryFileSystem, traces: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.pipe("/job/a.log", traces[0])
    whole = cachescope.read("memory://job/a.log")
    read = MemoryFile.read

    def lost_half_way(file: MemoryFile, size: int = -1) -> bytes:
        if file.tell() >= len(traces[0]) // 2:
            raise error
        return read(file, size)

    monkeypatch.setattr(MemoryFile, "read", lost_half_way)
    scope = cachescope.read("memory://job/a.log")
    assert 0 < len(scope.lookups) < len(whole.lookups)
    known = whole.lookups["cache_key"].tolist()
    assert scope.lookups["cache_key"].tolist() == known[: len(scope.lookups)]
    assert str(error) in scope.problems["message"].str.cat()
    assert scope.problems["kind"].tolist()[-1] == "lost"


@pytest.mark.parametrize("where", ["here", "memory://job/a.zst"])
def test_a_cut_zstandard_log_gives_what_came_before_and_a_problem(
    where: str, store: MemoryFileSystem, traces: list[bytes], tmp_path: Path
) -> None:
    cut = packed(traces[0], "zst")[:-20_000]
    store.pipe("/job/a.zst", cut)
    (tmp_path / "a.zst").write_bytes(cut)
    scope = cachescope.read(tmp_path if where == "here" else where)
    assert 0 < len(scope.lookups) < 8
    assert set(scope.problems["kind"]) <= {"truncated", "damaged_compression"}
    assert len(scope.problems)


def test_what_is_at_an_address(store: MemoryFileSystem) -> None:
    for path in ("/job/a.log", "/job/b.log", "/job/deep/c.log", "/other/d.log"):
        store.pipe(path, b"x")
    every = [f"memory:///job/{name}" for name in ("a.log", "b.log", "deep/c.log")]
    assert addresses("memory://job") == every
    # Folders among the matches of a pattern were not asked for, nor what is in them.
    assert addresses("memory://job/*") == every[:2]
    assert addresses("memory://job/[b]*") == addresses("memory://job/?.log")[1:] == every[1:2]
    assert addresses("memory://job/a.log") == every[:1]


@pytest.mark.parametrize(
    ("error", "said"), [(RuntimeError("two\n lines"), "two lines"), (RuntimeError(), "RuntimeError")]
)
def test_an_error_of_a_store_is_said_in_one_line(
    error: Exception, said: str, store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> object:
        raise error

    store.pipe("/job/a.log", b"x")
    monkeypatch.setattr(MemoryFileSystem, "find", fail)
    with pytest.raises(SourceError, match=f"cannot be listed: {said}$"):
        addresses("memory://job")
    monkeypatch.setattr(MemoryFileSystem, "open", fail)
    with pytest.raises(SourceError, match=f"cannot be opened: {said}$"):
        open_bytes("memory://job/a.log")
