"""Record the ``torch_compile_cache`` that vLLM writes, and its logs, with one declared change at a time.

    python record_vllm.py --python PYTHON --wheel FOLDER --version 0.33.0 --steps all

PYTHON has torch and what vLLM imports, FOLDER is an unpacked wheel of vLLM. All steps share one VLLM_CACHE_ROOT, one after
the other; the result is vllm/<version>.tar.xz. What was stood in for is said in vllm_program.py and in provenance.json.
Compiled libraries (.so) are replaced by as many zero bytes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from record import HERE, STEP_TIMEOUT_S, WORKSHOP, without_owner

PROGRAM, MODEL, STAND_INS = "vllm_program.py", "vllm_model.py", "vllm_stand_ins.py"
STUBS = "xgrammar,llguidance"
SITE = '''"""Stands in for packages that vLLM imports and this program never calls."""
import importlib.abc, importlib.machinery, os, sys
from unittest.mock import MagicMock

NAMES = set(os.environ.get("STUBS", "").split(",")) - {""}


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in NAMES:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__spec__, module.__path__, module.__name__ = spec, [], spec.name
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Stubs())
'''


@dataclass(frozen=True, slots=True)
class Step:
    """One process, and what is other than in the first: its environment, its configuration, its model's source."""

    name: str
    what: str
    environment: Mapping[str, str] = field(default_factory=dict)
    change: Mapping[str, Any] = field(default_factory=dict)
    source: tuple[str, str] | None = None
    home: str = "home"


# Artifacts of their own, as vLLM wrote them before 0.33's one package for all.
FILES = {"VLLM_USE_MEGA_AOT_ARTIFACT": "0"}
STEPS = (
    Step("first", "an empty cache"),
    Step("again", "nothing changed"),
    Step("variable", "VLLM_USE_TRITON_AWQ=1", {"VLLM_USE_TRITON_AWQ": "1"}),
    Step("port", "VLLM_NIXL_SIDE_CHANNEL_PORT=5601", {"VLLM_NIXL_SIDE_CHANNEL_PORT": "5601"}),
    Step("home", "HOME is another folder; VLLM_CACHE_ROOT is not", home="other_home"),
    Step("config", "additional_config={'x': 1}", change={"additional": {"x": 1}}),
    Step("rank", "parallel_config.rank is 1", change={"rank": 1}),
    Step("compiler", "torch._inductor.config.max_fusion_size = 32", change={"inductor": {"max_fusion_size": 32}}),
    Step("files", "VLLM_USE_MEGA_AOT_ARTIFACT=0", FILES),
    Step("files_again", "VLLM_USE_MEGA_AOT_ARTIFACT=0, as in the step before", FILES),
    Step("unpacked", "the same, VLLM_COMPILE_CACHE_SAVE_FORMAT=unpacked",
         FILES | {"VLLM_COMPILE_CACHE_SAVE_FORMAT": "unpacked"}),
    Step("no_aot", "VLLM_USE_AOT_COMPILE=0", {"VLLM_USE_AOT_COMPILE": "0"}),
    Step("edited", "a number in the model's source", source=("+ 1.0", "+ 2.0")),
)  # fmt: skip


def main() -> None:
    """Run the steps, and pack what they wrote."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--steps", nargs="*", default=[step.name for step in STEPS])
    parser.add_argument("--stubs", default=STUBS)
    args = parser.parse_args()
    work = WORKSHOP / "vllm" / args.version
    prepare(work, args.version, PROGRAM)
    done = [run(step, work, args) for step in STEPS if step.name in args.steps]
    pack(work, args, done)


def prepare(work: Path, version: str, *programs: str) -> None:
    """An empty folder with what each process needs."""
    shutil.rmtree(work, ignore_errors=True)
    for name in ("logs", "program", "site", "home", "other_home"):
        (work / name).mkdir(parents=True)
    (work / "site" / "sitecustomize.py").write_text(SITE)
    # vLLM tells by its version that it was built for CPUs.
    about = work / "site" / f"vllm-{version}+cpu.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
    for program in (STAND_INS, *programs):
        shutil.copy(HERE / program, work / "program")


def environment(work: Path, home: str, stubs: str, *paths: Path) -> dict[str, str]:
    """What all steps have: nothing of the caller's shell but PATH."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(work / home),
        "PYTHONPATH": os.pathsep.join(map(str, (*paths, work / "site", work / "program"))),
        "VLLM_CACHE_ROOT": str(work / "cache"),
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_LOGGING_LEVEL": "DEBUG",
        "VLLM_NO_USAGE_STATS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "STUBS": stubs,
    }


def run(step: Step, work: Path, args: argparse.Namespace) -> dict[str, object]:
    """Run one process, its output in logs/<name>.log."""
    source = (HERE / MODEL).read_text()
    (work / "program" / MODEL).write_text(source.replace(*step.source) if step.source else source)
    command = [str(args.python), str(work / "program" / PROGRAM), json.dumps(step.change)]
    with (work / "logs" / f"{step.name}.log").open("wb") as log:
        found = subprocess.run(
            command,
            env=environment(work, step.home, args.stubs, args.wheel) | dict(step.environment),
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=STEP_TIMEOUT_S,
            check=False,
        )
    print(step.name, found.returncode, flush=True)
    return {
        "step": step.name,
        "what": step.what,
        "environment": dict(step.environment),
        "change": dict(step.change),
        "source": step.source,
        "home": step.home,
        "returncode": found.returncode,
    }


def without_libraries(cache: Path) -> None:
    """Replace compiled libraries by as many zero bytes."""
    for library in cache.glob("**/*.so"):
        times = library.stat().st_atime_ns, library.stat().st_mtime_ns
        library.write_bytes(bytes(library.stat().st_size))
        os.utime(library, ns=times)


def pack(work: Path, args: argparse.Namespace, steps: list[dict[str, object]]) -> None:
    """Say what the cache and the logs are, and pack them."""
    asked = "import torch; print(torch.__version__)"
    torch = subprocess.run(
        [args.python, "-c", asked], capture_output=True, text=True, check=True
    ).stdout.strip()
    about = {
        "summary": "vLLM's torch_compile_cache and its logs, with one declared change at a time",
        "vllm_version": args.version,
        "torch_version": torch,
        "python_version": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "stood_in_for": "vllm._C (FixFunctionalizationPass does nothing), packages: " + args.stubs,
        "steps": steps,
    }
    write(work, HERE / "vllm" / f"{args.version}.tar.xz", about)


def write(work: Path, target: Path, about: Mapping[str, object]) -> None:
    """Pack the cache, the logs and what they are."""
    without_libraries(work / "cache")
    (work / "provenance.json").write_text(json.dumps(about, indent=1) + "\n")
    target.parent.mkdir(exist_ok=True)
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for name in ("provenance.json", "cache", "logs"):
            archive.add(work / name, name, filter=without_owner)
    print(target, target.stat().st_size)


if __name__ == "__main__":
    main()
