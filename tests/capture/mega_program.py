"""Trains one step; run as ``python mega_program.py save|load|plain FILE``: FILE is a mega-cache.

Prints what torch counted, as JSON.
"""

from __future__ import annotations

import json
import sys

import torch
from torch import nn


def train() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    torch.compile(model)(torch.randn(4, 8)).sum().backward()


if __name__ == "__main__":
    how, file = sys.argv[1:]
    if how == "load":
        with open(file, "rb") as opened:
            torch.compiler.load_cache_artifacts(opened.read())
    train()
    if how == "save":
        artifacts = torch.compiler.save_cache_artifacts()
        assert artifacts is not None
        with open(file, "wb") as opened:
            opened.write(artifacts[0])
    counters = torch._dynamo.utils.counters
    found = {
        f"{cache} {way}": counters[group][f"{group_name}_{way}"]
        for cache, group, group_name in (
            ("fxgraph", "inductor", "fxgraph_cache"),
            ("aotautograd", "aot_autograd", "autograd_cache"),
        )
        for way in ("hit", "miss")
    }
    print(json.dumps({name: count for name, count in found.items() if count}))
