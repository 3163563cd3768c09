"""What is found at a path, and by what it is read: folders in, readers and paths out; by what is inside, not by names."""

import gzip
import inspect
import io
import json
import os
import pickle
import shutil
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

from cachescope.cli import main
from cachescope.errors import SourceError
from cachescope.readers.index.log_tables import LogTables, write_logs
from cachescope.readers.kinds import LOG_HEAD_BYTES
from cachescope.readers.logs.byte_source import zstd
from cachescope.readers.reading import Reading
from cachescope.readers.sources import _distinct, logs_in, read_sources
from tests.readers.directory.test_followed_links import FX, GRAPH, NAME
from tests.readers.directory.test_shipped import body
from tests.readers.logs.test_text_lookups import Log
from tests.readers.logs.test_trace_process import looked_up
from tests.readings import read_by

TRACE = looked_up().encode()
TEXT = ("\n".join(Log().outcome("f1", "hit").lines) + "\n").encode()
SNAPSHOT = json.dumps({"runtime_context": {}, "compile_context": {}}).encode()
ENTRY = f"fxgraph/aa/{FX}/{NAME}"
CONTENTS = {
    "trace": TRACE,
    "text": TEXT,
    "late": b"a launcher says something\n" * 2_000 + TEXT,
    "packed": gzip.compress(TRACE),
    "snapshot": SNAPSHOT,
    "mega": body(("pgo", [("k", b"x")])),
    "pickled": pickle.dumps((body(("pgo", [("k", b"x")])), {"pgo": ["k"]})),
    "of 2.7": pickle.dumps((bytes(7) + b"\x01" + bytes(15) + b"4f" + b"a" * 51, {})),
    "saved": pickle.dumps((body(("pgo", [("k", b"x")])), {"pgo": ["k"]}), 2),  # as torch.save does
    "notes": b"nothing of torch's",
    "empty": b"",
}
Sources = list[tuple[str, str]]


def put(root: Path, *files: str) -> Path:
    """Files by their contents: `b/x:trace` is a trace called x in the folder b."""
    for file in files:
        name, _, kind = file.partition(":")
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(GRAPH if kind == "entry" else CONTENTS[kind])
    return root


def found(root: Path, *paths: str) -> tuple[Sources, list[tuple[str, str, str]]]:
    """What is read by what, and the problems, with paths below the root."""
    reading = Reading()
    sources = [
        (kind, os.path.relpath(path, root))
        for kind, path in _distinct([str(root / path) for path in paths], reading)
    ]
    return sources, [(os.path.relpath(one.source, root), one.kind, one.message) for one in reading.problems]


@pytest.mark.parametrize(("files", "path", "wanted"), [
    (["a:trace"], "a", [("trace", "a")]),
    (["a:text"], "a", [("text", "a")]),
    # Its first line of torch's comes late.
    (["a:late"], "a", [("text", "a")]),
    (["a:packed"], "a", [("trace", "a")]),
    (["a:snapshot"], "a", [("snapshot", "a")]),
    (["a:mega"], "a", [("shipped", "a")]),
    (["b:text", "a:trace", "c:notes", "d:empty"], ".", [("trace", "a"), ("text", "b")]),
    (["y/b:text", "x/deep/a:trace"], ".", [("trace", "x/deep/a"), ("text", "y/b")]),
    (["a1:trace", "a2:trace", "b:trace"], "a*", [("trace", "a1"), ("trace", "a2")]),
    ([f"cache/{ENTRY}:entry"], "cache", [("directory", "cache")]),
    ([f"cache/{ENTRY}:entry", "a:trace"], ".", [("trace", "a"), ("directory", "cache")]),
    # A log in a cache is one where torch writes nothing of that name.
    ([f"c/{ENTRY}:entry", "c/a.log:trace"], "c", [("directory", "c"), ("trace", "c/a.log")]),
    ([f"c/{ENTRY}:entry", "c/logs/a:trace", "c/logs/b/c:trace"], "c", [("directory", "c"), ("trace", "c/logs/a")]),
    ([f"c/{ENTRY}:entry", "c/z:trace", "c/b:text"], "c", [("directory", "c"), ("text", "c/b"), ("trace", "c/z")]),
    ([f"c/{ENTRY}:entry", "c/fxgraph/a:trace", "c/ab/a:trace", "c/triton/a:trace"], "c", [("directory", "c")]),
    # A cache in a cache is read with it.
    ([f"c/{ENTRY}:entry", f"c/inner/{ENTRY}:entry", "c/inner/a:trace"], "c", [("directory", "c")]),
    ([f"c/{ENTRY}:entry", "c/memoizer_cache.json:trace"], "c", [("directory", "c")]),
])  # fmt: skip
def test_what_is_at_a_path(files: list[str], path: str, wanted: Sources, tmp_path: Path) -> None:
    put(tmp_path, *files)
    assert found(tmp_path, path) == (wanted, [])


def test_logs_in_a_cache_that_are_links_are_not_read(tmp_path: Path) -> None:
    put(tmp_path, f"c/{ENTRY}:entry", "a.log:trace", "logs/b.log:trace")
    (tmp_path / "c" / "a.log").symlink_to(tmp_path / "a.log")
    (tmp_path / "c" / "logs").symlink_to(tmp_path / "logs")
    assert found(tmp_path, "c") == ([("directory", "c")], [])


def test_links_to_folders_are_followed_only_to_a_cache(tmp_path: Path) -> None:
    put(tmp_path, f"cache/{ENTRY}:entry", "logs/a:trace", "top/b:trace")
    (tmp_path / "top" / "x").symlink_to(tmp_path / "cache")
    (tmp_path / "top" / "y").symlink_to(tmp_path / "logs")
    (tmp_path / "top" / "z").symlink_to(tmp_path / "logs" / "a")
    (tmp_path / "top" / "here").symlink_to(tmp_path / "top")
    sources, problems = found(tmp_path, "top")
    assert sources == [("trace", "top/b"), ("directory", "top/x"), ("trace", "top/z")]
    # What lies elsewhere is not read, and said to be there. What lies within was found already.
    left_out = (
        "top/y",
        "unknown_source",
        "not looked into: a link to a folder elsewhere; give that folder too",
    )
    assert problems == [left_out]
    assert found(tmp_path, "top/y") == ([("trace", "top/y/a")], [])


def test_a_source_that_is_given_twice_is_read_once(tmp_path: Path) -> None:
    put(tmp_path, "logs/a:trace", "logs/b:text")
    (tmp_path / "link").symlink_to(tmp_path / "logs" / "a")
    wanted = [("text", "logs/b"), ("trace", "link")]
    assert found(tmp_path, "logs/b", "link", "logs", "logs/a", "logs/*") == (wanted, [])


PACKED = "what torch.compiler.save_cache_artifacts() returns is packed into this file"
NOTHING = "holds no trace, text log, cache entry or snapshot of torch.compile; record with TORCH_TRACE=DIR"


@pytest.mark.parametrize(("files", "path", "kind", "message"), [
    ([], "absent", "missing", "there is no such file or directory"),
    ([], "a*", "missing", "there is no such file or directory"),
    (["a:empty"], "a", "empty", "this file is empty"),
    (["a:notes"], "a", "unknown_source", f"this file {NOTHING}"),
    (["a:pickled"], "a", "unknown_source", PACKED),
    (["a:saved"], "a", "unknown_source", PACKED),
    (["a:of 2.7"], "a", "unknown_source", PACKED),
    (["d/a:notes"], "d", "unknown_source", f"this directory {NOTHING}"),
    (["d/a:empty"], "d", "unknown_source", f"this directory {NOTHING}"),
])  # fmt: skip
def test_a_path_that_holds_nothing_says_so(
    files: list[str], path: str, kind: str, message: str, tmp_path: Path
) -> None:
    put(tmp_path, *files)
    sources, problems = found(tmp_path, path)
    assert (sources, [(one, what) for one, what, _ in problems]) == ([], [(path, kind)])
    assert problems[0][2].startswith(message)
    # Beside something else it is a problem, by itself an error.
    put(tmp_path, "z:trace")
    reading = read_by(read_sources, [str(tmp_path / path), str(tmp_path / "z")])
    assert [(one.where, one.kind) for one in reading.problems] == [("the whole source", kind)]
    assert len(reading.processes) == 1
    if kind == "missing":
        with pytest.raises(SourceError, match=message):
            read_sources([str(tmp_path / path)], Reading())


def test_an_empty_folder_and_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    assert found(tmp_path, "d") == ([], [("d", "empty", "this directory is empty")])
    # What is wrong with it is said once.
    assert found(tmp_path, "link") == ([], [("link", "missing", "this link leads nowhere")])
    assert found(tmp_path, "d", "link")[1][1][1] == "missing"


def test_folders_may_be_nested_more_deeply_than_calls(tmp_path: Path) -> None:
    put(tmp_path, "d/a:trace", f"d/{'x/' * 200}b:trace")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 150)
    try:
        sources, _ = found(tmp_path, "d")
    finally:
        sys.setrecursionlimit(limit)
    assert sources == [("trace", "d/a"), ("trace", f"d/{'x/' * 200}b")]


@pytest.mark.parametrize("kind", ["trace", "text", "notes"])
@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "zip", "zst"])
@pytest.mark.parametrize("given", ["archive", ".", "arch*"])
def test_an_archive_is_read_as_its_folder(kind: str, mode: str, given: str, tmp_path: Path) -> None:
    put(tmp_path, f"a:{kind}")
    os.utime(tmp_path / "a", (1_750_000_000, 1_750_000_000))
    if mode == "zip":
        with zipfile.ZipFile(tmp_path / "archive", "w", zipfile.ZIP_DEFLATED) as members:
            member = zipfile.ZipInfo("in/it/a")
            # The time as Info-ZIP and most others write it, beside one without a zone.
            member.extra = b"UT\5\0\1" + (1_750_000_000).to_bytes(4, "little")
            members.writestr(member, (tmp_path / "a").read_bytes())
            members.writestr("../../outside", b"x")
    else:
        with tarfile.open(tmp_path / "archive", mode if mode != "zst" else "w") as archive:  # type: ignore[call-overload]
            archive.add(tmp_path / "a", "in/it/a")
            archive.add("/etc/passwd", "../../outside")
        if mode == "zst":
            (tmp_path / "archive").write_bytes(zstd.compress((tmp_path / "archive").read_bytes()))
    (tmp_path / "a").unlink()
    sources, problems = found(tmp_path, given)
    unpacked = [(one, path.endswith("/archive/in/it/a")) for one, path in sources]
    assert unpacked == [(kind, True)] * (kind != "notes")
    assert all(os.path.getmtime(tmp_path / path) == 1_750_000_000 for _, path in sources)
    assert len(problems) == (kind == "notes")
    assert not any(name.endswith("outside") for name in os.listdir(tmp_path))


def test_a_tar_that_ends_with_a_zip_is_a_tar(tmp_path: Path) -> None:
    put(tmp_path, "a:trace")
    with zipfile.ZipFile(tmp_path / "b", "w") as members:
        members.writestr("notes", "x")
    with tarfile.open(tmp_path / "archive", "w") as archive:
        archive.add(tmp_path / "a", "a")
        archive.add(tmp_path / "b", "b")
    assert zipfile.is_zipfile(tmp_path / "archive")
    ((kind, path),) = found(tmp_path, "archive")[0]
    assert kind == "trace" and path.endswith("/archive/a")


@pytest.mark.parametrize("begins", ["step 1: loss 0.5\n", "\0", '{"step": 1}\n'])
@pytest.mark.parametrize("kind", ["trace", "text"])
def test_torch_begins_late_in_a_log(kind: str, begins: str, tmp_path: Path) -> None:
    put(tmp_path, f"d/a:{kind}")
    log = tmp_path / "d" / "a"
    log.write_bytes(begins.encode() * (2 * LOG_HEAD_BYTES // len(begins)) + b"\n" + log.read_bytes())
    # Any large file may lie in a folder: of these the beginning alone is searched.
    problem = (
        "no line of torch is among its first 4.2 MB, and the rest was not searched: give the file itself"
    )
    assert found(tmp_path, "d/a") == ([(kind, "d/a")], [])
    put(tmp_path, "d/b:text")
    told = [] if begins.startswith("{") else [("d/a", "limit", problem)]
    assert found(tmp_path, "d") == ([("text", "d/b")], told)


def test_what_is_packed_into_a_file_is_told_of_the_file_in_its_folder(tmp_path: Path) -> None:
    put(tmp_path, "d/a:saved", "d/b:trace", "d/c:notes")
    sources, ((place, kind, _),) = found(tmp_path, "d")
    assert (sources, place, kind) == ([("trace", "d/b")], "d/a", "unknown_source")


def test_archives_in_a_folder_are_unpacked_up_to_a_limit(tmp_path: Path) -> None:
    put(tmp_path, "a:trace")
    with tarfile.open(tmp_path / "inner", "w:gz") as archive:
        archive.add(tmp_path / "a", "a")
    (tmp_path / "d").mkdir()
    with tarfile.open(tmp_path / "d" / "1", "w") as archive:
        archive.add(tmp_path / "inner", "inner")
    shutil.copy(tmp_path / "d" / "1", tmp_path / "d" / "0")
    os.truncate(tmp_path / "d" / "0", 300 << 20)  # of zeros, as at the end of each tar
    sources, problems = found(tmp_path, "d")
    assert [(kind, path.endswith("/inner/a")) for kind, path in sources] == [("trace", True)]
    message = "was not looked into, as one of more than 250.0 MB of archives: give it by itself"
    assert problems == [("d/0", "limit", message)]
    assert [kind for kind, _ in found(tmp_path, "d/0")[0]] == ["trace"]
    # What did not change is not unpacked again.
    assert found(tmp_path, "d")[0] == sources
    os.utime(tmp_path / "d" / "1", (1, 1))
    assert found(tmp_path, "d")[0] != sources


def test_archives_in_an_archive_unpack_to_no_more_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "room").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "room"))
    zeros = io.BytesIO()
    with zipfile.ZipFile(zeros, "w", zipfile.ZIP_DEFLATED) as inner:
        inner.writestr("zeros", bytes(1 << 20))
    with zipfile.ZipFile(tmp_path / "outer.zip", "w", zipfile.ZIP_DEFLATED) as outer:
        for number in range(200):
            outer.writestr(f"{number:03}.zip", zeros.getvalue())
    size = (tmp_path / "outer.zip").stat().st_size
    _, problems = found(tmp_path, "outer.zip")
    assert 100 < len(problems) < 200
    used = sum(path.stat().st_size for path in (tmp_path / "room").rglob("*") if path.is_file())
    assert 100 * size < used <= 201 * size


@pytest.mark.parametrize("what", ["cut", "cut by zstd", "zeros"])
def test_an_archive_that_cannot_be_unpacked_says_so(what: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(1 << 24) if what == "zeros" else os.urandom(1 << 17))
    with tarfile.open(tmp_path / "a.tar", "w" if "zstd" in what else "w:gz") as archive:
        archive.add(tmp_path / "a", "a")
    if what != "zeros":
        data = (tmp_path / "a.tar").read_bytes()
        data = zstd.compress(data) if "zstd" in what else data
        (tmp_path / "a.tar").write_bytes(data[: len(data) // 2])
    sources, (problem,) = found(tmp_path, "a.tar")
    assert not sources and problem[2].endswith("unpack it, and give its folder")


def test_a_folder_that_may_not_be_listed_is_a_problem_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not by chmod: the tests may run as root, who may read everything.
    put(tmp_path, "a:trace", "shut/b:trace", "z:text")
    real = os.listdir

    def refuse(path: str) -> list[str]:
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "listdir", refuse)
    sources, problems = found(tmp_path, ".")
    assert sources == [("trace", "a"), ("text", "z")]
    assert problems == [("shut", "unreadable", "cannot be read: Permission denied")]


def test_logs_alone_are_asked_for(tmp_path: Path) -> None:
    put(tmp_path, "a:trace", "b:text", "c:snapshot", f"d/{ENTRY}:entry")
    paths = [str(tmp_path / name) for name in "abcd"]
    assert [os.path.basename(path) for _, path in logs_in(paths, Reading())] == ["a", "b"]
    with pytest.raises(SourceError, match="there is no log among these") as error:
        logs_in(paths[2:], Reading())
    assert error.value.source == ", ".join(paths[2:])
    with pytest.raises(SourceError, match="no such file"):
        logs_in([*paths, str(tmp_path / "absent")], Reading())


def test_sources_are_read_in_their_order_and_each_is_told_before(tmp_path: Path) -> None:
    put(tmp_path, "a:snapshot", "b:trace", "c:text")
    paths = [str(tmp_path / name) for name in "bac"]
    seen: list[tuple[str, int, int]] = []
    reading = Reading()
    read_sources(paths, reading, lambda *told: seen.append(told))
    assert seen == [(path, at, 3) for at, path in enumerate(paths)]
    assert [one.source for one in reading.processes] == [paths[0], paths[2]]
    assert [row.source for row in reading.contexts] == [paths[1]]


def test_where_nothing_can_be_read_the_first_failure_is_raised(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(SNAPSHOT[:-1])
    (tmp_path / "b").write_bytes(SNAPSHOT[:-2])
    paths = [str(tmp_path / name) for name in "ab"]
    for order in (paths, paths[::-1]):
        with pytest.raises(SourceError, match="not readable as JSON") as error:
            read_sources(order, Reading())
        assert error.value.source == order[0]
    put(tmp_path, "c:snapshot")
    assert [one.source for one in read_by(read_sources, [*paths, str(tmp_path / "c")]).problems] == paths
    with pytest.raises(SourceError):
        read_sources([*paths, str(tmp_path / "c")], Reading(strict=True))


def test_a_file_of_collected_logs_is_read_as_one(tmp_path: Path) -> None:
    write_logs(tmp_path, [LogTables.of("/a", Reading())])
    (file,) = tmp_path.iterdir()
    assert found(tmp_path, ".") == ([("logs in columns", file.name)], [])


@pytest.mark.skipif(not os.path.exists("/proc/self/mountinfo"), reason="only Linux lists its mounts there")
def test_files_of_the_kernel_are_not_looked_into(tmp_path: Path) -> None:
    """There are a million of them, and some never end. A link such as /proc/PID/root leads out again."""
    put(tmp_path, "a:trace")
    reading = Reading()
    there = f"/proc/self/root{tmp_path}"
    assert [path for _, path in _distinct(["/proc/self", there], reading)] == [f"{there}/a"]
    assert [(one.source, one.kind) for one in reading.problems] == [("/proc/self", "unknown_source")]
    with pytest.raises(SourceError, match="not looked into"):
        read_sources(["/proc"], Reading())


@pytest.mark.parametrize(("files", "kinds"), [(["x/a:notes"], []), (["x/a:trace"], ["trace"])])
def test_a_pipe_in_place_of_a_note_is_not_waited_for(
    files: list[str], kinds: list[str], tmp_path: Path
) -> None:
    put(tmp_path, *files)
    os.mkfifo(tmp_path / "x" / "run.json")
    assert [kind for kind, _ in found(tmp_path, ".")[0]] == kinds
    if kinds:
        read_sources([str(tmp_path)], reading := Reading())
        assert len(reading.processes) == 1


@pytest.mark.parametrize("command", ["explain", "entries", "contexts", "verify", "lock", "audit"])
@pytest.mark.parametrize("source", ["/dev/random", "/dev/zero", "/proc/kmsg", "/proc/self/environ", "pipe"])
def test_what_never_ends_is_one_error(
    command: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    if not os.path.exists(source):
        pytest.skip(f"no {source} here")
    assert main([command, source]) == (2 if command == "audit" else 1)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"cachescope: {source}: ")
    assert "not looked into: " in line or "a pipe; write it to a file first" in line
