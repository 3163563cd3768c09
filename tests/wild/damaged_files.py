"""What becomes of files on their way: other times, copies, links, no permission, gone, cut. One function each.

Each takes the folder of an unpacked recording and a generator of random numbers, and changes the files in place.
"""

import contextlib
import os
import shutil
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

_NOBODY = 65534


def caches(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("cache*")) if path.is_dir()]


def entries(folder: Path) -> list[Path]:
    return [
        path
        for cache in caches(folder)
        for pattern in ("fxgraph/*/*/*", "aotautograd/*/*")
        for path in sorted(cache.glob(pattern))
    ]


def some_of(paths: list[Path], rng: Random) -> list[Path]:
    if not paths:
        return []
    return rng.sample(paths, rng.choice((1, max(len(paths) // 2, 1), len(paths))))


# Times of modification.


def with_times(new_ns: Callable[[int], int], only_caches: bool, folder: Path, rng: Random) -> None:
    """Every time of modification becomes another, a function of what it was."""
    for root in caches(folder) if only_caches else [folder]:
        for path in [*root.rglob("*"), root]:
            os.utime(path, ns=(new := new_ns(path.stat().st_mtime_ns), new))


def whole(seconds: int) -> Callable[[int], int]:
    """What a file system keeps that counts so many seconds as one."""
    return lambda ns: ns // (seconds * 10**9) * (seconds * 10**9)


def shifted(seconds: int) -> Callable[[int], int]:
    """What a server writes down whose clock is off."""
    return lambda ns: ns + seconds * 10**9


def fixed(seconds: int) -> Callable[[int], int]:
    """What reproducible images have."""
    return lambda ns: seconds * 10**9


def now(ns: int) -> int:
    """What a copy has that keeps no times."""
    return time.time_ns()


# Copies.


def _replace(folder: Path, unpack: Callable[[Path], None]) -> None:
    for path in list(folder.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    unpack(folder)


def through_tar(folder: Path, rng: Random) -> None:
    """Packed with GNU tar's own format, which keeps whole seconds, and unpacked."""
    archive = folder.with_name("packed.tar")
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
        tar.add(folder, arcname=".", filter=_whole_seconds)
    with tarfile.open(archive) as tar:
        _replace(folder, lambda to: tar.extractall(to, filter="data"))
    archive.unlink()


def _whole_seconds(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.mtime = int(info.mtime)
    return info


def through_zip(folder: Path, rng: Random) -> None:
    """Packed with zip, which keeps every other second, and unpacked."""
    archive = folder.with_name("packed.zip")
    times = {path: int(path.stat().st_mtime) // 2 * 2 for path in folder.rglob("*")}
    with zipfile.ZipFile(archive, "w") as packed:
        for path in times:
            packed.write(path, path.relative_to(folder))
    with zipfile.ZipFile(archive) as packed:
        _replace(folder, packed.extractall)
    for path, seconds in times.items():
        os.utime(path, (seconds, seconds))
    archive.unlink()


def copied(folder: Path, rng: Random) -> None:
    """Copied as ``cp -r`` does: the files have the time of the copy."""
    original = folder.rename(folder.with_name("original"))
    shutil.copytree(original, folder, copy_function=shutil.copyfile)
    shutil.rmtree(original)


# Links.


def moved_and_linked(path: Path, room: Path) -> None:
    room.mkdir(exist_ok=True)
    new = room / f"{len(list(room.iterdir()))}-{path.name}"
    path.rename(new)
    path.symlink_to(new)


def found(patterns: tuple[str, ...], folder: Path) -> list[Path]:
    return sorted(path for cache in caches(folder) for pattern in patterns for path in cache.glob(pattern))


def linked(patterns: tuple[str, ...], folder: Path, rng: Random) -> None:
    """What fits a pattern lies elsewhere, and a symbolic link stands in its place."""
    for path in some_of(found(patterns, folder), rng):
        moved_and_linked(path, folder / "elsewhere")


def roots_linked(folder: Path, rng: Random) -> None:
    for cache in caches(folder):
        moved_and_linked(cache, folder / "elsewhere")


def in_circles(folder: Path, rng: Random) -> None:
    """Links that lead back up, and one to itself."""
    for cache in caches(folder):
        for place in ("fxgraph", "aotautograd"):
            if (cache / place).is_dir():
                (cache / place / "up").symlink_to(cache)
        (cache / "self").symlink_to("self")


# Permissions. Whoever reads as root may read everything, so the reader becomes somebody else.


def closed(
    what: Callable[[Path], list[Path]], folder: Path, rng: Random, mode: int = 0, some: bool = True
) -> None:
    """What is found in the folder can no longer be read."""
    if os.geteuid() == 0:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, _NOBODY, _NOBODY)
    paths = what(folder)
    for path in some_of(paths, rng) if some else paths:
        path.chmod(mode)


@contextlib.contextmanager
def as_somebody_else() -> Iterator[None]:
    """Root reads as nobody: the files are nobody's as well, and permissions count."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(_NOBODY)
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


# Content.


def deleted(folder: Path, rng: Random) -> None:
    for path in some_of(entries(folder), rng):
        path.unlink()


def folders_deleted(folder: Path, rng: Random) -> None:
    """Both or one of the two caches are gone."""
    both = [cache / place for cache in caches(folder) for place in ("fxgraph", "aotautograd")]
    for path in some_of([path for path in both if path.is_dir()], rng):
        shutil.rmtree(path)


def cut_short(folder: Path, rng: Random) -> None:
    """Entries end early; the file system says when that happened."""
    for path in some_of(entries(folder), rng):
        os.truncate(path, rng.randrange(path.stat().st_size or 1))


def cut_short_unseen(folder: Path, rng: Random) -> None:
    """Entries end early under the times they had, as after a crash or a copy that broke off."""
    for path in some_of(entries(folder), rng):
        times = path.stat()
        os.truncate(path, rng.randrange(times.st_size or 1))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
