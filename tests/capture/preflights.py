"""Runs programs as pre-flights and for real, and reads what torch then did: from its trace and its counters alone."""

from __future__ import annotations

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

import cachescope
from cachescope.scope.preflight import read_preflight
from cachescope.terms import LOGGERS

PROGRAMS = Path(__file__).with_name("preflight_programs.py")
ROOT = PROGRAMS.parents[2]
Lookup = tuple[str, str | None, str]
"""A cache, a key, and how it ended: hit, miss, bypass, disabled."""
# torch/_inductor/compile_fx.py and torch/_functorch/_aot_autograd/autograd_cache.py.
ARTIFACT = re.compile(
    r'"artifact": \{"name": "(fx_graph|aotautograd)_cache_(hit|miss|bypass)".*\n((?:\t.*\n?)+)', re.MULTILINE
)
WORDS = {"would_hit": "hit", "would_miss": "miss", "would_bypass": "bypass", "disabled": "disabled"}
CACHES = {"fx_graph": "fxgraph", "aotautograd": "aotautograd"}


def environment(cache: Path, **more: str) -> dict[str, str]:
    return {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TORCH_", "CACHESCOPE_"))
        },
        "PYTHONPATH": str(ROOT),
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        # Told, not tried: the trial compile takes seconds of each process.
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
        **more,
    }


@dataclass(frozen=True)
class Went:
    """What torch did in a real run."""

    lookups: list[Lookup]
    counted: dict[str, int]


def really(command: list[str], cache: Path, folder: Path, **more: str) -> Went:
    """Run it for real on a cache."""
    folder.mkdir(parents=True)
    traced = {
        "TORCH_TRACE": str(folder / "trace"),
        "TORCH_LOGS": LOGGERS,
        "TORCH_LOGS_OUT": str(folder / "log"),
    }
    counters = folder / "counters.json"
    subprocess.run(
        [*command, str(counters)],
        env=environment(cache, **traced, **more),
        check=True,
        timeout=500,
        capture_output=True,
    )
    text = "".join(trace.read_text(errors="replace") for trace in sorted((folder / "trace").iterdir()))
    found = [
        (CACHES[cache], json.loads(payload.replace("\n\t", "\n"))["key"] if way != "bypass" else None, way)
        for cache, way, payload in ARTIFACT.findall(text)
    ]
    return Went(found, {name: count for name, count in json.loads(counters.read_text()).items() if count})


def preflown(command: list[str], cache: Path, folder: Path, options: Sequence[str] = (), **more: str) -> Path:
    """Run it as a pre-flight by the command line, and return the folder of its traces."""
    folder.mkdir(parents=True)
    flags = ["--keep", str(folder), "--json", *options]
    done = subprocess.run(
        [sys.executable, "-m", "cachescope", "preflight", *flags, "--", *command],
        env=environment(cache, **more),
        check=False,
        timeout=500,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (kept,) = folder.iterdir()
    return kept


def foretold(traces: Path, *against: Path) -> list[Lookup]:
    """The lookups that a pre-flight foretells; an outcome that is not known stays as it is."""
    scope = read_preflight(str(traces), [str(one) for one in against])
    return lookups_of(scope)


def lookups_of(scope: cachescope.Scope) -> list[Lookup]:
    foreseen = set(scope.runs.loc[scope.runs["is_preflight"], "run"])
    lookups = scope.lookups[scope.lookups["run"].isin(foreseen)]
    rows = zip(lookups["cache"], lookups["cache_key"], lookups["outcome"], strict=True)
    return [(cache, key if key == key else None, WORDS.get(outcome, outcome)) for cache, key, outcome in rows]


def assert_came_true(told: list[Lookup], went: Went) -> None:
    """Held against both: keys and outcomes of the trace, and torch's counters.

    A disabled cache leaves no artifact, and torch counts a bypass where it counts at all.
    """
    made = [one for one in told if one[2] != "disabled"]
    assert Counter(made) == Counter(went.lookups)
    for way in ("hit", "bypass"):
        for cache in CACHES.values():
            count = sum(one[0] == cache and one[2] == way for one in told)
            assert count == went.counted.get(f"{cache} {way}", 0), (cache, way)


def tree_hash(root: Path) -> str:
    """Names, sizes, times and bytes of everything below a folder."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        about = path.lstat()
        digest.update(
            f"{path.relative_to(root)} {about.st_mode} {about.st_size} {about.st_mtime_ns}\n".encode()
        )
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def copied(cache: Path, to: Path) -> Path:
    return shutil.copytree(cache, to, symlinks=True)


def entries_of(cache: Path, which: str) -> list[Path]:
    """The entries of one of torch's two caches."""
    return sorted(path for path in (cache / which).rglob("*") if path.is_file())


def program(name: str, python: str = sys.executable) -> list[str]:
    return [python, str(PROGRAMS), name]


def compiler_that_tells(folder: Path, base: Mapping[str, str]) -> tuple[dict[str, str], Path]:
    """A PATH on which every compiler writes a line into a file instead of compiling."""
    folder.mkdir()
    called = folder / "called"
    for name in ("g++", "gcc", "cc", "c++", "clang", "clang++", "nvcc", "ptxas", "ld", "as"):
        script = folder / name
        script.write_text(f'#!/bin/sh\necho "{name} $*" >> "{called}"\nexit 1\n')
        script.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{base['PATH']}"}, called
