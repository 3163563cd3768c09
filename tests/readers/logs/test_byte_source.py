"""Where the bytes of a log come from, and how a stream says why it ended early."""

import errno
import gzip
import io
import os
import time
import zlib
from pathlib import Path

import fsspec
import pytest

from cachescope.errors import SourceError
from cachescope.readers.logs import byte_source
from cachescope.readers.logs.byte_source import (
    Bounded,
    Pieces,
    TooMuchError,
    modified_s,
    open_bytes,
    read_head,
)


class Failing(io.RawIOBase):
    """Some pieces of bytes, and then an error, once."""

    def __init__(self, pieces: list[bytes], error: Exception | None) -> None:
        self.pieces, self.error = list(pieces), error
        self.asked = 0

    def readable(self) -> bool:
        return True

    def readinto(self, space: memoryview) -> int:  # type: ignore[override]
        self.asked += 1
        if self.pieces:
            piece = self.pieces.pop(0)
            assert len(piece) <= len(space)
            space[: len(piece)] = piece
            return len(piece)
        if self.error is not None:
            raise self.error
        return 0


@pytest.mark.parametrize(("error", "wanted"), [
    (None, None),
    (TooMuchError("far too much"), ("limit", "far too much")),
    (OSError(errno.EIO, "disk broken"), ("lost", "could not be read to its end: disk broken")),
    # What gzip says of damage is an OSError without a number.
    (gzip.BadGzipFile("CRC check failed"), ("damaged_compression", "CRC check failed")),
    (EOFError("ended before the end marker"), ("damaged_compression", "ended before the end marker")),
    (zlib.error("invalid block"), ("damaged_compression", "invalid block")),
], ids=["none", "limit", "system", "gzip", "end", "zlib"])  # fmt: skip
def test_all_before_a_failure_is_read_and_the_failure_is_told(
    error: Exception | None, wanted: tuple[str, str] | None
) -> None:
    stream = Failing([b"ab", b"cd", b"ef"], error)
    pieces, space = Pieces(stream), bytearray(4)  # type: ignore[arg-type]
    assert pieces.failure() is None
    assert (pieces.read_into(memoryview(space)), bytes(space)) == (4, b"abcd")
    assert pieces.failure() is None
    assert (pieces.read_into(memoryview(space)), bytes(space[:2])) == (2, b"ef")
    assert pieces.failure() == wanted
    asked = stream.asked
    assert pieces.read_into(memoryview(space)) == 0
    # Of a stream that failed nothing more is asked.
    assert (stream.asked > asked) is (error is None)


def test_a_file_is_plain_and_what_was_packed_is_not(tmp_path: Path) -> None:
    for name, data, is_plain in (
        ("plain", b"a\nb\n", True),
        ("windows", b"a\r\nb\r\n", False),
        ("packed", gzip.compress(b"a\nb\n"), False),
        ("both", gzip.compress(b"a\r\nb\r\n"), False),
    ):
        (tmp_path / name).write_bytes(data)
        with open_bytes(str(tmp_path / name)) as stream:
            pieces, space = Pieces(stream), bytearray(100)
            assert pieces.is_plain is is_plain
            assert (pieces.read_into(memoryview(space)), bytes(space[:4])) == (4, b"a\nb\n")
            assert pieces.failure() is None


@pytest.mark.parametrize(("size", "wanted"), [(0, b""), (1, b"a"), (3, b"abc"), (4, b"abcd"), (9, b"abcd")])
def test_no_more_than_the_first_bytes(size: int, wanted: bytes) -> None:
    pieces, space = Pieces(io.BytesIO(b"abcd"), size), bytearray(100)  # type: ignore[arg-type]
    assert pieces.read_into(memoryview(space)) == len(wanted)
    assert bytes(space[: len(wanted)]) == wanted
    assert pieces.read_into(memoryview(space)) == 0


def test_what_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no such file or directory"):
        open_bytes(str(tmp_path / "absent"))
    with pytest.raises(SourceError, match="cannot be read: Is a directory"):
        open_bytes(str(tmp_path))
    read, write = os.pipe()
    os.close(write)
    with pytest.raises(SourceError, match="a pipe; write it to a file first"):
        open_bytes(f"/dev/fd/{read}")
    os.close(read)


def test_a_file_that_unpacks_to_far_too_much_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is a multiple of the size of the packed file."""
    packed = gzip.compress(b"x" * 100_000)
    (tmp_path / "a.gz").write_bytes(packed)
    monkeypatch.setattr(byte_source, "_MOST_TIMES", 2)
    for always, most in ((1, 2 * len(packed)), (99_999, 99_999), (100_000, 100_000)):
        monkeypatch.setattr(byte_source, "_ALWAYS_BYTES", always)
        with open_bytes(str(tmp_path / "a.gz")) as stream:
            pieces, space = Pieces(stream), bytearray(200_000)
            assert pieces.read_into(memoryview(space)) == most
            failure = pieces.failure()
        said = ("limit", f"unpacks to more than 2 times its size: {most:,} bytes are read")
        assert failure == (None if most == 100_000 else said)


def test_what_was_unpacked_is_closed_with_what_is_packed() -> None:
    stream, file = io.BytesIO(), io.BytesIO()
    Bounded(stream, file, 1).close()
    assert stream.closed and file.closed


def test_a_log_was_last_written_when_its_file_was_or_now_where_it_is_gone(tmp_path: Path) -> None:
    """By this its year is known."""
    log = tmp_path / "a.log"
    log.write_text("x")
    os.utime(log, (1_000_000_000, 1_000_000_000))
    assert modified_s(str(log)) == 1_000_000_000
    began = time.time()
    assert modified_s(str(tmp_path / "gone.log")) >= began


def test_a_log_of_a_store_has_the_time_of_the_store(store: fsspec.AbstractFileSystem) -> None:
    store.pipe("/job/a.log", b"hello")
    assert modified_s("memory://job/a.log") == store.modified("/job/a.log").timestamp()
    assert read_head("memory://job/a.log", 3) == b"hel"
    store.pipe("/job/a.gz", gzip.compress(b"hello"))
    assert read_head("memory://job/a.gz") == b"hello"
