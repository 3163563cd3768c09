"""What can go of a directory of which less can be read can go of the whole one: over every recorded cache."""

import os
import random
import shutil
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.directory.unused import removable_rows
from cachescope.readers.directory.place_of import looks_like_cache_dir
from tests.analysis.plain_rows import seen_at
from tests.wild.damaged_files import moved_and_linked

pytestmark = pytest.mark.sweep

DATA = Path(__file__).parents[1] / "data"
ARCHIVES = sorted([*(DATA / "recordings").glob("*/*.tar.xz"), *(DATA / "directories").glob("*.tar.xz")])
LATER_NS = 7 * 24 * 3_600_000_000_000
CHANGES = 2  # of each directory


def caches(archive: Path, folder: Path) -> Iterator[Path]:
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="tar")
    for inner in (folder / "cache", *sorted(folder.glob("*cache*"))):
        if inner.is_dir() and not inner.is_symlink() and looks_like_cache_dir(str(inner)):
            yield inner
            return


def can_go(cache: Path) -> set[str]:
    scope = cachescope.read(cache)
    late = time.time_ns() + LATER_NS
    return {row.path for row in removable_rows(seen_at(scope.tables.entries.rows, late), scope.orphaned.rows)}


class Rights:
    """Stands in for the rights of files and folders, which root has all of: some paths are refused."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, shut: set[str]) -> None:
        self.shut = shut
        for name in ("open", "scandir"):
            monkeypatch.setattr(os, name, self.asked(getattr(os, name)))

    def asked(self, real):  # type: ignore[no-untyped-def]
        def ask(path, *rest, **named):  # type: ignore[no-untyped-def]
            if self.is_shut(path):
                raise PermissionError(13, "Permission denied", path)
            return real(path, *rest, **named)

        return ask

    def is_shut(self, path: object) -> bool:
        real = os.path.realpath(path) if isinstance(path, str) else ""
        return any(real == one or real.startswith(one + os.sep) for one in self.shut)


def test_less_that_is_read_is_never_more_that_can_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(20_263)
    counted = {"directories": 0, "changes": 0, "can go": 0, "can go of the changed": 0}
    for number, archive in enumerate(ARCHIVES):
        folder = tmp_path / str(number)
        for cache in caches(archive, folder):
            add_what_can_go(cache)
            whole = can_go(cache)
            counted["directories"] += 1
            counted["can go"] += len(whole)
            for change in range(CHANGES):
                changed = folder / f"changed{change}"
                shutil.copytree(cache, changed, symlinks=True)
                left = change_of(changed, folder / f"elsewhere{change}", chance, monkeypatch)
                there = {path.replace(str(changed), str(cache), 1) for path in left}
                assert there <= whole, (archive.name, sorted(there - whole))
                counted["changes"] += 1
                counted["can go of the changed"] += len(there)
        shutil.rmtree(folder, ignore_errors=True)
    print(counted)
    # Where nothing could go before, or nothing is left after, this proves nothing.
    assert counted["can go"] > counted["directories"]
    assert counted["can go of the changed"] > counted["directories"]


def add_what_can_go(cache: Path) -> None:
    """Cut one entry, and leave a temporary file: made by hand, for few recordings have any."""
    old = time.time() - 10 * 24 * 3_600
    entries = [path for path in sorted(cache.glob("fxgraph/*/*/*")) if path.is_file()]
    if entries:
        cut = entries[0].with_name("z" * 51)
        cut.write_bytes(entries[0].read_bytes()[:300])
        half = entries[-1].with_name(".1.2.tmp")
        half.write_bytes(b"\x80\x04")
        for path in (cut, half):
            os.utime(path, (old, old))


def change_of(
    cache: Path, elsewhere: Path, chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> set[str]:
    """What can go when some of it may not be read, or is behind links."""
    paths = [path for path in sorted(cache.rglob("*")) if path.exists() and not path.is_symlink()]
    folders = [path for path in paths if path.is_dir()]
    some = chance.sample(folders, min(len(folders), chance.randint(0, 2)))
    some += chance.sample(paths, min(len(paths), chance.randint(0, 3)))
    shut: set[str] = set()
    for path in some:
        if not path.exists() or path.is_symlink():
            continue  # what is around it was moved
        if chance.random() < 0.5:
            moved_and_linked(path, elsewhere)
        if chance.random() < 0.6:
            shut.add(os.path.realpath(path))
    with monkeypatch.context() as patch:
        Rights(patch, shut)
        return can_go(cache)
