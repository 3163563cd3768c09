"""Whole commands, as whoever types them waits for them, beside `python -c pass` in the same run.

Import time, beside pandas in the same run: `import cachescope` may take 1.15 times `import pandas`.

It takes far less, as what reads is loaded at its first use; so that is measured as well.
"""

import itertools
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.keys.hashing import entry_name
from cachescope.locking.lock import write_lock
from cachescope.locking.tree import contents, walk
from tests.conftest import RECORDINGS, Recording
from tests.programs import python, ran
from tests.vllm_folders import make_folder

ENTRIES = 5_000
COMMANDS = {
    "nothing": ["-c", "pass"],
    "version": ["-m", "cachescope", "--version"],
    "help": ["-m", "cachescope", "--help"],
}
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


@pytest.mark.benchmark(group="commands")
@pytest.mark.parametrize("name", COMMANDS)
def test_command(name: str, benchmark) -> None:  # type: ignore[no-untyped-def]
    benchmark.pedantic(lambda: ran([sys.executable, *COMMANDS[name]]), rounds=15, warmup_rounds=2)


@pytest.fixture(scope="module")
def directory(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real entries, each under many keys: the key that an entry holds is changed in it, letter by letter."""
    root = tmp_path_factory.mktemp("directory")
    names = (path.name.removesuffix(".tar.xz") for path in sorted(RECORDINGS.glob("2.13.0/*.tar.xz")))
    caches = [recording("2.13.0", name) / "cache" for name in names]
    found = {path for cache in caches for path in cache.glob("fxgraph/??/*/*") if path.is_file()}
    codes = map("".join, itertools.product(_LETTERS, repeat=4))
    for code, path in zip(itertools.islice(codes, ENTRIES), itertools.cycle(sorted(found)), strict=False):
        key = path.parent.name
        made = key[0] + code + key[5:]
        data = path.read_bytes().replace(key.encode(), made.encode())
        folder = root / "fxgraph" / made[1:3] / made
        folder.mkdir(parents=True, exist_ok=True)
        (folder / entry_name(data)).write_bytes(data)
    return root


def explained(folder: Path, benchmark: Any) -> str:
    """What `cachescope explain` prints of a folder, timed."""
    command = [sys.executable, "-m", "cachescope", "explain", folder]
    told: str = benchmark.pedantic(lambda: ran(command).stdout, rounds=2, warmup_rounds=1)
    return told


@pytest.mark.benchmark(group="explain a directory")
def test_explain_directory(directory: Path, benchmark) -> None:  # type: ignore[no-untyped-def]
    benchmark.extra_info["entries"] = ENTRIES
    assert explained(directory, benchmark)


@pytest.fixture(scope="module")
def vllm_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thousand folders of one model of vLLM, with as many variables as real ones, of which a port and a path vary."""
    root = tmp_path_factory.mktemp("vllm")
    env = {f"VLLM_VARIABLE_{number}": "some value" for number in range(243)}
    for number in range(1_000):
        varied = {"VLLM_SIDE_PORT": 20_000 + number, "VLLM_ROOT": f"/home/user{number}/.config"}
        make_folder(root, env | varied)
    return root


@pytest.mark.benchmark(group="explain folders of vLLM")
def test_explain_vllm_folders(vllm_folders: Path, benchmark) -> None:  # type: ignore[no-untyped-def]
    assert "1 of 1000 folders" in " ".join(explained(vllm_folders, benchmark).split())


@pytest.mark.parametrize(
    "program", ["import pandas", "import cachescope", "import cachescope; cachescope.read, cachescope.Scope"]
)
@pytest.mark.benchmark(group="import")
def test_import(program: str, benchmark) -> None:  # type: ignore[no-untyped-def]
    benchmark.pedantic(lambda: python(program), rounds=15, warmup_rounds=2)


# Verified as an init container does: a process of its own, the files in the page cache.
LOCKED = 10_000
SMALL = 4_000


@pytest.fixture(scope="module", params=["whole", "small"])
def locked(
    request: pytest.FixtureRequest, recording: Recording, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Real entries and their code, each many times with other bytes at its end; or the beginnings of them."""
    folder = tmp_path_factory.mktemp("locked")
    made = recording("2.13.0", "training") / "cache"
    lock = cachescope.lock(made)
    for at, path in zip(range(LOCKED), itertools.cycle(lock.files), strict=False):
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
    assert done.stdout.startswith(f"as locked: {LOCKED:,} files")
    size = sum(file.stat().st_size for file in (locked / "cache").rglob("*") if file.is_file())
    benchmark.extra_info["megabytes"] = size / 1e6


@pytest.mark.benchmark(group="verify 10,000 entries")
@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="no sha256sum")
def test_sha256sum(locked: Path, benchmark) -> None:  # type: ignore[no-untyped-def]
    """The same files by coreutils, on two cores at once: hashing alone, without comparing."""
    command = "find cache -type f -print0 | xargs -0 -P2 -n 2500 sha256sum"
    done = benchmark.pedantic(lambda: ran(command, cwd=locked, shell=True), rounds=5, warmup_rounds=1)
    assert len(done.stdout.splitlines()) == LOCKED
