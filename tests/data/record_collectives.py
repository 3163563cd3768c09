"""Records ranks that compile collectives: ``python tests/data/record_collectives.py PYTHON`` for an interpreter with torch.

Writes ``tests/data/collectives/VERSION.tar.xz`` with the traces of two ranks (gloo, on a CPU) in each of three runs: ``alike``, ``apart``, where
one function has one all_reduce more in rank 0, and ``warm``, the same once more on the caches of ``apart``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from packing import pack_each

_PROGRAM = """
import sys
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives

dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=int(sys.argv[3]), world_size=2)
are_apart = sys.argv[1] != "alike"

@torch.compile
def step(x):
    x = collectives.all_reduce(x * 2, "sum", dist.group.WORLD)
    if are_apart and dist.get_rank() == 0:
        x = collectives.all_reduce(x + 1, "sum", dist.group.WORLD)
    return x.relu()

@torch.compile
def gathered(x):
    y = collectives.all_gather_tensor(x, 0, dist.group.WORLD)
    return collectives.all_reduce(y * 3, "sum", dist.group.WORLD) + 1

@torch.compile
def alone(x):
    return x.sin()

x = torch.ones(4)
step(x)
if are_apart and dist.get_rank() == 1:
    dist.all_reduce(x)
gathered(x)
alone(x)
dist.barrier()
dist.destroy_process_group()
"""
WAYS = ("alike", "apart", "warm")


def record_into(folder: Path, python: str = sys.executable) -> Path:
    """Run both ranks in each way; the folder then has a folder with their traces for each."""
    program = folder / "collectives.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    for way in WAYS:
        ranks = []
        for rank in ("0", "1"):
            environment = os.environ | {
                "RANK": rank,
                "WORLD_SIZE": "2",
                "TORCH_TRACE": str(folder / way),
                "TORCHINDUCTOR_CACHE_DIR": str(
                    folder / f"cache_{'alike' if way == 'alike' else 'apart'}_{rank}"
                ),
            }
            command = [python, str(program), way, str(folder / f"meet_{way}"), rank]
            ranks.append(subprocess.Popen(command, env=environment))
        for one in ranks:
            if one.wait(timeout=300):
                raise RuntimeError(f"a rank of {way} failed")
    return folder


if __name__ == "__main__":
    leave_out = {
        "collectives.py",
        *(f"cache_{way}_{rank}" for way in WAYS for rank in (0, 1)),
        *(f"meet_{way}" for way in WAYS),
    }
    pack_each("collectives", record_into, leave_out)
