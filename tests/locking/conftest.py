"""Locks of caches that torch made, and copies of these to be tampered with."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import cachescope
from cachescope.locking.lock import CacheLock
from tests.conftest import Recording

Locked = Callable[..., "LockedCopy"]
EACH = ["2.6.0", "2.10.0", "2.13.0", "2.15.0"]
"""The versions of torch."""


@dataclass(frozen=True)
class LockedCopy:
    """A copy of the cache of a recording, and its lock."""

    lock: CacheLock
    cache: Path

    def one(self, kind: str, at: int = 0) -> Path:
        """One of the files of a kind."""
        return self.cache / [file.path for file in self.lock.files.values() if file.kind == kind][at]


@pytest.fixture
def locked(recording: Recording, tmp_path: Path) -> Locked:
    """``locked("2.13.0", "training")``; with ``expect=True`` by its own traces."""

    def make(version: str, scenario: str, *, expect: bool = False) -> LockedCopy:
        folder = recording(version, scenario)
        lock = cachescope.lock(folder / "cache", expect=folder / "trace" if expect else ())
        copy = tmp_path / f"{version}-{scenario}"
        shutil.copytree(folder / "cache", copy, symlinks=True)
        return LockedCopy(lock, copy)

    return make
