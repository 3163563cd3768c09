"""The core in Pyodide, under node, prints byte by byte what it prints here, of every sample and of twenty recordings."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import make_try
import pytest

from cachescope.samples import sample_names

pytestmark = pytest.mark.sweep

ROOT = make_try.HERE.parent
COMMANDS = ("explain", "time", "entries")
RECORDINGS = 20

# When a file was unpacked, and when it was looked at: no two runs agree on these.
CLOCK = re.compile(rb'"(?:changed|seen)_time": "[^"]*"')
# Run by both. Temporary folders have names in order, and unpacked files times in whole seconds: those of a browser's files have milliseconds.
CODE = """
import contextlib, io, itertools, os, sys, tempfile
ROOT, FOLDER, OUT, PATHS, COMMANDS = {given}
sys.path.insert(0, ROOT)
sys.dont_write_bytecode = True
os.chdir(FOLDER)
os.makedirs("temporary", exist_ok=True)
tempfile.tempdir = os.path.abspath("temporary")
tempfile._name_sequence = map("{{:08}}".format, itertools.count())
utime = os.utime
os.utime = lambda path, times: utime(path, tuple(map(int, times)))
from cachescope.cli import main
for path, command in itertools.product(PATHS, COMMANDS):
    printed, said = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(printed, encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        try:
            status = main([command, path, "--json"])
        except SystemExit as error:
            status = error.code
    name = os.path.join(OUT, path.replace("/", "-") + "-" + command)
    with open(name, "wb") as file:
        file.write(printed.getvalue() + f"{{status}} {{said.getvalue()}}".encode())
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """What CPython and Pyodide wrote, by what it is of."""
    pyodide, folder = tmp_path_factory.mktemp("pyodide"), tmp_path_factory.mktemp("read")
    if why := make_try.fetch_pyodide(pyodide):
        pytest.skip(f"nothing was compared with Pyodide: {why}")
    paths = [*_samples(folder), *_recordings(folder)]
    made = []
    for name in ("cpython", "pyodide"):
        out = tmp_path_factory.mktemp(name)
        code = CODE.format(given=json.dumps([str(ROOT), str(folder), str(out), paths, COMMANDS]))
        if name == "cpython":
            environment = {**os.environ, "CACHESCOPE_NO_INDEX": "1"}
            subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        else:
            make_try.in_pyodide(pyodide, code, ROOT / "cachescope", folder, out)
        made.append({one.name: CLOCK.sub(b"", one.read_bytes()) for one in out.iterdir()})
    return made[0], made[1]


def _samples(folder: Path) -> Iterator[str]:
    """The shipped ones, packed or not, with times in whole seconds."""
    for name in sample_names():
        place = folder / name
        shutil.copytree(ROOT / "cachescope" / "samples" / name, place)
        for one in place.rglob("*"):
            os.utime(one, (1_800_000_000, 1_800_000_000))
        yield f"{name}/recording.tar.xz" if (place / "recording.tar.xz").exists() else name


def _recordings(folder: Path) -> Iterator[str]:
    """One in so many of those of all releases of torch, packed."""
    every = sorted((ROOT / "tests" / "data" / "recordings").glob("*/*.tar.xz"))
    for one in every[:: len(every) // RECORDINGS][:RECORDINGS]:
        name = f"{one.parent.name}-{one.name}"
        shutil.copy(one, folder / name)
        yield name


def test_json_is_the_same_byte_by_byte(outputs: tuple[dict[str, bytes], dict[str, bytes]]) -> None:
    here, there = outputs
    assert len(here) == len(COMMANDS) * (len(sample_names()) + RECORDINGS) and here.keys() == there.keys()
    # Each is an object, then the status, and nothing on standard error.
    assert all(text.endswith(b"}\n0 ") for text in here.values())
    assert [name for name in here if here[name] != there[name]] == []
