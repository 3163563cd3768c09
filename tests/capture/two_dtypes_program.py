"""Compiles one function for two dtypes, in the order of the arguments after the first, which says whether epilogue_fusion is on."""

import sys

import torch
import torch._inductor.config as config

config.epilogue_fusion = sys.argv[1] == "on"


@torch.compile
def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x * 2)


with torch.no_grad():
    for dtype in sys.argv[2:]:
        doubled(torch.ones(4, 3, dtype=getattr(torch, dtype)))
