"""Files that are written while they are read, and what shows that sources have changed: files in, sizes and times out. And one that is written at one stroke."""

import os
import socket
import threading
from pathlib import Path

import pytest

from cachescope.readers import cache_file
from cachescope.readers.cache_file import read_steady
from cachescope.readers.file_fingerprints import file_stamps, stamps
from cachescope.whole_file import write_whole


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
    ([b"abcd"], 5, b"abcd", [5]), ([b"abcde"], 5, b"abcde", [5]), ([b"abc"], 5, b"abc", [5, 2]),
    ([b"ab", b"cd"], 5, b"abcd", [5, 3, 1]), ([b"ab", b"cde"], 5, b"abcde", [5, 3]),
    ([b"a", b"b", b"c"], 9, b"abc", [9, 8, 7, 6]), ([], 5, b"", [5]),
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


def put(folder: Path, *names: str) -> dict[str, Path]:
    """Files, each of another size and time."""
    made = {}
    for at, name in enumerate(names, 1):
        path = made[name] = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * at)
        os.utime(path, ns=(0, at * 10**9))
    return made


@pytest.mark.parametrize(("sources", "wanted"), [
    (["a.log"], {"a.log": 1}),
    (["a.log", "b.log", "a.log"], {"a.log": 1, "b.log": 2}),
    (["*.log"], {"a.log": 1, "b.log": 2}),
    # Of a folder every file, wherever it is.
    (["sub"], {"sub/c.log": 3, "sub/deep/d": 4}),
    (["sub/*"], {"sub/c.log": 3, "sub/deep/d": 4}),
    (["**/*.log"], {"a.log": 1, "b.log": 2, "sub/c.log": 3}),
    (["absent", "absent/*", "b.log"], {"b.log": 2}),
    (["[x].txt"], {"[x].txt": 5}),
    ([], {}),
])  # fmt: skip
def test_every_file_of_the_sources_has_a_size_and_a_time(
    sources: list[str], wanted: dict[str, int], tmp_path: Path
) -> None:
    put(tmp_path, "a.log", "b.log", "sub/c.log", "sub/deep/d", "[x].txt")
    found = stamps(str(tmp_path / source) for source in sources)
    files = {path: stamp for path, stamp in found.items() if not os.path.isdir(path)}
    assert files == {str(tmp_path / name): (at, at * 10**9) for name, at in wanted.items()}


def test_a_folder_changes_with_what_is_in_it(tmp_path: Path) -> None:
    put(tmp_path, "sub/a")
    before = stamps([str(tmp_path / "sub")])
    assert stamps([str(tmp_path / "sub")]) == before
    put(tmp_path, "other", "sub/b")
    assert stamps([str(tmp_path / "sub")]) != before


def test_links_are_as_what_they_lead_to(tmp_path: Path) -> None:
    put(tmp_path, "there/a")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "link").symlink_to(tmp_path / "there" / "a")
    (tmp_path / "sub" / "nowhere").symlink_to(tmp_path / "absent")
    found = stamps([str(tmp_path / "sub")])
    assert found[str(tmp_path / "sub" / "link")] == (1, 10**9)
    assert str(tmp_path / "sub" / "nowhere") not in found
    # A link to a folder is no folder: it may lead back.
    (tmp_path / "sub" / "again").symlink_to(tmp_path / "sub")
    assert len(stamps([str(tmp_path / "sub")])) == len(found) + 1


def test_files_by_their_very_names(tmp_path: Path) -> None:
    put(tmp_path, "a", "b")
    names = [str(tmp_path / name) for name in ("a", "*", "absent")]
    assert file_stamps([*names, "a\0b"]) == {names[0]: (1, 10**9)}


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"long before")
    with target.open("rb") as reader:
        write_whole(target, b"after")
        assert reader.read() == b"long before"
    assert target.read_bytes() == b"after" and list(tmp_path.iterdir()) == [target]


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    link = tmp_path / "link"
    link.symlink_to(kept / "file")
    for content in (b"first", b"second"):
        write_whole(link, content)
        assert link.is_symlink()
        assert (kept / "file").read_bytes() == content


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    # As /dev/null and /dev/stdout, which root could replace.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"a report")
    reader.join(timeout=300)
    assert found == [b"a report"]
    assert pipe.is_fifo()


def test_nothing_is_left_where_it_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        write_whole(tmp_path / "missing" / "out", b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "folder", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
