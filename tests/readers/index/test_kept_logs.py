"""A log that is opened again is what it was, or it is read anew: nothing changed, damaged or half-written is served."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.errors import RecordError
from cachescope.readers.index import kept_logs as index_module
from cachescope.readers.index import log_state
from cachescope.readers.index.kept_logs import Index, index_of_user
from cachescope.readers.logs import many_logs as logs
from cachescope.readers.logs.byte_source import open_bytes
from cachescope.scope import Scope

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of one's own, for logs of any size and age."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CACHESCOPE_NO_INDEX")
    monkeypatch.setattr(log_state, "_LEAST_BYTES", 1)
    monkeypatch.setattr(log_state, "_QUIET_NS", -(10**18))
    return tmp_path / "home" / "cachescope" / "logs"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return trace(tmp_path / "logs" / "a.log", 0)


def trace(path: Path, number: int) -> Path:
    """A trace of the sample `tour`; each has lookups of its own."""
    path.parent.mkdir(exist_ok=True)
    recorded = sorted((cachescope.sample("tour") / "trace").iterdir())[number]
    with open_bytes(str(recorded)) as stream:
        path.write_bytes(stream.read())
    return path


@pytest.fixture
def read_anew(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The logs that were parsed, one after the other."""
    parsed: list[str] = []
    whole = logs.read_alone

    def counted(read: logs.ReadLog, path: str, strict: bool) -> object:
        parsed.append(path)
        return whole(read, path, strict)

    monkeypatch.setattr(logs, "read_alone", counted)
    return parsed


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log_index"))


def assert_same(a: Scope, b: Scope) -> None:
    for name in ("runs", "lookups", "problems"):
        pd.testing.assert_frame_equal(getattr(a.tables, name).frame, getattr(b.tables, name).frame)
    one, other = a.tables.hash_details, b.tables.hash_details
    assert one.components == other.components
    assert [codes.tolist() for codes in one.sets] == [codes.tolist() for codes in other.sets]


def truth(*paths: Path) -> Scope:
    return cachescope.read(*paths, index=False)


def test_the_second_reading_parses_nothing_and_gives_the_same(
    folder: Path, log: Path, read_anew: list[str]
) -> None:
    first = cachescope.read(log)
    assert read_anew == [str(log)]
    assert len(kept(folder)) == 1
    second = cachescope.read(log)
    assert read_anew == [str(log)]
    assert_same(first, truth(log))
    assert_same(second, truth(log))


def test_kept_logs_and_others_are_read_in_order(folder: Path, tmp_path: Path, read_anew: list[str]) -> None:
    paths = [trace(tmp_path / "logs" / f"{number}.log", number) for number in range(4)]
    cachescope.read(paths[2], paths[0])
    read_anew.clear()
    assert_same(cachescope.read(*paths), truth(*paths))
    assert read_anew == [str(paths[1]), str(paths[3])]


def test_workers_are_not_asked_for_what_is_kept(folder: Path, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    paths = [trace(tmp_path / "logs" / f"{number}.log", number) for number in range(2)]
    cachescope.read(paths[0])
    asked = []

    class Counting(ThreadPoolExecutor):
        def submit(self, function, /, *args, **kwargs):  # type: ignore[no-untyped-def]
            asked.extend(path for _, path in args[0])
            return super().submit(function, *args, **kwargs)

    with Counting(1) as executor:
        assert_same(cachescope.read(*paths, executor=executor), truth(*paths))
    assert asked == [str(paths[1])]
    assert len(kept(folder)) == 2


def replace(log: Path) -> None:
    os.replace(trace(log.with_name("other"), 1), log)


def place_of_a_key(data: bytes | bytearray) -> int:
    return data.index(b'"key": "f', data.index(b'{"artifact": {"name": "fx_graph_cache_miss"')) + 20


def replace_by_one_of_the_same_size_and_time(log: Path) -> None:
    at = log.stat()
    data = bytearray(log.read_bytes())
    where = place_of_a_key(data)
    data[where] = ord("a") if data[where] != ord("a") else ord("b")
    log.with_name("other").write_bytes(data)
    os.utime(log.with_name("other"), ns=(at.st_atime_ns, at.st_mtime_ns))
    os.replace(log.with_name("other"), log)


def change_in_place_and_set_the_time_back(log: Path) -> None:
    at = log.stat()
    time.sleep(0.05)  # more than a tick of the file system's clock
    data = log.read_bytes()
    with open(log, "r+b") as file:
        file.seek(place_of_a_key(data))
        file.write(b"zzzz")
    os.utime(log, ns=(at.st_atime_ns, at.st_mtime_ns))


def cut(log: Path) -> None:
    os.truncate(log, log.stat().st_size // 2)


@pytest.mark.parametrize(
    "change",
    [replace, replace_by_one_of_the_same_size_and_time, change_in_place_and_set_the_time_back, cut],
)
def test_a_changed_log_is_read_anew(
    change: Callable[[Path], None], folder: Path, log: Path, read_anew: list[str]
) -> None:
    before = cachescope.read(log)
    change(log)
    after = cachescope.read(log)
    assert read_anew == [str(log)] * 2
    assert_same(after, truth(log))
    assert not after.lookups.equals(before.lookups)
    assert_same(cachescope.read(log), after)
    assert len(read_anew) == 2
    assert len(kept(folder)) == 1  # in the place of the one before


def test_a_link_of_another_rank_has_its_own_rank(folder: Path, log: Path) -> None:
    link = log.with_name("dedicated_log_torch_trace_rank_7_x.log")
    link.symlink_to(log)
    plain = log.with_name("rank_3.log")
    plain.symlink_to(log)
    for _ in range(2):
        assert cachescope.read(link).runs["rank"].tolist() == truth(link).runs["rank"].tolist()
        assert cachescope.read(plain).runs["rank"].tolist() == truth(plain).runs["rank"].tolist()


def test_another_time_zone_reads_a_log_without_one_anew(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_anew: list[str]
) -> None:
    recorded = next(iter((cachescope.sample("entry_truncated") / "text").iterdir()))
    log = Path(shutil.copy(recorded, tmp_path / recorded.name))
    try:
        for zone in ("UTC", "Asia/Tokyo", "Asia/Tokyo"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert_same(cachescope.read(log), truth(log))
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert len(read_anew) == 2


def test_the_path_in_the_frames_is_the_path_as_it_is_given_now(
    folder: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write_bytes(log.read_bytes()[:-100])  # a problem names its source as well
    cachescope.read(log)
    monkeypatch.chdir(log.parent)
    scope = cachescope.read(log.name)
    assert scope.runs["source"].tolist() == [log.name]
    assert set(scope.problems["source"]) == {log.name}


def test_a_damaged_file_of_the_index_is_made_anew(folder: Path, log: Path) -> None:
    whole = truth(log)
    cachescope.read(log)
    (file,) = kept(folder)
    good = file.read_bytes()
    line = good.index(b"\n", 20)
    damages = [good[:size] for size in (0, 5, 30, line + 1, len(good) // 2, len(good) - 1)]
    damages += [b"", b"\0" * 5000, good + b"more", good[: line + 1] + b"PAR1" + good[line + 1 :]]
    for damage in damages:
        file.write_bytes(damage)
        assert_same(cachescope.read(log), whole)
        assert file.read_bytes()[:line] == good[:line]


def test_no_flipped_bit_of_the_index_is_believed(folder: Path, log: Path) -> None:
    cachescope.read(log)
    (file,) = kept(folder)
    good = file.read_bytes()
    place = Index(folder).kept(str(log))
    assert place is not None and place.as_it_is(str(log)) is not None
    for number in range(400):
        damaged = bytearray(good)
        damaged[number * (len(good) - 1) // 399] ^= 1 << number % 8
        file.write_bytes(damaged)
        assert place.as_it_is(str(log)) is None


def test_another_version_of_cachescope_reads_anew(
    folder: Path, log: Path, monkeypatch: pytest.MonkeyPatch, read_anew: list[str]
) -> None:
    cachescope.read(log)
    monkeypatch.setattr(log_state, "FORMAT", log_state.FORMAT + 1)
    cachescope.read(log)
    monkeypatch.setattr(log_state, "_code", lambda: "another reader")
    cachescope.read(log)
    assert len(read_anew) == 3


def test_strict_raises_for_a_kept_problem_as_well(folder: Path, log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-100])
    assert len(cachescope.read(log).problems) == 1
    with pytest.raises(RecordError) as told:
        cachescope.read(log, strict=True)
    with pytest.raises(RecordError) as expected:
        cachescope.read(log, strict=True, index=False)
    assert str(told.value) == str(expected.value)


def test_small_logs_leave_nothing_behind(folder: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_state, "_LEAST_BYTES", log.stat().st_size + 1)
    cachescope.read(log)
    assert not folder.exists()


def test_fresh_logs_are_kept_only_to_go_on_from(
    folder: Path, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_anew: list[str]
) -> None:
    monkeypatch.setattr(log_state, "_QUIET_NS", 10**18)
    text = next(iter((cachescope.sample("entry_truncated") / "text").iterdir()))
    cachescope.read(shutil.copy(text, tmp_path))
    assert not folder.exists()
    read_anew.clear()
    for _ in range(2):
        assert_same(cachescope.read(log), truth(log))
    assert read_anew == [str(log)] * 2


def test_it_can_be_switched_off(folder: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cachescope.read(log, index=False)
    monkeypatch.setenv("CACHESCOPE_NO_INDEX", "1")
    cachescope.read(log)
    assert not folder.exists()


def test_it_is_never_kept_where_torch_keeps_a_cache(
    folder: Path, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "home"))
    assert index_of_user() is None
    cachescope.read(log)
    assert not folder.exists()


@pytest.mark.parametrize("home", ["a_file", "/proc/may_not_be_written"])
def test_a_folder_that_cannot_be_written_is_no_error(
    home: str, folder: Path, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_file").write_text("in the place of a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / home))
    for _ in range(2):
        assert_same(cachescope.read(log), truth(log))


def program(text: str, log: Path) -> list[str]:
    """A process of its own that reads `log`; sizes and ages do not count there either."""
    lines = f"""
        import sys
        from cachescope.readers.index import log_state
        log_state._LEAST_BYTES, log_state._QUIET_NS = 1, -(10**18)
        import cachescope
        log = {str(log)!r}
        {textwrap.indent(textwrap.dedent(text).strip(), " " * 8).strip()}
    """
    return [sys.executable, "-c", textwrap.dedent(lines)]


def test_a_full_disk_leaves_no_file_and_the_data_are_right(folder: Path, log: Path) -> None:
    def limit() -> None:
        # A write beyond this fails, as on a full disk; the lock file is empty.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    code = "print(len(cachescope.read(log).lookups))"
    # Python 3.11 keeps bytecode that it could write only in part, and every later process fails on it.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        program(code, log),
        cwd=ROOT,
        env=environment,
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(len(truth(log).lookups))]
    assert done.stderr == ""
    assert {path.name for path in folder.iterdir()} <= {"lock"}


def test_an_interrupt_while_it_is_written_leaves_nothing(
    folder: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(index_module.os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cachescope.read(log)
    assert {path.name for path in folder.iterdir()} <= {"lock"}
    assert_same(cachescope.read(log), truth(log))
    assert len(kept(folder)) == 1


def test_a_process_killed_while_it_writes_leaves_nothing_that_is_read(folder: Path, log: Path) -> None:
    code = """
        import os, signal
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        cachescope.read(log)
    """
    done = subprocess.run(program(code, log), cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = folder.glob("*.unfinished")
    assert kept(folder) == []
    assert_same(cachescope.read(log), truth(log))
    assert len(kept(folder)) == 1
    os.utime(left, (0, 0))
    Index(folder).trim()
    assert not left.exists()


def test_two_processes_that_open_one_log_at_once_both_have_it(folder: Path, log: Path) -> None:
    code = """
        sys.stdin.read(1)
        print(len(cachescope.read(log).lookups), len(cachescope.read(log).lookups))
    """
    both = [
        subprocess.Popen(
            program(code, log), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdin is not None
        process.stdin.write("x")
        process.stdin.flush()
    count = str(len(truth(log).lookups))
    assert [process.communicate()[0].split() for process in both] == [[count, count]] * 2
    assert [process.returncode for process in both] == [0, 0]
    assert len(kept(folder)) == 1
    assert_same(cachescope.read(log), truth(log))


def test_what_was_not_used_for_longest_goes_first(folder: Path, tmp_path: Path) -> None:
    paths = [trace(tmp_path / "logs" / f"{number}.log", number) for number in range(3)]
    for path in paths:
        cachescope.read(path)
    index = Index(folder)
    ages = {log.path: log for log in index.logs()}
    assert set(ages) == {str(path) for path in paths}
    for age, file in enumerate(kept(folder)):
        os.utime(file, (10**9 + age, 10**9 + age))
    oldest = index.logs()[-1].path
    cachescope.read(oldest)  # used again: now the newest
    by_use = [log.path for log in index.logs()]
    assert by_use[0] == oldest
    index.trim(limit_bytes=sum(log.kept_bytes for log in index.logs()[:2]))
    assert [log.path for log in index.logs()] == by_use[:2]


def test_clearing_leaves_no_log(folder: Path, log: Path) -> None:
    cachescope.read(log)
    Index(folder).clear()
    assert Index(folder).logs() == []
    Index(folder.parent / "nowhere").clear()


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("limit", "wanted"),
    [
        (60, {"old", "mid", "new"}),
        (59, {"mid", "new"}),
        (50, {"mid", "new"}),
        (49, {"new"}),
        (30, {"new"}),
        (29, set()),
        (0, set()),
    ],
)
def test_the_index_is_kept_within_its_limit(limit: int, wanted: set[str], tmp_path: Path) -> None:
    """By when each was used last, not by name or size."""
    for at, (name, size) in enumerate((("old", 10), ("mid", 20), ("new", 30))):
        (tmp_path / f"{name}.log_index").write_bytes(b"x" * size)
        os.utime(tmp_path / f"{name}.log_index", (10**9 + at, 10**9 + at))
    (tmp_path / "other").write_bytes(b"x" * 1000)
    Index(tmp_path).trim(limit)
    assert left(tmp_path) == {f"{name}.log_index" for name in wanted} | {"other"}


def test_what_a_process_left_unfinished_goes_after_an_hour(tmp_path: Path) -> None:
    now = time.time()
    for name, age in (("old", 3_700), ("young", 3_500), ("ahead", -3_700)):
        (tmp_path / f"{name}.unfinished").write_bytes(b"x")
        os.utime(tmp_path / f"{name}.unfinished", (now - age, now - age))
    Index(tmp_path).trim()
    assert left(tmp_path) == {"young.unfinished", "ahead.unfinished"}


def test_a_file_of_the_index_that_another_process_removed_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there.log_index").write_bytes(b"xx")
    (tmp_path / "there.unfinished").write_bytes(b"xx")
    of_index, unlink = Index._files, Path.unlink

    def gone_meanwhile(path: Path, missing_ok: bool = False) -> None:
        unlink(path)
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", gone_meanwhile)
    monkeypatch.setattr(Index, "_files", lambda index: [*of_index(index), tmp_path / "absent.log_index"])
    index = Index(tmp_path)
    assert index.logs() == []
    index.trim(1)
    assert left(tmp_path) == {"there.unfinished"}
    (tmp_path / "there.log_index").write_bytes(b"xx")
    monkeypatch.setattr(Index, "_files", of_index)
    index.clear()
    assert left(tmp_path) <= {"lock"}


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"cachescope index\n",
        b"cachescope index\n[]\n",
        b"cachescope index\n{}\n",
        b"cachescope index\nno json\n",
        b'cachescope index\n{"log": {}, "is_settled": true, "can_go_on": true, "checksum": ""}\n',
        b"another index..\n{}\n",
    ],
)
def test_a_file_that_is_none_of_the_index_is_passed_over(head: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.log_index").write_bytes(head)
    assert index_module._about(tmp_path / "a.log_index") is None
    assert Index(tmp_path).logs() == []
    assert index_module._about(tmp_path / "absent") is None
