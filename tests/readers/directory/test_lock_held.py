"""Locks are told held or free as filelock itself holds them, and nothing about them is changed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

import cachescope
from cachescope.readers.directory.file_contents import is_lock_held

HOLDER = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("ready", flush=True)
    sys.stdin.read()
"""
TIMES = ("st_mtime_ns", "st_ctime_ns", "st_size", "st_ino", "st_mode")


def state(path: Path) -> list[int]:
    status = path.stat()
    return [getattr(status, name) for name in TIMES]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A directory of code with two locks, as torch leaves them: empty."""
    for letter in "ab":
        key = f"c{letter * 51}"
        code = tmp_path / "cache" / key[1:3] / f"{key}.cpp"
        code.parent.mkdir(parents=True)
        code.write_text("int main() {}")
        lock = tmp_path / "cache" / "locks" / f"{key}.lock"
        lock.parent.mkdir(exist_ok=True)
        lock.touch()
        os.utime(lock, ns=(10**18, 10**18))
    return tmp_path / "cache"


@pytest.fixture
def held(cache: Path) -> Iterator[Path]:
    """One of them, held by another process through filelock."""
    path = cache / "locks" / f"c{'a' * 51}.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.utime(path, ns=(10**18, 10**18))
        yield path
        process.communicate()


def test_held_and_free_are_told_apart_and_the_files_stay_as_they_were(cache: Path, held: Path) -> None:
    free = held.with_name(f"c{'b' * 51}.lock")
    before = [state(held), state(free)]
    scope = cachescope.read(cache)
    locks = scope.locks().set_index("path")["lock_held"]
    assert locks.to_dict() == {str(held): True, str(free): False}
    assert [state(held), state(free)] == before
    assert sorted(held.parent.iterdir()) == [held, free]


def test_a_free_lock_is_given_back_at_once(cache: Path) -> None:
    path = next((cache / "locks").iterdir())
    assert is_lock_held(str(path)) is False
    with FileLock(path, timeout=0) as lock:
        assert lock.is_locked
        assert is_lock_held(str(path)) is True
    assert is_lock_held(str(path)) is False


def test_a_held_lock_stays_held(held: Path) -> None:
    assert is_lock_held(str(held)) is True
    with pytest.raises(Timeout):
        FileLock(held, timeout=0).acquire()


def test_a_lock_that_may_only_be_read_is_told(cache: Path) -> None:
    path = next((cache / "locks").iterdir())
    path.chmod(0o444)
    assert is_lock_held(str(path)) is False


def test_what_vanished_or_is_no_file_is_unknown_and_is_not_made(cache: Path, tmp_path: Path) -> None:
    scope = cachescope.read(cache)
    gone, replaced = sorted((cache / "locks").iterdir())
    gone.unlink()
    replaced.unlink()
    os.mkfifo(replaced)
    assert scope.locks()["lock_held"].isna().all()
    assert not gone.exists()
    (tmp_path / "target").touch()
    gone.symlink_to(tmp_path / "target")
    assert is_lock_held(str(gone)) is None


def test_reading_a_directory_tries_no_lock(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a lock was tried")

    monkeypatch.setattr("fcntl.flock", refuse)
    scope = cachescope.read(cache)
    assert len(scope.entries) == 4
    assert scope._repr_html_()
    with pytest.raises(AssertionError):
        scope.locks()
