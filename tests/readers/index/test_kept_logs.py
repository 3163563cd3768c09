"""A log that is opened again is what it was, or it is read anew: nothing changed, damaged or half-written is served."""

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

import pytest

import cachescope
from cachescope.readers.index.kept_logs import Index
from cachescope.scope import Scope
from tests.programs import ran
from tests.readers.logs.growing import assert_same_scopes, tour

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return trace(tmp_path / "logs" / "a.log", 0)


def trace(path: Path, number: int) -> Path:
    """A trace of the sample `tour`; each has lookups of its own."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(tour()[number])
    return path


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log_index"))


def truth(*paths: Path) -> Scope:
    return cachescope.read(*paths, index=False)


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
    "change", [replace, replace_by_one_of_the_same_size_and_time, change_in_place_and_set_the_time_back, cut]
)
def test_a_changed_log_is_parsed(
    change: Callable[[Path], None], own_index: Path, log: Path, parsed: list[str]
) -> None:
    before = cachescope.read(log)
    change(log)
    after = cachescope.read(log)
    assert parsed == [str(log)] * 2
    assert_same_scopes(after, truth(log))
    assert not after.lookups.equals(before.lookups)
    assert_same_scopes(cachescope.read(log), after)
    assert len(parsed) == 2
    assert len(kept(own_index)) == 1  # in the place of the one before


def test_another_time_zone_reads_a_log_without_one_anew(
    own_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parsed: list[str]
) -> None:
    recorded = next(iter((cachescope.sample("entry_truncated") / "text").iterdir()))
    log = Path(shutil.copy(recorded, tmp_path / recorded.name))
    try:
        for zone in ("UTC", "Asia/Tokyo", "Asia/Tokyo"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert_same_scopes(cachescope.read(log), truth(log))
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert len(parsed) == 2


def test_it_can_be_switched_off(own_index: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cachescope.read(log, index=False)
    monkeypatch.setenv("CACHESCOPE_NO_INDEX", "1")
    cachescope.read(log)
    assert not own_index.exists()


def program(text: str, log: Path) -> list[str]:
    """A process of its own that reads `log`; sizes and ages do not count there either."""
    lines = f"""
        import sys
        from cachescope.readers.index import kept_logs
        kept_logs._LEAST_BYTES, kept_logs._QUIET_NS = 1, -(10**18)
        import cachescope
        log = {str(log)!r}
        {textwrap.indent(textwrap.dedent(text).strip(), " " * 8).strip()}
    """
    return [sys.executable, "-c", textwrap.dedent(lines)]


def test_a_full_disk_leaves_no_file_and_the_data_are_right(own_index: Path, log: Path) -> None:
    def limit() -> None:
        # A write beyond this fails, as on a full disk; the lock file is empty.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    code = "print(len(cachescope.read(log).lookups))"
    # Python 3.11 keeps bytecode that it could write only in part, and every later process fails on it.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = ran(program(code, log), environment, cwd=ROOT, preexec_fn=limit)
    assert done.stdout.split() == [str(len(truth(log).lookups))]
    assert done.stderr == ""
    assert {path.name for path in own_index.iterdir()} <= {"lock"}


def test_a_process_killed_while_it_writes_leaves_nothing_that_is_read(own_index: Path, log: Path) -> None:
    code = """
        import os, signal
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        cachescope.read(log)
    """
    ran(program(code, log), status=-signal.SIGKILL, cwd=ROOT)
    (left,) = own_index.glob(".*.tmp")
    assert kept(own_index) == []
    assert_same_scopes(cachescope.read(log), truth(log))
    assert len(kept(own_index)) == 1
    os.utime(left, (0, 0))
    Index(own_index).trim()
    assert not left.exists()


def test_two_processes_that_open_one_log_at_once_both_have_it(own_index: Path, log: Path) -> None:
    code = """
        sys.stdin.read(1)
        print(len(cachescope.read(log).lookups), len(cachescope.read(log).lookups))
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(program(code, log), cwd=ROOT, **pipes) for _ in range(2)]
    for process in both:
        assert process.stdin is not None
        process.stdin.write("x")
        process.stdin.flush()
    count = str(len(truth(log).lookups))
    assert [process.communicate()[0].split() for process in both] == [[count, count]] * 2
    assert [process.returncode for process in both] == [0, 0]
    assert len(kept(own_index)) == 1
    assert_same_scopes(cachescope.read(log), truth(log))
