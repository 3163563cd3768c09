"""Trains one step; run as ``python mega_program.py save|load|plain FILE``: FILE is a mega-cache.

Prints what torch counted, as JSON.
"""

import json
import sys

import torch
from torch import nn

from tests.capture.programs.registry import counted


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
    print(json.dumps(counted()))
