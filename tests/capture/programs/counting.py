"""What torch counted in this process, written where the tests look for it."""

import json
import os
from pathlib import Path

import torch

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
