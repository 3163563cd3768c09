"""The lines of a log however it comes in pieces, and however it was packed; where its bytes come from, and why they ended early."""

import contextlib
import errno
import gzip
import io
import json
import os
import time
import zlib
from pathlib import Path

import fsspec
import pytest

from cachescope.errors import SourceError
from cachescope.readers.logs import byte_source, log_lines
from cachescope.readers.logs.byte_source import (
    Bounded,
    Pieces,
    TooMuchError,
    Unpacked,
    modified_s,
    open_bytes,
    read_head,
    unpacking,
)
from cachescope.readers.logs.log_lines import Lines
from cachescope.readers.logs.log_prefix import LauncherPrefixes, tells_no_rank, uncoloured


@pytest.fixture(params=(1, 2, 3, 7, 1000))
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many bytes are read at once."""
    monkeypatch.setattr(log_lines, "_READ_BYTES", request.param)
    return int(request.param)


def lines_of(data: bytes) -> Lines:
    return Lines(Pieces(io.BytesIO(data)))  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [b"", b"a", b"a\n", b"a\nbc\n\ndef", b"\n\n", b"abcdefgh\nij\n"])
def test_lines_of_any_pieces(data: bytes, size: int) -> None:
    lines, taken = lines_of(data), []
    while (line := lines.take()) is not None:
        taken.append(line)
    wanted = data.split(b"\n")
    assert taken == (wanted if wanted[-1] else wanted[:-1])
    assert (lines.number, lines.bytes, lines.too_long) == (len(taken), len(data), [])
    assert lines.is_whole == (data.endswith(b"\n") or not data)


def test_a_line_that_is_too_long_is_cut(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "_MOST_BYTES_OF_A_LINE", 4)
    lines, taken = lines_of(b"abcd\nabcde\nab\nabcdefghijklmnop"), []
    while (line := lines.take()) is not None:
        taken.append(line)
    assert taken == [b"abcd", b"abcd", b"ab", b"abcd"]
    assert lines.too_long == [2, 4]
    assert lines.number == 4


@pytest.mark.parametrize(("data", "number", "line"), [
    (b"a:b\nc\n", 1, b"a:b"), (b"x\ny\na:b\nc\n", 3, b"a:b"), (b"x\ny\na:b", 3, b"a:b"),
    (b"x\n:\n", 2, b":"),
    # A line that may go on is not passed over before its end is known.
    (b"x\ny", 2, b"y"), (b"x\ny\n", 2, None), (b"", 0, None),
])  # fmt: skip
def test_lines_without_marks_are_passed_over(data: bytes, number: int, line: bytes | None, size: int) -> None:
    lines = lines_of(data)
    lines.pass_over(b":")
    assert (lines.take(), lines.number) == (line, number)


@pytest.mark.parametrize("data", [b":\n", b"x\n:\n", b"x\n", b"x"])
def test_no_more_is_read_than_to_the_mark_or_the_end_of_a_line_that_is_too_long(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_lines, "_READ_BYTES", 1)
    monkeypatch.setattr(log_lines, "_MOST_BYTES_OF_A_LINE", 4)
    lines = lines_of(data + b"abcdefghijk:\n")
    lines.pass_over(b":")
    assert lines.bytes == (data.index(b":") + 1 if b":" in data else data.rfind(b"\n") + 6)


def test_the_head_is_not_consumed(size: int) -> None:
    lines = lines_of(b"ab\ncd\n")
    assert b"ab\ncd\n".startswith(lines.head(4))
    assert lines.take() == b"ab"
    assert b"cd\n".startswith(lines.head(2))
    assert lines.head(100)[:1] == b"c"
    assert (lines.take(), lines.take()) == (b"cd", None)


@pytest.mark.parametrize(("data", "taken", "rest"), [
    (b"P a\nP b\nx\n", [b"a", b"b"], b"x"), (b"P a\nP -b\nP c\n", [b"a"], b"P -b"),
    (b"P -a\n", [], b"P -a"), (b"x\nP a\n", [], b"x"),
    (b"P a\nP longer\nP c\nP -d\n", [b"a", b"longer", b"c"], b"P -d"), (b"P a\nP b", [b"a"], b"P b"),
    (b"P a\n\nP b\n", [b"a"], b""), (b"", [], None),
])  # fmt: skip
def test_lines_that_continue_a_message(
    data: bytes, taken: list[bytes], rest: bytes | None, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_lines, "_READ_BYTES", max(size, 3))
    lines = lines_of(b"first\n" + data)
    assert lines.take() == b"first"
    lines.head(2)
    found: list[bytes] = []
    # Only lines whose beginning was read already are looked at: the next ones are taken one by one.
    while part := lines.take_continued(b"P ", lambda text: not text.startswith(b"-")):
        found += part
        lines.head(2)
    assert found == taken
    assert lines.number == 1 + len(taken)
    assert lines.take() == rest


def test_a_message_ends_where_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "_MOST_BYTES_OF_A_LINE", 6)
    lines = lines_of(b"first\n" + b"P abc\n" * 10)
    lines.take()
    assert 2 <= len(lines.take_continued(b"P ", lambda _: True)) < 10
    monkeypatch.setattr(log_lines, "_MOST_BYTES_OF_A_LINE", 4_000)
    lines = lines_of(b"first\n" + (b"P " + b"x" * 3_000 + b"\n") * 5)
    lines.take()
    assert lines.take_continued(b"P ", lambda _: True) == [b"x" * 3_000] * 2


def docker(*lines: tuple[str, str]) -> bytes:
    return b"".join(json.dumps({"log": text, "stream": name}).encode() + b"\n" for name, text in lines)


STAMP = b"2026-11-20T15:24:13.1Z "
TORCH = "V1120 15:24:13.250000 3327 torch/x.py:1] {text}"
A, B, C = TORCH.format(text="a"), TORCH.format(text='"b"'), TORCH.format(text="c").replace("15:24", "15:25")


def notebook(*outputs: dict[str, object]) -> bytes:
    """As Jupyter writes one, with the outputs of one cell."""
    cell = {"cell_type": "code", "metadata": {}, "outputs": [*outputs], "source": ["f(x)"]}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4}, indent=1).encode()


def messages(*texts: str) -> list[dict[str, object]]:
    """As Google's and Amazon's cloud logging export them."""
    return [{"insertId": "x", "jsonPayload": {"message": one}, "timestamp": "2026-11-20"} for one in texts]


def json_lines(*values: object) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in values)


@pytest.mark.parametrize(("packed", "wanted"), [
    (b"a\r\nb\r\n", b"a\nb\n"),
    (b"a\r\nb\r", b"a\nb\r"),
    (b"a\r\nb\rc\r\n", b"a\nb\rc\n"),
    ("a\nä\n".encode("utf-16"), "a\nä\n".encode()),
    (b"\xfe\xff" + "a\nä\n".encode("utf-16-be"), "a\nä\n".encode()),
    (b"\xff\xfea\0b", "ab"[:1].encode() + "\ufffd".encode()),
    (docker(("stdout", "a\n"), ("stdout", "b\n")), b"a\nb\n"),
    # Long lines are in parts, and those of two streams may alternate.
    (docker(("stdout", "a"), ("stderr", "x"), ("stdout", "b\n"), ("stderr", "y\n")), b"ab\nxy\n"),
    (docker(("stdout", "a\n"), ("stdout", "b")), b"a\nb"),
    (docker(("stdout", "a")) + b"no json\n" + docker(("stdout", "b\n")), b"\nab\n"),
    (docker(("stdout", "a")) + b"[1]\n{}\n" + docker(("stdout", "b\n")), b"\n\nab\n"),
    (docker(("stdout", "a\n")) + b'{"log": 7}\n{"log": [\n', b"a\n\n\n"),
    (b'{"log":"a\\n"}\n', b"a\n"),
    (STAMP + b"stdout F a\n" + STAMP + b"stderr F b\n", b"a\nb\n"),
    (STAMP + b"stdout P a\n" + STAMP + b"stderr F b\n" + STAMP + b"stdout F c\n", b"b\nac\n"),
    (STAMP + b"stdout P a\n" + b"other\n" + STAMP + b"stdout F c\n", b"other\nac\n"),
    (STAMP + b"stdout P a\n", b"a"),
    (notebook({"name": "stderr", "text": [f"{A}\n", "more\n"]}, {"name": "stdout", "text": f"x\n{B}"}), f"{A}\nmore\nx\n{B}\n".encode()),
    (json.dumps(messages(A, "x", B)).encode(), f"{A}\nx\n{B}\n".encode()),
    (json.dumps({"events": messages("x", f"{A}\n{B}\n")}, indent=2).encode(), f"x\n{A}\n{B}\n".encode()),
    (json_lines(*messages("x", A, B)), f"x\n{A}\n{B}\n".encode()),
    # A line of another program is one of the log.
    (json_lines(*messages(A, B)) + b"no json\n" + json_lines(*messages("y")), f"{A}\n{B}\nno json\ny\n".encode()),
    # Newest first, as consoles of cloud logging list lines; of rows of CSV, and behind what fluentd writes before a record.
    (f"{C}\nx\n{A}".encode(), f"{A}\nx\n{C}\n".encode()),
    (json.dumps(messages(C, "x", A)).encode(), f"{A}\nx\n{C}\n".encode()),
    # Two containers whose processes have one pid, of which one began later: as they are.
    (f"b | {C}\na | {A}\nb | {C}\na | {A}\n".encode(), f"b | {C}\na | {A}\nb | {C}\na | {A}\n".encode()),
    (f'time,message\n1,"{C}"\n2,x\n3,{A}\n'.encode(), f"{A}\nx\n{C}\n".encode()),
    (f'time,message\n1,{A}\n2,"a, ""b""\nc"\n'.encode(), f'{A}\na, "b"\nc\n'.encode()),
    (f"Hello, world\n{A}\n{A}\n".encode(), f"Hello, world\n{A}\n{A}\n".encode()),
    (b"".join(b"2026-11-20\ttag\t" + one for one in json_lines(*messages(A, "x", B)).splitlines(keepends=True)), f"{A}\nx\n{B}\n".encode()),
    # What is cut, and a notebook that printed nothing of torch's, stays as it is.
    (json.dumps(messages(A, B)).encode()[:-1], json.dumps(messages(A, B)).encode()[:-1]),
    (notebook({"name": "stderr", "text": ["x\n"]}), notebook({"name": "stderr", "text": ["x\n"]})),
])  # fmt: skip
def test_what_was_packed(
    packed: bytes, wanted: bytes, size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(byte_source, "_PIECE_BYTES", max(size, 1))
    unpack = unpacking(packed)
    assert b"".join(unpack(io.BytesIO(packed))) == wanted
    for data in (packed, gzip.compress(packed)):
        (tmp_path / "log").write_bytes(data)
        with open_bytes(str(tmp_path / "log")) as stream:
            assert stream.read() == wanted


def test_json_that_is_too_long_is_read_where_each_line_is_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, wanted = json_lines(*messages(*[A] * 9)), f"{A}\n".encode() * 9
    whole = json.dumps(messages(*[A] * 9), indent=1).encode()
    for packed, most, is_read in [
        (lines, len(lines) // 3, True),
        (lines, 9_999, True),
        (whole, 9_999, True),
        (whole, len(whole) // 3, False),
    ]:
        monkeypatch.setattr(byte_source, "_MOST_BYTES_OF_JSON", most)
        with (
            contextlib.nullcontext()
            if is_read
            else pytest.raises(TooMuchError, match="each line is a JSON value")
        ):
            assert b"".join(unpacking(packed)(io.BytesIO(packed))) == wanted  # type: ignore[misc, arg-type]


def test_a_log_that_is_too_long_to_be_turned_round_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = b"".join(
        TORCH.format(text="a").replace("13.25", f"{second}.25").encode() + b"\n"
        for second in range(59, 10, -1)
    )
    monkeypatch.setattr(byte_source, "_MOST_BYTES_OF_JSON", 1000)
    with pytest.raises(TooMuchError, match="begin with the newest line"):
        b"".join(unpacking(packed)(io.BytesIO(packed)))  # type: ignore[misc, arg-type]


def test_json_is_read_to_the_damage(tmp_path: Path) -> None:
    packed = gzip.compress(json_lines(*({"message": f"{A} {number}"} for number in range(20_000))))
    (tmp_path / "log").write_bytes(packed[: len(packed) // 2])
    with open_bytes(str(tmp_path / "log")) as stream:
        space, pieces = bytearray(1 << 21), Pieces(stream)
        lines = bytes(space[: pieces.read_into(memoryview(space))]).split(b"\n")
        assert lines[:1000] == [f"{A} {number}".encode() for number in range(1000)]
        assert pieces.failure() == (
            "damaged_compression",
            "Compressed file ended before the end-of-stream marker was reached",
        )


def test_json_that_is_nested_too_deep_is_an_empty_line() -> None:
    packed = docker(("stdout", "a\n")) + b'{"log": ' + b"[" * 100_000 + b"\n"
    unpack = unpacking(packed)
    assert b"".join(unpack(io.BytesIO(packed))) == b"a\n\n"


@pytest.mark.parametrize(
    "head", [b"", b"a", b"a\n", b"a\r\nb\n", b'{"other": 1}\n', b"2026-11-20 stdout F a\n", b"\r"]
)
def test_what_is_not_packed(head: bytes) -> None:
    assert unpacking(head) is None


def test_packings_may_be_in_packings_and_not_without_end(tmp_path: Path) -> None:
    data = b"a\r\n"
    for depth in range(1, 6):
        (tmp_path / "log").write_bytes(data)
        with open_bytes(str(tmp_path / "log")) as stream:
            assert (stream.read() == b"a\n") == (depth <= 4)
        data = docker(("stdout", data.decode()))


def test_what_unpacks_closes_what_is_packed() -> None:
    packed = io.BytesIO(b"a\r\n")
    unpack = unpacking(b"a\r\n")
    assert unpack is not None
    Unpacked(packed, unpack).close()
    assert packed.closed


def test_a_long_line_of_a_packing_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_source, "_PIECE_BYTES", 4)
    monkeypatch.setattr(byte_source, "_MOST_BYTES_OF_A_LINE", 8)
    parts = list(byte_source._lines(io.BytesIO(b"abcdefghijklmnopqrst\nuv\n")))
    assert b"".join(parts) == b"abcdefghijklmnopqrst\nuv\n"
    assert len(parts[0]) == 8


def test_the_head_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"hello world")
    assert [read_head(str(path), size) for size in (3, 100)] == [b"hel", b"hello world"]
    path.write_bytes(gzip.compress(b"hello world" * 1000)[:-20])
    assert read_head(str(path), 5) == b"hello"
    path.write_bytes(gzip.compress(b"hello")[:12])
    assert read_head(str(path)) == b""
    assert byte_source._HEAD_BYTES >= 100


LINE = b"V1120 15:24:13.250000 3327 torch/x.py:1] text"
OWN = b"V1120 15:24:13.250000 3327 mine/x.py:1] text"


@pytest.mark.parametrize(("lead", "of_others"), [(lead, of_others) for of_others, leads in [
    (True, [b"", b"[default0]:", b"[pod/a/b] ", b"0: ", b"[1,0]<stderr>:", b"(worker pid=7) ",
     b"(worker pid=7, ip=10.0.0.1) ", b"web-1  | ", b"Nov 22 12:00:00 host python[1]: ",
     b"2026-11-20T15:24:13.1Z stderr F ", b"\x1b[36m"]),
    # What a program prints before a record of torch's own does not hide it.
    (False, [b"step 3 ", b"loss=0.25 "]),
] for lead in leads])  # fmt: skip
def test_what_may_precede_a_prefix(lead: bytes, of_others: bool) -> None:
    leads = LauncherPrefixes()
    assert leads.prefix_of(lead + LINE) is not None
    assert (leads.prefix_of(lead + OWN) is not None) is of_others
    short = b"INFO:torch._inductor.codecache:text"
    assert (leads.short_of(lead + short) is not None) is of_others
    assert leads.short_of(lead + b"INFO:mine:text") is None
    # Where every line has one, any text is the name of a process.
    named = LauncherPrefixes(is_named=True)
    assert named.prefix_of(lead + OWN) is not None


@pytest.mark.parametrize(("lead", "name"), [
    (b"", (b"", None)), (b"[rank3]:", (b"", 3)), (b"[default0]:[rank1]:", (b"[default0]:", 1)),
    (b"web-1  | ", (b"web-1 |", None)), (b"\x1b[36mweb-1  | \x1b[0m", (b"web-1 |", None)),
    (b"2026-11-20T15:24:13.1Z [pod/a] ", (b"[pod/a]", None)), (b"step 3 ", (b"", None)),
    (b"0: \r 40%|###", (b"", None)),
])  # fmt: skip
def test_the_name_that_a_launcher_gives(lead: bytes, name: tuple[bytes, int | None]) -> None:
    leads = LauncherPrefixes()
    assert leads.name(lead) == leads.name(lead) == name
    wanted = b"step 3" if lead.startswith(b"step") else b"0:" if b"\r" in lead else name[0]
    assert LauncherPrefixes(is_named=True).name(lead) == (wanted, name[1])


@pytest.mark.parametrize(("names", "wanted"), [(names, wanted) for wanted, logs in [
    (False, [[b"", b"", b"a "], [b"a ", b"a ", b"", b""], [b"a ", b"b ", b"c ", b"d "], []]),
    (True, [[b"a ", b"a "], [b"a ", b"a ", b"a ", b""], [b"a ", b"b ", b"a ", b"b "], [b"a "]]),
] for names in logs])  # fmt: skip
def test_whether_any_text_is_a_name(names: list[bytes], wanted: bool) -> None:
    assert LauncherPrefixes(b"\n".join(name + LINE for name in names)).is_named is wanted


def test_a_rank_that_none_has() -> None:
    assert tells_no_rank(b"[rank1234567890]:")
    assert not tells_no_rank(b"[rank123456789]:")


@pytest.mark.parametrize(("text", "wanted"), [
    (b"text\x1b[0m", b"text"), (b"text\x1b[0m\x1b[K", b"text"),
    (b"a\x1b[01;31m\x1b[Ktext\x1b[m\x1b[K", b"atext"), (b"item", b"item"), (b"text\x1b[0mK", b"textK"),
    (b"\x1b[0m", b""), (b"text", b"text"),
])  # fmt: skip
def test_colours_are_left_out(text: bytes, wanted: bytes) -> None:
    assert uncoloured(text) == wanted


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
