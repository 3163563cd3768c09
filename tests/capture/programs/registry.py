"""What the programs share: the list of them, the settings of a run, two models, and what torch counted."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

Program = Callable[[], None]
PROGRAMS: dict[str, Program] = {}
RANKS: dict[str, int] = {}
"""How many processes torchrun starts of a program; of all others there is one."""
SIZES = [int(size) for size in os.environ.get("PREFLIGHT_PROGRAM_SIZES", "5 6 7").split()]


def program(function: Program) -> Program:
    """Register a program under its name."""
    PROGRAMS[function.__name__] = function
    return function


def of_ranks(count: int) -> Callable[[Program], Program]:
    """Register a program of several ranks."""

    def registered(function: Program) -> Program:
        RANKS[function.__name__] = count
        return program(function)

    return registered


class Layer(nn.Module):
    """A layer of a class of its own: Dynamo does not begin in the code of torch.nn."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.linear(x).relu()


def mlp_model() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def conv_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=2, padding=1),
        nn.Flatten(),
        nn.Linear(8 * 16, 4),
    )


WAYS = ("hit", "miss", "bypass", "guard_miss")


def counted() -> dict[str, int]:
    """What torch counted of its caches."""
    counters = torch._dynamo.utils.counters
    found = {f"fxgraph {way}": counters["inductor"][f"fxgraph_cache_{way}"] for way in WAYS}
    found |= {f"aotautograd {way}": counters["aot_autograd"][f"autograd_cache_{way}"] for way in WAYS}
    return {name: count for name, count in found.items() if count}


def write_counted(folder: str) -> None:
    """Write it as a file of this process."""
    Path(folder).mkdir(exist_ok=True)
    Path(folder, f"{os.getpid()}.json").write_text(json.dumps(counted()))
