"""Runs programs as pre-flights and for real, and reads what torch then did: from its trace and its counters alone."""

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

import cachescope
from cachescope.readers.logs.notes import LookupNote
from cachescope.scope.preflight import read_preflight
from cachescope.terms import LOGGERS
from tests.capture.program_names import RANKS
from tests.programs import ran
from tests.truth import artifacts

ROOT = Path(__file__).parents[2]
TORCH_PYTHON = os.environ.get("CACHESCOPE_MODELS_PYTHON") or sys.executable
"""The Python whose torch runs the programs; what is predicted is read by this one."""
Lookup = tuple[str, str | None, str]
"""A cache, a key (of a bypass the reason), and how it ended: hit, miss, guard_miss, bypass, disabled."""
WORDS = {"would_hit": "hit", "would_miss": "miss", "would_bypass": "bypass"}
CACHES = ("fxgraph", "aotautograd")


def environment(cache: Path, **more: str) -> dict[str, str]:
    ours = ("TORCH_", "CACHESCOPE_")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
        "PYTHONPATH": str(ROOT),
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "PREFLIGHT_PROGRAM_CACHE": str(cache),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        # Told, not tried: the trial compile takes seconds of each process.
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
        **more,
    }


def told_by(
    words: Sequence[str | Path], variables: Mapping[str, str], status: int | None = 0
) -> subprocess.CompletedProcess[str]:
    """Run the command line of cachescope."""
    return ran([sys.executable, "-m", "cachescope", *words], variables, status=status)


@dataclass(frozen=True)
class Went:
    """What torch did in a real run, all its processes together."""

    lookups: list[Lookup]
    counted: Counter[str]


def really(command: list[str], cache: Path, folder: Path, **more: str) -> Went:
    """Run it for real on a cache."""
    folder.mkdir(parents=True)
    traced = {
        "TORCH_TRACE": str(folder / "trace"), "TORCH_LOGS": LOGGERS, "TORCH_LOGS_OUT": str(folder / "log"),
    }  # fmt: skip
    counters = folder / "counters"
    ran([*command, counters], environment(cache, **traced, **more))
    text = "".join(trace.read_text(errors="replace") for trace in sorted((folder / "trace").iterdir()))
    found = [_artifact(*one) for one in artifacts(text)]
    counted = sum((Counter(json.loads(file.read_text())) for file in counters.iterdir()), Counter[str]())
    return Went(found, counted)


def _artifact(cache: str, way: str, told: Mapping[str, str]) -> Lookup:
    if way == "bypass":
        return cache, _reason(told["cache_bypass_reason"]), way
    return cache, told["key"], "guard_miss" if told.get("cache_status_detailed") == "guard_miss" else way


def _reason(text: str) -> str:
    """Without addresses, and without what could not be pickled: only the text log says that, which a pre-flight has, too."""
    return re.sub(r"0x[0-9a-f]+", "0x…", re.sub("(?<=^Failed to pickle cache key): .*", "", text.strip()))


def preflown(command: list[str], cache: Path, folder: Path, options: Sequence[str] = (), **more: str) -> Path:
    """Run it as a pre-flight by the command line, and return the folder of its traces."""
    folder.mkdir(parents=True)
    words = ["preflight", "--keep", folder, "--json", *options, "--", *command]
    told_by(words, environment(cache, **more))
    (kept,) = folder.iterdir()
    return kept


def traces_in(folder: Path) -> Path:
    """The traces of the only pre-flight that was run into ``preflight`` of a folder."""
    (traces,) = (folder / "preflight").iterdir()
    return traces


def predicted(traces: Path, *against: Path) -> list[Lookup]:
    """The lookups that a pre-flight predicts; an outcome that is not known stays as it is."""
    return lookups_of(read_preflight(str(traces), [str(one) for one in against]))


def lookups_of(scope: cachescope.Scope) -> list[Lookup]:
    return [_predicted(row) for row in _foreseen(scope).to_dict("records")]


def _foreseen(scope: cachescope.Scope) -> pd.DataFrame:
    runs = set(scope.runs.loc[scope.runs["is_preflight"], "run"])
    return scope.lookups[scope.lookups["run"].isin(runs)]


def _predicted(row: Mapping[str, Any]) -> Lookup:
    outcome = WORDS.get(row["outcome"], row["outcome"])
    if outcome == "bypass":
        return row["cache"], _reason(row["bypass_reason"]), outcome
    is_guard_miss = outcome == "miss" and row["status_detailed"] == "guard_miss"
    return row["cache"], row["cache_key"], "guard_miss" if is_guard_miss else outcome


def would_store(scope: cachescope.Scope) -> set[tuple[str, str]]:
    """The caches and keys under which a real run would leave entries, as predicted."""
    rows = _foreseen(scope)
    missed = rows[rows["outcome"].isin(["would_miss", "not_known"]) & rows["preflight_note"].notna()]
    told = zip(missed["cache"], missed["cache_key"], missed["preflight_note"], strict=True)
    return {(cache, key) for cache, key, note in told if LookupNote.of_json(note).is_stored}


def assert_came_true(told: list[Lookup], went: Went) -> None:
    """Held against both: keys and outcomes of the trace, and torch's counters; nothing may be left open."""
    assert not open_of(told)
    assert_nothing_else_came(told, went)
    for cache in CACHES:
        ways = [way for where, _, way in told if where == cache]
        for way in ("hit", "bypass"):
            assert ways.count(way) == went.counted[f"{cache} {way}"], (cache, way)
        # A lookup of a disabled cache is no lookup; one whose guards fail is counted twice by AOTAutograd.
        missed = ways.count("miss") + ways.count("guard_miss")
        assert missed == went.counted[f"{cache} miss"]
    guards = sum(one[0] == "aotautograd" and one[2] == "guard_miss" for one in told)
    assert guards == went.counted["aotautograd guard_miss"]


def open_of(told: list[Lookup]) -> list[Lookup]:
    """The lookups of which it is not known how they end."""
    return [one for one in told if one[2] == "not_known"]


def assert_nothing_else_came(told: list[Lookup], went: Went) -> None:
    """Every key came, and every outcome that was predicted; what is left open may have any.

    A disabled cache leaves no artifact.
    """
    known = Counter(one for one in told if one[2] not in ("disabled", "not_known"))
    came = Counter(went.lookups)
    assert not known - came
    left = (came - known).elements()
    came_so, open_so = (sorted((cache, key or "") for cache, key, _ in one) for one in (left, open_of(told)))
    assert came_so == open_so


def tree_hash(root: Path) -> str:
    """Names, sizes, times and bytes of everything below a folder."""
    digest = hashlib.sha256()
    for path in [root, *sorted(root.rglob("*"))]:
        at = path.lstat()
        digest.update(f"{path.relative_to(root)} {at.st_mode} {at.st_size} {at.st_mtime_ns}\n".encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def copied(cache: Path, to: Path) -> Path:
    return shutil.copytree(cache, to, symlinks=True)


def entries_of(cache: Path, which: str) -> list[Path]:
    """The entries of one of torch's two caches, in a directory or in those below it."""
    return sorted(path for folder in cache.rglob(which) for path in folder.rglob("*") if path.is_file())


def stored_in(cache: Path) -> set[tuple[str, str]]:
    """The caches and keys of all entries that lie there."""
    return {(which, path.parent.name) for which in CACHES for path in entries_of(cache, which)}


@functools.cache
def has_transformers() -> bool:
    """Whether the Python that runs the programs has transformers."""
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('transformers') is None)"
    return ran([TORCH_PYTHON, "-c", code], status=None).returncode == 0


def program(name: str) -> list[str]:
    """The command that runs one of `programs`, by torchrun if it has ranks."""
    ranks = ["--standalone", "--nproc-per-node", str(RANKS.get(name))]
    launcher = ["-m", "torch.distributed.run", *ranks] if name in RANKS else []
    return [TORCH_PYTHON, *launcher, "-m", "tests.capture.programs", name]


_WATCH = """
import os, sys
def watch(event, arguments):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
        command = arguments[0] if event == "os.system" else arguments[1]
        words = command.split() if isinstance(command, str) else [os.fsdecode(word) for word in command]
        with open(os.environ["WATCHED"], "a") as file:
            file.write(os.path.basename(words[0]) + chr(10))
sys.addaudithook(watch)
"""


def watched(folder: Path) -> tuple[dict[str, str], Path]:
    """Variables under which each Python process writes the names of the programs that it starts into a file."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_WATCH)
    started = folder / "started"
    return {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "WATCHED": str(started)}, started


def compiler_that_tells(folder: Path, base: Mapping[str, str]) -> tuple[dict[str, str], Path]:
    """A PATH on which every compiler writes a line into a file instead of compiling."""
    folder.mkdir()
    called = folder / "called"
    for name in ("g++", "gcc", "cc", "c++", "clang", "clang++", "nvcc", "ptxas", "ld", "as"):
        script = folder / name
        script.write_text(f'#!/bin/sh\necho "{name} $*" >> "{called}"\nexit 1\n')
        script.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{base['PATH']}"}, called
