"""The walk of a cache directory, real and made; where it is by default; and its locks, which are told held or free and not changed."""

import gc
import getpass
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from filelock import FileLock, Timeout
from hostile_pickles import Object, entry_bytes

import cachescope
from cachescope.errors import RecordError
from cachescope.keys.hashing import entry_name
from cachescope.readers.directory.cache_dir import CacheWalk, read_cache_dir
from cachescope.readers.directory.default_root import default_root
from cachescope.readers.directory.file_contents import is_lock_held
from cachescope.readers.directory.place_of import looks_like_cache_dir
from cachescope.readers.directory.places import ROOT
from cachescope.readers.reading import Reading
from tests.conftest import Recording
from tests.readings import read_by

FX_KEY = "f" + "a" * 51
SOUND = entry_bytes(Object("torch._inductor.output_code.CompiledFxGraph", {"cache_key": "x"}))


def read(path: Path, *, strict: bool = False) -> Reading:
    return read_by(read_cache_dir, str(path), strict=strict)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A hand-made cache of one sound entry."""
    folder = tmp_path / "cache" / "fxgraph" / "aa" / FX_KEY
    folder.mkdir(parents=True)
    (folder / entry_name(SOUND)).write_bytes(SOUND)
    return tmp_path / "cache"


def key_folder(cache: Path) -> Path:
    return cache / "fxgraph" / "aa" / FX_KEY


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0", "2.15.0"])
def test_a_real_cache_is_read_whole_from_every_level(version: str, recording: Recording) -> None:
    cache = recording(version, "cold_warm") / "cache"
    whole = read(cache, strict=True)
    parts: Counter[tuple[str, str | None]] = Counter()
    folders = sorted({*(cache / "fxgraph").glob("*/*"), *(cache / "aotautograd").iterdir()})
    for folder in folders:
        assert looks_like_cache_dir(str(folder))
        for file in folder.iterdir():
            assert looks_like_cache_dir(str(file))
            parts.update((entry.cache, entry.cache_key) for entry in read(file).entries)
        assert len(read(folder).entries) == len(list(folder.iterdir()))
    for file in cache.glob("??/*"):
        parts.update((entry.cache, entry.cache_key) for entry in read(file).entries)
    assert parts == Counter((entry.cache, entry.cache_key) for entry in whole.entries)
    for name in ("fxgraph", "aotautograd"):
        assert looks_like_cache_dir(str(cache / name))
        assert len(read(cache / name).entries) == sum(entry.cache == name for entry in whole.entries)
    assert all(entry.size_bytes and entry.modified_time for entry in whole.entries)


@pytest.mark.parametrize(("scenario", "damage"), [
    ("entry_truncated", "truncated"),
    ("aot_entry_truncated", "truncated"),
    ("entry_garbage", "not a pickle: no opcode 0xff"),
])  # fmt: skip
def test_a_damaged_real_entry_says_why(scenario: str, damage: str, recording: Recording) -> None:
    reading = read(recording("2.13.0", scenario) / "cache")
    damaged = [entry for entry in reading.entries if entry.status == "damaged"]
    assert [entry.damage for entry in damaged] == [f"{damage}; content hash differs from the name"]
    assert [(one.kind, one.source) for one in reading.problems] == [("damaged_entry", damaged[0].path)]
    assert any(entry.status == "ok" and entry.cache == damaged[0].cache for entry in reading.entries)


def test_strict_raises_at_the_first_damaged_entry(cache: Path) -> None:
    (key_folder(cache) / ("q" * 51)).write_bytes(b"")
    with pytest.raises(RecordError, match="empty file"):
        read(cache, strict=True)


def test_a_cache_root_that_is_a_link_is_read(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(cache)
    assert len(read(tmp_path / "link").entries) == 1


Change = Callable[[Path], None]


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def listed(cache: Path) -> tuple[CacheWalk, Path]:
    """The walk that has listed the one entry of the cache, and its file."""
    walk = CacheWalk(str(cache), Reading())
    walk.scan()
    assert len(walk.files) == 1
    return walk, next(key_folder(cache).iterdir())


@pytest.mark.parametrize("change", [Path.unlink, replace_by_folder, replace_by_pipe, replace_by_link])
def test_a_file_that_is_gone_after_it_was_listed_is_passed_over(cache: Path, change: Change) -> None:
    walk, file = listed(cache)
    change(file)
    assert walk.read(0) is None
    assert not walk.reading.problems


def test_a_file_that_grew_after_it_was_listed_has_the_size_that_was_read(cache: Path) -> None:
    walk, file = listed(cache)
    data = SOUND.replace(b"\x01x", b"\x02xx")
    file.write_bytes(data)
    entry = walk.read(0)
    assert entry.size_bytes == len(data) == len(SOUND) + 1


def test_a_folder_gone_since_its_listing_is_passed_over(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def vanish(path: str) -> object:
        if Path(path) == key_folder(cache):
            key_folder(cache).rename(cache.parent / "gone")
        return real(path)

    walk = CacheWalk(str(cache), Reading())
    monkeypatch.setattr("cachescope.readers.directory.cache_dir.place_of", lambda path: ROOT)
    monkeypatch.setattr(os, "scandir", vanish)
    walk.scan()
    assert not walk.files
    assert not walk.reading.problems


def test_what_may_not_be_read_is_a_problem(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not by chmod: the tests may run as root, who may read everything.
    def refuse(path: object, *_: object, **__: object) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("builtins.open", refuse)
    (entry,) = read(cache).entries
    assert (entry.status, entry.damage) == ("unreadable", "Permission denied")
    monkeypatch.undo()
    monkeypatch.setattr(os, "scandir", refuse)
    reading = read(cache)
    (folder,) = reading.entries
    assert (folder.path, folder.status, folder.damage) == (str(cache), "unreadable", "Permission denied")
    assert {problem.kind for problem in reading.problems} == {"unreadable"}


def test_the_garbage_collector_is_left_as_it_was(cache: Path) -> None:
    assert gc.isenabled()
    read(cache)
    assert gc.isenabled()
    gc.disable()
    try:
        read(cache)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_variable_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "relative")
    assert default_root() == str(tmp_path / "relative")
    assert list(tmp_path.iterdir()) == []


def as_user(user: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def name() -> str:
        if user is None:
            raise OSError("no such account")
        return user

    monkeypatch.setattr(getpass, "getuser", name)
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)


@pytest.mark.parametrize("user", ["ann", 'a/n:n*"x"', None])
def test_it_is_torchs_own_and_is_not_made(
    user: str | None, codecache: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    as_user(user, monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert default_root() == default_cache_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("user", "uid", "wanted"), [
    ("ann", 7, "torchinductor_ann"),
    ('a/n:n*"x"', 7, "torchinductor_a_n_n__x_"),
    (None, 7, "torchinductor_uid_7"),
    (None, None, "torchinductor_unknown_user"),
])  # fmt: skip
def test_it_is_named_by_the_user(
    user: str | None, uid: int | None, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch's function above names it; whoever has no name is a number, where the system has one."""
    as_user(user, monkeypatch)
    if uid is None:
        monkeypatch.delattr(os, "getuid")
    else:
        monkeypatch.setattr(os, "getuid", lambda: uid)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert default_root() == str(tmp_path / wanted)


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
def locked(tmp_path: Path) -> Path:
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
def held(locked: Path) -> Iterator[Path]:
    """One of them, held by another process through filelock."""
    path = locked / "locks" / f"c{'a' * 51}.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.utime(path, ns=(10**18, 10**18))
        yield path
        process.communicate()


def test_held_and_free_are_told_apart_and_the_files_stay_as_they_were(locked: Path, held: Path) -> None:
    free = held.with_name(f"c{'b' * 51}.lock")
    before = [state(held), state(free)]
    scope = cachescope.read(locked)
    locks = scope.locks().set_index("path")["lock_held"]
    assert locks.to_dict() == {str(held): True, str(free): False}
    assert [state(held), state(free)] == before
    assert sorted(held.parent.iterdir()) == [held, free]


def test_a_free_lock_is_given_back_at_once(locked: Path) -> None:
    path = next((locked / "locks").iterdir())
    assert is_lock_held(str(path)) is False
    with FileLock(path, timeout=0) as lock:
        assert lock.is_locked
        assert is_lock_held(str(path)) is True
    assert is_lock_held(str(path)) is False


def test_a_held_lock_stays_held(held: Path) -> None:
    assert is_lock_held(str(held)) is True
    with pytest.raises(Timeout):
        FileLock(held, timeout=0).acquire()


def test_a_lock_that_may_only_be_read_is_told(locked: Path) -> None:
    path = next((locked / "locks").iterdir())
    path.chmod(0o444)
    assert is_lock_held(str(path)) is False


def test_what_vanished_or_is_no_file_is_unknown_and_is_not_made(locked: Path, tmp_path: Path) -> None:
    scope = cachescope.read(locked)
    gone, replaced = sorted((locked / "locks").iterdir())
    gone.unlink()
    replaced.unlink()
    os.mkfifo(replaced)
    assert scope.locks()["lock_held"].isna().all()
    assert not gone.exists()
    (tmp_path / "target").touch()
    gone.symlink_to(tmp_path / "target")
    assert is_lock_held(str(gone)) is None


def test_reading_a_directory_tries_no_lock(locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a lock was tried")

    monkeypatch.setattr("fcntl.flock", refuse)
    scope = cachescope.read(locked)
    assert len(scope.entries) == 4
    assert scope._repr_html_()
    with pytest.raises(AssertionError):
        scope.locks()
