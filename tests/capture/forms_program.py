"""Compiles functions of products alone, which need no C++ compiler; the same with ``changed`` in another form each."""

import sys
from contextlib import nullcontext

import torch
from torch.utils.checkpoint import checkpoint

CHANGED = "changed" in sys.argv


def layered(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(3 if CHANGED else 2):
        x = torch.mm(x, w)
    return x


def chain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(9):
        x = torch.mm(x, w)
    return x


def checkpointed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return checkpoint(chain, x, w, use_reentrant=False) if CHANGED else chain(x, w)


def cast(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x = torch.mm(x, w)
    return torch.mm(x, w.to(x.dtype))


def late(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.mm(w, x.T)


def after(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, torch.mm(w, w))


def flat(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, w).view(x.shape[0] * w.shape[0])


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, w)


def tensors(width: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(4, width), torch.ones(width, width, requires_grad=True)


torch.set_num_threads(1)
torch.compile(layered)(*tensors(8))
torch.compile(checkpointed)(*tensors(8)).sum().backward()
with torch.autocast("cpu", dtype=torch.bfloat16) if CHANGED else nullcontext(), torch.no_grad():
    torch.compile(cast)(*tensors(8))
for wide in map(torch.compile, (flat, product)):
    wide(*tensors(24 if CHANGED else 16)).sum().backward()
    with torch.no_grad():
        wide(*tensors(24 if CHANGED else 16))
if not CHANGED:
    torch._dynamo.reset()
    found = torch.compile(late)(*tensors(8)).sum()
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(after)(*tensors(8))
    found.backward()
