"""Record the ``torch_compile_cache`` that vLLM writes, and its logs, with one declared change at a time.

    python record_vllm.py --python PYTHON --wheel FOLDER --version 0.33.0 --steps all

PYTHON has torch and what vLLM imports, FOLDER is an unpacked wheel of vLLM. All steps share one VLLM_CACHE_ROOT, one after
the other; the result is vllm/<version>.tar.xz. What was stood in for is said in vllm_program.py and in provenance.json.
Compiled libraries (.so) are replaced by as many zero bytes.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from packing import HERE, STEP_TIMEOUT_S, emptied, pack, torch_version

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
    args = parsed(argparse.ArgumentParser(description=__doc__), [step.name for step in STEPS])
    work = prepare(args.version, PROGRAM)
    done = [run(step, work, args) for step in STEPS if step.name in args.steps]
    about = {
        "summary": "vLLM's torch_compile_cache and its logs, with one declared change at a time",
        "torch_version": torch_version(args.python),
        "stood_in_for": "vllm._C (FixFunctionalizationPass does nothing), packages: " + args.stubs,
    }
    write(work, args, about, done)


def parsed(parser: argparse.ArgumentParser, steps: list[str]) -> argparse.Namespace:
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--steps", nargs="*", default=steps)
    parser.add_argument("--stubs", default=STUBS)
    return parser.parse_args()


def prepare(version: str, *programs: str, suffix: str = "") -> Path:
    """An empty folder with what each process needs."""
    work = emptied("vllm", f"{version}{suffix}")
    for name in ("logs", "program", "site", "home", "other_home"):
        (work / name).mkdir()
    (work / "site" / "sitecustomize.py").write_text(SITE)
    # vLLM tells by its version that it was built for CPUs.
    about = work / "site" / f"vllm-{version}+cpu.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
    for program in (STAND_INS, *programs):
        shutil.copy(HERE / program, work / "program")
    return work


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
    """Run one process."""
    source = (HERE / MODEL).read_text()
    (work / "program" / MODEL).write_text(source.replace(*step.source) if step.source else source)
    command = [str(args.python), str(work / "program" / PROGRAM), json.dumps(step.change)]
    variables = environment(work, step.home, args.stubs, args.wheel) | dict(step.environment)
    return told(step) | {"returncode": logged(work, step.name, command, variables)}


def told(step: Any) -> dict[str, object]:
    """The fields of a step, which its name begins."""
    fields = asdict(step)
    return {"step": fields.pop("name"), **fields}


def logged(
    work: Path, name: str, command: list[str], variables: Mapping[str, str], folder: Path | None = None
) -> int:
    """Run one process with its output in logs/<name>.log; returns its status."""
    with (work / "logs" / f"{name}.log").open("wb") as log:
        status = subprocess.run(
            command, env=variables, cwd=folder, stdout=log, stderr=subprocess.STDOUT, timeout=STEP_TIMEOUT_S,
            check=False,
        ).returncode  # fmt: skip
    print(name, status, flush=True)
    return status


def without_libraries(cache: Path) -> None:
    """Replace compiled libraries by as many zero bytes."""
    for library in cache.glob("**/*.so"):
        times = library.stat().st_atime_ns, library.stat().st_mtime_ns
        library.write_bytes(bytes(library.stat().st_size))
        os.utime(library, ns=times)


def write(
    work: Path, args: argparse.Namespace, about: Mapping[str, object], steps: list[dict[str, object]]
) -> None:
    """Pack the cache, the logs and what they are."""
    without_libraries(work / "cache")
    provenance = {
        **about,
        "vllm_version": args.version,
        "python_version": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "steps": steps,
    }
    (work / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")
    parts = [work / name for name in ("provenance.json", "cache", "logs")]
    pack(HERE / "vllm" / f"{work.name}.tar.xz", work, parts)


if __name__ == "__main__":
    main()
