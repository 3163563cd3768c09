"""Every kind of tampering with a locked cache is found, and nothing in one that was left alone."""

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import cachescope
from tests.conftest import Recording
from tests.locking.conftest import EACH, Locked, LockedCopy
from tests.nobody import as_nobody

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("torch_read_once")]

# What must be found: kinds with paths, and the keys without a whole entry.
Found = tuple[set[tuple[str, str]], set[str]]

FX = "fxgraph"
AOT = "aotautograd"


def findings(locked: LockedCopy) -> set[tuple[str, str]]:
    return {(one.kind, one.path) for one in cachescope.verify(locked.lock, locked.cache).findings}


def named(locked: LockedCopy, path: Path) -> str:
    return path.relative_to(locked.cache).as_posix()


def put(path: Path, data: bytes) -> None:
    """Write, and hide it: the size may be the same, and the times are those of before."""
    before = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def key_of(locked: LockedCopy, path: Path) -> str:
    return locked.lock.files[named(locked, path)].key or ""


def altered(kind: str, change: Callable[[bytes], bytes], locked: LockedCopy) -> Found:
    """Other content in one file of a kind."""
    path = locked.one(kind)
    put(path, change(path.read_bytes()))
    keys = {key_of(locked, path)} if kind in (FX, AOT) else set()
    return {("altered", named(locked, path))}, keys


def added(name: str, data: bytes | None, locked: LockedCopy) -> Found:
    """One more file beside an entry, with its content or another."""
    path = locked.one(FX).with_name(name)
    path.write_bytes(locked.one(FX).read_bytes() if data is None else data)
    return {("extra", named(locked, path))}, set()


def with_a_bit_flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def gone(kind: str, put: Callable[[Path], object], locked: LockedCopy) -> Found:
    """Nothing in the place of an entry, or something else."""
    path = locked.one(FX)
    path.unlink()
    put(path)
    return {(kind, named(locked, path))}, {key_of(locked, path)}


def folder_deleted(locked: LockedCopy) -> Found:
    files = [file for file in locked.lock.files.values() if file.kind == AOT]
    shutil.rmtree(locked.cache / "aotautograd")
    return {("missing", file.path) for file in files}, {file.key or "" for file in files}


def renamed(locked: LockedCopy) -> Found:
    path = locked.one(FX)
    other = path.rename(path.with_name("y" * 51))
    return {("missing", named(locked, path)), ("extra", named(locked, other))}, {key_of(locked, path)}


def swapped(locked: LockedCopy) -> Found:
    """Of one size, so only what they hold tells."""
    one, other = locked.one(AOT), locked.one(AOT, 1)
    assert one.stat().st_size == other.stat().st_size
    first, second = one.read_bytes(), other.read_bytes()
    put(one, second)
    put(other, first)
    paths = (one, other)
    return {("altered", named(locked, path)) for path in paths}, {key_of(locked, path) for path in paths}


def link_out(locked: LockedCopy) -> Found:
    """To a file of the very same content."""
    path = locked.one(FX)
    away = locked.cache.parent / "away"
    path.rename(away)
    path.symlink_to(away)
    return {("link", named(locked, path))}, {key_of(locked, path)}


def link_within(locked: LockedCopy) -> Found:
    path = locked.one("code")
    inside = locked.cache / "inside"
    path.rename(inside)
    path.symlink_to("../inside")
    return {("link", named(locked, path)), ("extra", "inside")}, set()


def folder_linked_out(locked: LockedCopy) -> Found:
    files = [file for file in locked.lock.files.values() if file.kind == AOT]
    (locked.cache / "aotautograd").rename(locked.cache.parent / "away")
    (locked.cache / "aotautograd").symlink_to(locked.cache.parent / "away")
    found = {("missing", file.path) for file in files} | {("link", "aotautograd")}
    return found, {file.key or "" for file in files}


def link_to_nowhere(locked: LockedCopy) -> Found:
    (locked.cache / "broken").symlink_to("nowhere")
    return {("link", "broken")}, set()


def name_of_other_bytes(locked: LockedCopy) -> Found:
    (locked.cache / os.fsdecode(b"a\xff")).write_bytes(b"")
    return {("extra", "a\\xff")}, set()


KINDS: dict[str, Callable[[LockedCopy], Found]] = {
    "a bit flipped": partial(altered, FX, with_a_bit_flipped),
    "the last byte of code": partial(altered, "code", lambda data: data[:-1] + b"#"),
    "truncated": partial(altered, AOT, lambda data: data[:-1]),
    "emptied": partial(altered, FX, lambda data: b""),
    "appended": partial(altered, "code", lambda data: data + b"\nimport os"),
    "added": partial(added, "z" * 51, None),
    # Torch before 2.15 loads such a file like any other in the folder of a key.
    "added as unfinished": partial(added, ".1.2.tmp", None),
    "deleted": partial(gone, "missing", str),
    "a pipe in its place": partial(gone, "unreadable", os.mkfifo),
    "a folder in its place": partial(gone, "missing", os.mkdir),
    # What torch leaves there is empty.
    "added as a lock": partial(added, "x.lock", b"x"),
    **{
        one.__name__: one
        for one in (
            folder_deleted, renamed, swapped, link_out, link_within, folder_linked_out, link_to_nowhere,
            name_of_other_bytes,
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_tampering_is_found(kind: str, locked: Locked) -> None:
    copy = locked("2.13.0", "training", expect=True)
    wanted, keys = KINDS[kind](copy)
    found = cachescope.verify(copy.lock, copy.cache)
    assert {(one.kind, one.path) for one in found.findings} == wanted
    assert {key for _, key in found.missing_keys} == keys
    assert not found.passed


@pytest.mark.parametrize("version", EACH)
def test_what_was_left_alone_is_whole(version: str, locked: Locked) -> None:
    copy = locked(version, "training", expect=True)
    assert copy.lock.files
    assert findings(copy) == set()
    assert cachescope.verify(copy.lock, copy.cache).missing_keys == ()


def test_moved_it_is_the_same(locked: Locked, tmp_path: Path) -> None:
    copy = locked("2.13.0", "four_graphs")
    moved = tmp_path / "elsewhere" / "cache"
    moved.parent.mkdir()
    copy.cache.rename(moved)
    (tmp_path / "a link to it").symlink_to(moved)
    for way in (moved, tmp_path / "a link to it", f"{moved}/"):
        assert cachescope.verify(copy.lock, way).findings == ()


def test_empty_files_that_torch_locks_with_may_come_and_go(locked: Locked) -> None:
    copy = locked("2.13.0", "training")
    (copy.cache / "locks").mkdir(exist_ok=True)
    (copy.cache / "locks" / "cabc.lock").touch()
    assert findings(copy) == set()


def test_what_may_not_be_read_is_named(locked: Locked) -> None:
    copy = locked("2.13.0", "training")
    path, folder = copy.one(FX), copy.one(AOT).parent
    for file in copy.cache.rglob("*"):
        file.chmod(0o755)
    path.chmod(0)
    folder.chmod(0)

    def work() -> object:
        return sorted(findings(copy))

    try:
        found = as_nobody(work, below=copy.cache)
    finally:
        path.chmod(0o644)
        folder.chmod(0o755)
    assert ["unreadable", named(copy, path)] in found
    assert ["unreadable", named(copy, folder)] in found


def test_links_within_the_cache_are_locked(recording: Recording, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    shutil.copytree(recording("2.13.0", "training") / "cache", cache)
    (cache / "again").symlink_to("fxgraph")
    lock = cachescope.lock(cache)
    assert dict(lock.links) == {"again": "fxgraph"}
    assert cachescope.verify(lock, cache).findings == ()
    (cache / "again").unlink()
    (cache / "again").symlink_to("aotautograd")
    (one,) = cachescope.verify(lock, cache).findings
    assert (one.kind, one.message) == ("link", "a link to aotautograd, not to fxgraph")


@pytest.mark.parametrize("what", ["link", "pipe", "nowhere"])
def test_what_cannot_be_locked_is_refused_and_named(what: str, recording: Recording, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    shutil.copytree(recording("2.13.0", "training") / "cache", cache)
    if what == "pipe":
        os.mkfifo(cache / "odd")
    else:
        (cache / "odd").symlink_to("/etc" if what == "link" else "nowhere")
    with pytest.raises(cachescope.CachescopeError, match=r"1 file cannot be locked: odd \("):
        cachescope.lock(cache)


def test_nothing_is_written_to_the_cache(recording: Recording, tmp_path: Path) -> None:
    cache = recording("2.13.0", "training") / "cache"
    before = {path: path.stat().st_mtime_ns for path in (cache, *cache.rglob("*"))}
    cachescope.verify(cachescope.lock(cache, tmp_path / "x.lock"), cache)
    assert {path: path.stat().st_mtime_ns for path in (cache, *cache.rglob("*"))} == before
    with pytest.raises(cachescope.CachescopeError, match="is in the directory that it locks"):
        cachescope.lock(cache, cache / "cache.lock")
    assert not (cache / "cache.lock").exists()
