"""A small model that is trained for one step, as people have it: what differs from run to run is in variables."""

from __future__ import annotations

import os

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def loss_of(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (y - target).square().mean()


torch.manual_seed(0)
if "DETERMINISTIC" in os.environ:
    torch.use_deterministic_algorithms(True)
if "NO_FUSION" in os.environ:
    torch._inductor.config.epilogue_fusion = False
block = torch.compile(Block())
loss = torch.compile(loss_of)
loss(block(torch.randn(8, 16)), torch.zeros(8, 16)).backward()
