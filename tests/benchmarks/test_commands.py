"""Whole commands, as whoever types them waits for them, beside `python -c pass` in the same run.

Import time, beside pandas in the same run: `import cachescope` may take 1.15 times `import pandas`.

It takes far less, as what reads is loaded at its first use; so that is measured as well.
"""

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

from cachescope.keys.hashing import entry_name
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
