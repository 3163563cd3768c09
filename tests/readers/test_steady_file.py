"""A file of a cache that others write to: what is read of it, and what is no file any more."""

import os
import socket
from pathlib import Path

import pytest

from cachescope.readers import cache_file
from cachescope.readers.cache_file import read_steady


@pytest.mark.parametrize("size", [0, 1, 5])
@pytest.mark.parametrize("most", [1, 4, 5, 6, 100])
def test_so_many_bytes_are_read(size: int, most: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abcde"[:size])
    data, at = read_steady(str(path), most)
    assert data == b"abcde"[: min(size, most)]
    assert (at.st_size, at.st_mtime_ns) == (size, path.stat().st_mtime_ns)


def test_it_is_no_file_where_it_is_gone_or_something_else(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
        for name in ("absent", "folder", "link", "pipe", "socket", "file/inside"):
            with pytest.raises(FileNotFoundError):
                read_steady(str(tmp_path / name), 10)


def test_an_error_of_the_system_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a").write_bytes(b"x")
    monkeypatch.setattr(cache_file.os, "open", refuse)
    with pytest.raises(PermissionError):
        read_steady(str(tmp_path / "a"), 10)


class Slow:
    """A file of which the system gives a few bytes at a time."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.asked: list[int] = []

    def read(self, most: int) -> bytes:
        self.asked.append(most)
        piece = self.pieces.pop(0) if self.pieces else b""
        assert len(piece) <= most
        return piece


@pytest.mark.parametrize(("pieces", "most", "wanted", "asked"), [
    # All but the byte more that would show that it has grown.
    ([b"abcd"], 5, b"abcd", [5]),
    ([b"abcde"], 5, b"abcde", [5]),
    ([b"abc"], 5, b"abc", [5, 2]),
    ([b"ab", b"cd"], 5, b"abcd", [5, 3, 1]),
    ([b"ab", b"cde"], 5, b"abcde", [5, 3]),
    ([b"a", b"b", b"c"], 9, b"abc", [9, 8, 7, 6]),
    ([], 5, b"", [5]),
])  # fmt: skip
def test_the_system_may_return_less_than_was_asked_for(
    pieces: list[bytes], most: int, wanted: bytes, asked: list[int]
) -> None:
    file = Slow(*pieces)
    assert cache_file._bytes_of(file, most) == wanted  # type: ignore[arg-type]
    assert file.asked == asked


@pytest.mark.parametrize(("changes", "wanted"), [(0, b"v0"), (1, b"v1"), (2, b"v2"), (5, b"v2")])
def test_a_file_that_changes_meanwhile_is_read_three_times_at_most(
    changes: int, wanted: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, count = tmp_path / "a", cache_file._bytes_of, 0

    def write(number: int) -> None:
        path.write_bytes(b"v%d" % number)
        os.utime(path, ns=(0, (number + 1) * 10**9))

    def read_while_it_changes(file: object, most: int) -> bytes:
        nonlocal count
        data = real(file, most)  # type: ignore[arg-type]
        count += 1
        if count <= changes:
            write(count)
        return data

    write(0)
    monkeypatch.setattr(cache_file, "_bytes_of", read_while_it_changes)
    assert read_steady(str(path), 10)[0] == wanted
    assert count == min(changes, 2) + 1
