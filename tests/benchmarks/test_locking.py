"""Verifying a cache of 10,000 entries, as an init container does: a process of its own, the files in the page cache."""

import itertools
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import cachescope
from cachescope.locking.lock import write_lock
from cachescope.locking.tree import contents, walk
from tests.conftest import Recording
from tests.programs import ran

ENTRIES = 10_000
SMALL = 4_000


@pytest.fixture(scope="module", params=["whole", "small"])
def locked(
    request: pytest.FixtureRequest, recording: Recording, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Real entries and their code, each many times with other bytes at its end; or the beginnings of them."""
    folder = tmp_path_factory.mktemp("locked")
    made = recording("2.13.0", "training") / "cache"
    lock = cachescope.lock(made)
    for at, path in zip(range(ENTRIES), itertools.cycle(lock.files), strict=False):
        data = (made / path).read_bytes()
        data = data[: SMALL if request.param == "small" else None]
        copy = folder / "cache" / f"{at % 97:02}" / f"{at}" / Path(path).name
        copy.parent.mkdir(parents=True)
        copy.write_bytes(data[:-5] + b"%05d" % at)
    found = walk(str(folder / "cache"))
    held = contents(found)
    one = next(lock.entries())
    files = {
        each.name: replace(
            one, path=each.name, size=held[each.name].size, sha256=held[each.name].sha256 or ""
        )
        for each in found
    }
    write_lock(replace(lock, files=files), folder / "cache.lock")
    return folder


@pytest.mark.benchmark(group="verify 10,000 entries")
def test_verify(locked: Path, benchmark) -> None:  # type: ignore[no-untyped-def]
    command = [sys.executable, "-m", "cachescope", "verify", "cache.lock", "cache"]
    done = benchmark.pedantic(lambda: ran(command, cwd=locked), rounds=5, warmup_rounds=1)
    assert done.stdout.startswith(f"as locked: {ENTRIES:,} files")
    size = sum(file.stat().st_size for file in (locked / "cache").rglob("*") if file.is_file())
    benchmark.extra_info["megabytes"] = size / 1e6


@pytest.mark.benchmark(group="verify 10,000 entries")
@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="no sha256sum")
def test_sha256sum(locked: Path, benchmark) -> None:  # type: ignore[no-untyped-def]
    """The same files by coreutils, on two cores at once: hashing alone, without comparing."""
    command = "find cache -type f -print0 | xargs -0 -P2 -n 2500 sha256sum"
    done = benchmark.pedantic(lambda: ran(command, cwd=locked, shell=True), rounds=5, warmup_rounds=1)
    assert len(done.stdout.splitlines()) == ENTRIES
