"""Record what the ranks of one engine of vLLM write, with changes of one rank alone and with another torch.

    python record_vllm_ranks.py --python PYTHON --wheel FOLDER --version 0.33.0 --torch 2.13.0=FOLDER 2.15.0=FOLDER

PYTHON has what vLLM imports. Each torch is a folder with its packages; all are used by the same path, as where torch is
upgraded in its place. The first is that of all steps but those that name another. The result is
vllm/<version>_ranks.tar.xz, with what both ranks printed as one log of each step. What was stood in for is said in
vllm_ranks_program.py. Compiled libraries (.so) are replaced by as many zero bytes.
"""

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from record_vllm import environment, logged, parsed, prepare, told, write

PROGRAMS = "vllm_ranks_program.py", "vllm_ranks_model.py"


@dataclass(frozen=True, slots=True)
class Step:
    """One engine, and what is other than in the first: variables of a rank, torch, and how many ranks it has."""

    name: str
    what: str
    of_rank: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    torch: int = 0
    ranks: int = 2


def of_both(variable: str, first: str, second: str) -> dict[str, dict[str, str]]:
    """A variable whose value each rank has for itself."""
    return {"0": {variable: first}, "1": {variable: second}}


STEPS = (
    Step("first", "an empty cache"),
    Step("again", "nothing changed"),
    Step("on_one", "VLLM_USE_TRITON_AWQ=1 on rank 1 only", {"1": {"VLLM_USE_TRITON_AWQ": "1"}}),
    Step("ports", "VLLM_NIXL_SIDE_CHANNEL_PORT=5701 on rank 0, 5702 on rank 1",
         of_both("VLLM_NIXL_SIDE_CHANNEL_PORT", "5701", "5702")),
    Step("bundles", "VLLM_RAY_BUNDLE_INDICES=0 on rank 0, 1 on rank 1", of_both("VLLM_RAY_BUNDLE_INDICES", "0", "1")),
    Step("torch", "torch upgraded", torch=1),
    Step("torch_again", "nothing changed since", torch=1),
    Step("alone", "one rank: no file of torch is traced", ranks=1),
    Step("alone_torch", "the same, torch upgraded", ranks=1, torch=1),
)  # fmt: skip


def main() -> None:
    """Run the steps, and pack what they wrote."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", nargs=2, metavar="VERSION=FOLDER", required=True)
    args = parsed(parser, [step.name for step in STEPS])
    torches = [tuple(each.split("=")) for each in args.torch]
    work = prepare(args.version, *PROGRAMS, suffix="_ranks")
    done = [run(step, work, args, *torches[step.torch]) for step in STEPS if step.name in args.steps]
    about = {
        "summary": "ranks of one engine of vLLM, with changes of one rank alone and with another torch",
        "torch_versions": [version for version, _ in torches],
        "stood_in_for": "the worker's device and weights, its cache of images, vllm._C (FixFunctionalizationPass does "
        "nothing), packages: " + args.stubs,
    }
    write(work, args, about, done)


def run(step: Step, work: Path, args: argparse.Namespace, version: str, folder: str) -> dict[str, object]:
    """Run one engine; its log is what it and its ranks print."""
    link = work / "torch"
    link.unlink(missing_ok=True)
    link.symlink_to(folder)
    variables = environment(work, "home", args.stubs, link, args.wheel) | {
        "CHANGE": json.dumps({"of_rank": step.of_rank, "ranks": step.ranks}),
        # With "auto", each rank needs a NUMA node of its own.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }
    command = [str(args.python), str(work / "program" / PROGRAMS[0])]
    status = logged(work, step.name, command, variables, work / "home")
    return told(step) | {"torch": version, "returncode": status}


if __name__ == "__main__":
    main()
