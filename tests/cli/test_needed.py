"""Recording and capturing need nothing but Python and torch: a training environment keeps its own packages."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cachescope.cli.needed import NEEDED
from tests.cli.conftest import in_pipe

pytestmark = pytest.mark.slow

PYPROJECT = Path(__file__).parent.parent.parent / "pyproject.toml"

_WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {needed!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {needed!r} else found(name, package)
from cachescope.cli import main
sys.exit(main(sys.argv[1:]))
"""


def without_packages(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command of an installation that has no package but cachescope itself."""
    return in_pipe([sys.executable, "-c", _WITHOUT.format(needed=set(NEEDED)), *arguments], cwd=cwd)


def test_what_is_needed_is_what_an_installation_brings() -> None:
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    needed = [one for one in map(Requirement, declared) if one.marker is None or one.marker.evaluate()]
    assert [one.name.partition(".")[0] for one in needed] == list(NEEDED)


def test_recording_needs_no_package(tmp_path: Path) -> None:
    done = without_packages("record", "--", sys.executable, "-c", "print(1); exit(7)", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "1\n")
    assert "filelock is not installed here; explain it elsewhere: cachescope explain" in done.stderr
    (note,) = (tmp_path / "cachescope-runs").glob("*/run.json")
    assert json.loads(note.read_text())["exit_status"] == 7


def test_hiding_needs_no_package(tmp_path: Path) -> None:
    given = "--output", tmp_path / "logs-of-ann"
    done = without_packages(
        "record", "--redact", *map(str, given), "--", sys.executable, "-c", "print(1)", cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "its logs are in <path-1> (exit status 0)" in done.stderr and "ann" not in done.stderr


@pytest.mark.parametrize("arguments", [("demo",), ("explain", "."), ("entries", ".")])
def test_a_command_that_needs_one_says_which(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = without_packages(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"cachescope: \w+ is not installed: pip install cachescope\n", done.stderr)


def test_where_there_is_no_unix_it_says_what_to_set(tmp_path: Path) -> None:
    program = (
        "import os, sys; from cachescope.capture import recording; from cachescope.cli import main\n"
        "os.name = 'nt'; sys.exit(main(['record', '--', 'python']))"
    )
    done = in_pipe([sys.executable, "-c", program], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("cachescope: this system is not a Unix; record with TORCH_TRACE=")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.torch
def test_capturing_needs_torch_alone(tmp_path: Path) -> None:
    code = (
        "import sys; before = {*sys.modules}; import torch, torch._inductor.codecache, torch.compiler.config\n"
        "of_torch = {*sys.modules}; import cachescope; snapshot = cachescope.capture()\n"
        "print(snapshot['key_fields'] is not None, "
        "{'numpy', 'pandas', 'pyarrow', 'orjson', 'rich'} & ({*sys.modules} - of_torch))"
    )
    done = in_pipe([sys.executable, "-c", code], cwd=tmp_path)
    assert done.stdout == "True set()\n", done.stderr


@pytest.mark.parametrize("command", ["record", "capture"])
def test_nothing_heavy_is_loaded_for_a_recorder(command: str) -> None:
    program = (
        f"import sys; from cachescope.cli import main; main(['{command}', '--help'])\n"
        "import cachescope.capture.recording\n"
        f"print({set(NEEDED)!r} & {{*sys.modules}}, file=sys.stderr)"
    )
    assert in_pipe([sys.executable, "-c", program]).stderr == "set()\n"
