"""Programs of several processes: one after the other, and the two ranks that torchrun starts."""

import os
import subprocess
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tests.capture.programs.registry import Layer, of_ranks, program


@program
def in_turn() -> None:
    """The second process finds what the first stored."""
    for _ in range(2):
        subprocess.run([sys.executable, "-m", __spec__.parent, "mlp", *sys.argv[2:]], check=True)


def train() -> None:
    dist.init_process_group("gloo")
    model = torch.compile(DistributedDataParallel(Layer()))
    model(torch.randn(4, 8)).sum().backward()
    dist.barrier()


@of_ranks(2)
def ddp() -> None:
    """Both ranks look up the same keys in one directory."""
    train()


@of_ranks(2)
def ddp_with_directories_of_their_own() -> None:
    own = os.path.join(os.environ["PREFLIGHT_PROGRAM_CACHE"], f"rank{dist.get_node_local_rank()}")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = own
    train()


@of_ranks(2)
def collective() -> None:
    """A collective within the graph."""
    dist.init_process_group("gloo")
    torch.compile(lambda x: dist._functional_collectives.all_reduce(x * 2, "sum", [0, 1]) + 1)(torch.ones(4))
    dist.barrier()
