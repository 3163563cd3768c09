"""Which graphs torch finds in cache directories: prints, for each directory given, the counters of each function.

Run as a program. One process for all directories: what it keeps in memory is cleared between them.
"""

import json
import os
import sys
from collections.abc import Callable

import torch
from torch._dynamo.utils import counters
from torch._inductor.utils import clear_caches

COUNTED = {
    "inductor": ("fxgraph_cache_hit", "fxgraph_cache_miss", "fxgraph_cache_guard_miss"),
    "aot_autograd": ("autograd_cache_hit", "autograd_cache_miss", "autograd_cache_guard_miss"),
}


def shifted(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x + 1.0)


def renamed(y: torch.Tensor) -> torch.Tensor:
    return torch.relu(y + 1.0)


def trained(x: torch.Tensor) -> torch.Tensor:
    weight = torch.full((8, 8), 0.5, requires_grad=True)
    return (x @ weight).sin().sum()


def sized(x: torch.Tensor) -> torch.Tensor:
    return x.cos() * 2.0


def calls() -> dict[str, Callable[[], object]]:
    """What is compiled: two functions of one graph, one with a backward graph, one with guards."""
    x = torch.ones(8, 8)
    return {
        "shifted": lambda: torch.compile(shifted)(x),
        "renamed": lambda: torch.compile(renamed)(x),
        "trained": lambda: torch.compile(trained)(x).backward(),
        "sized": lambda: torch.compile(sized, dynamic=True)(torch.ones(12, 3)),
    }


def counted(call: Callable[[], object]) -> dict[str, int]:
    torch._dynamo.reset()
    counters.clear()
    try:
        call()
    except (
        Exception
    ) as error:  # an entry of another graph was loaded, say; what was looked up counts all the same
        print(error, file=sys.stderr)
    return {name: counters[kind][name] for kind, names in COUNTED.items() for name in names}


def main() -> None:
    found = {}
    for folder in sys.argv[1:]:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        clear_caches()
        found[folder] = {name: counted(call) for name, call in calls().items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
