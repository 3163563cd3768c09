"""Programs that do what is hard to foretell: each runs for real and as a pre-flight, and both are held against each other.

A pre-flight makes the lookups of the real run, or says which it does not know; it ends as the real run does and prints the same;
and it leaves every file as it was: those of the caches, of the home folder, of the temporary one and of the program.
"""

import ast
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from cachescope.scope.preflight import read_preflight
from tests.capture.preflights import (
    CACHES,
    TORCH_PYTHON,
    entries_of,
    environment,
    lookups_of,
    open_of,
    would_store,
)
from tests.programs import ran

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(1800)]

PROGRAM = Path(__file__).with_name("hard_programs.py")
# What only other programs run.
_PARTS = {"one", "defaulted", "moves", "complains", "vectorised"}
NAMES = [
    node.name
    for node in ast.parse(PROGRAM.read_bytes()).body
    if isinstance(node, ast.FunctionDef) and node.decorator_list and node.name not in _PARTS
]
QUICK = {"own_environment", "set_by_default", "saved_artifacts", "dropout", "exits_at_once"}
"""Those that run whenever the slow tests do."""
NOT_KNOWN = {
    "branches_on_counters": "the program has read torch's counts",
    "capability": "made for another CPU",
    "cleared": "they run at the same time",
    "errors": "its compile failed",
    "forked": "they run at the same time",
    "forked_after": "they run at the same time",
    "forkserver": "they run at the same time",
    "isolated": "compiled for real",
}
"""The programs of which some lookups cannot be predicted, with words of the reason."""
REFUSED = {
    "emptied_environment": "a shell starts Python without the variables of the pre-flight",
    "saved_artifacts": "torch.compiler.save_cache_artifacts",
    "saved_function": "a function that was compiled ahead",
    "saved_package": "an AOTInductor package",
    "saved_standalone": "CompiledArtifact.save",
    "shell": "a shell starts Python without the variables of the pre-flight",
}
"""The programs that end before they save what was not compiled, or start what would compile for real."""
OTHER_NUMBERS = {"branches_on_random_values", "dropout", "random_numbers"}
"""Programs that print numbers that a graph drew; what is drawn after it they print last."""
PREFLIGHT = (sys.executable, "-m", "cachescope", "preflight")


class World:
    """The folders that a program can reach: its own, with files of the user, the cache, home and temporary ones."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = root / "cwd"
        for name in ("cache", "home", "tmp", "cwd"):
            (root / name).mkdir(parents=True)
        for name in ("function.pt", "mega.bin", "artifact.bin", "model.pt2"):
            (self.place / name).write_text("of the user")

    def variables(self) -> dict[str, str]:
        cache = self.root / "cache"
        named = {"TMPDIR": "tmp", "HOME": "home"}
        own = {name: str(self.root / folder) for name, folder in named.items()}
        return environment(cache, HARD_CACHE=str(cache), **own)

    def ran(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command in it, however it ends."""
        return ran(command, self.variables(), status=None, cwd=self.place)

    def files(self) -> dict[str, bytes]:
        """Every file in it."""
        return {str(path): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}

    def shown(self, text: str) -> str:
        return text.replace(str(self.root), "WORLD")


@dataclass(frozen=True)
class Went:
    """How a run ended, what it printed, and what torch counted and stored."""

    status: int
    printed: str
    counted: Counter[str]
    stored: set[tuple[str, str]]


def really(name: str, world: World, counters: Path) -> Went:
    done = world.ran(TORCH_PYTHON, PROGRAM, name, counters)
    counted = sum((Counter(json.loads(file.read_text())) for file in counters.glob("*")), Counter[str]())
    stored = {(which, path.parent.name) for which in CACHES for path in entries_of(world.root, which)}
    status = 128 - done.returncode if done.returncode < 0 else done.returncode
    return Went(status, world.shown(done.stdout), counted, stored)


def held(name: str, world: World, went: Went, kept: Path) -> None:
    """Hold a pre-flight in a world against what the real run did, which ran in an equal one."""
    before = world.files()
    done = world.ran(*PREFLIGHT, "--keep", kept, "--", TORCH_PYTHON, PROGRAM, name, kept / "counters")
    assert world.files() == before
    assert "meanwhile" not in done.stdout
    (traces,) = (folder for folder in kept.iterdir() if folder.name != "counters")
    scope = read_preflight(str(traces), None) if any(traces.glob("dedicated_log_torch_trace_*")) else None
    told = [] if scope is None else lookups_of(scope)
    foretold = Counter(f"{cache} {'miss' if way == 'guard_miss' else way}" for cache, _, way in told)
    if name in REFUSED:
        assert done.returncode == 2 and REFUSED[name] in done.stderr and "hard_programs.py:" in done.stderr
        assert went.status == 0 and not foretold - went.counted - Counter({"fxgraph disabled": 9})
        return
    assert json.loads((traces / "run.json").read_text())["exit_status"] == went.status, done.stderr
    printed = world.shown(done.stdout)
    if name in OTHER_NUMBERS:
        last = len(went.printed.splitlines()) - 1
        is_drawn_after = printed.splitlines()[last] == went.printed.splitlines()[last]
        assert is_drawn_after or name == "branches_on_random_values"
    else:
        assert printed.startswith(went.printed), printed
    assert scope is not None
    if name not in NOT_KNOWN:
        assert foretold - Counter({"fxgraph disabled": 9}) == went.counted and not open_of(told)
        # With `caching_precompile` AOTAutograd's keys hold a random name.
        known = {CACHES[0]} if name == "precompiled" else {*CACHES}
        stores = {one for one in would_store(scope) if one[0] in known}
        assert stores == {one for one in went.stored if one[0] in known}
        return
    open_ = scope.lookups.loc[scope.lookups["outcome"] == "not_known", "prediction"]
    assert any(NOT_KNOWN[name] in why for why in open_), list(open_)
    known = Counter({way: count for way, count in foretold.items() if not way.endswith("not_known")})
    assert not known - went.counted


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.models) for name in NAMES]
)
def test_it_is_foretold_and_leaves_everything_as_it_was(name: str, tmp_path: Path) -> None:
    went = really(name, World(tmp_path / "real"), tmp_path / "counters")
    held(name, World(tmp_path / "flown"), went, tmp_path / "kept")


@pytest.mark.models
@pytest.mark.parametrize("name", ["branches_on_counters", "profile_in_code"])
def test_what_an_earlier_run_left_is_taken_into_account(name: str, tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    really(name, world, tmp_path / "first")
    stored = {(which, path.parent.name) for which in CACHES for path in entries_of(world.root, which)}
    held_traces = tmp_path / "kept"
    before = world.files()
    program = (TORCH_PYTHON, PROGRAM, name, tmp_path / "foretold")
    assert world.ran(*PREFLIGHT, "--keep", held_traces, "--", *program).returncode == 0
    assert world.files() == before
    (traces,) = held_traces.iterdir()
    scope = read_preflight(str(traces), None)
    went = really(name, world, tmp_path / "second")
    told = lookups_of(scope)
    known = Counter(f"{cache} {way}" for cache, _, way in told if way != "not_known")
    if name in NOT_KNOWN:
        assert open_of(told) and not known - went.counted
    else:
        assert known == went.counted and went.stored == stored | would_store(scope)


SCRIPT = f"""#!/bin/sh
unset PYTHONPATH TORCHINDUCTOR_CACHE_DIR TORCH_TRACE CACHESCOPE_PREFLIGHT
{TORCH_PYTHON} {PROGRAM} one counters
"""


def test_what_is_not_contained_is_said_before_all_else(tmp_path: Path) -> None:
    """A script of a shell empties the environment, where nothing sees it."""
    world = World(tmp_path)
    script = world.place / "escape.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    code = "import subprocess; subprocess.run(['./escape.sh'], check=True); subprocess.run('ssh -V || true', shell=True)"
    done = world.ran(*PREFLIGHT, "--", TORCH_PYTHON, "-c", code)
    first, second = (one for one in done.stderr.splitlines() if "meanwhile" in one or "ssh started" in one)
    assert first.startswith("cachescope: meanwhile ") and "files appeared in" in first
    assert second == "cachescope: what ssh started is not part of it"
