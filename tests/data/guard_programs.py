"""Programs that are one graph for all sizes, with guards that other sizes fail: ``python guard_programs.py STEP FACTS``.

``first`` stores an entry for each program. ``second`` looks each up with a size for which its guards do not hold. What the advice says is in
``padded``, to be run after ``first``, and in ``both``, to be run after ``second``. FACTS is a JSON file of what torch counted for each program,
and which sizes it was called with.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
from torch import Tensor
from torch._dynamo.utils import counters


def bounded(x: Tensor) -> Tensor:
    if x.shape[0] > 10 and x.shape[0] < 4097:
        return torch.relu(x * 2)
    return torch.relu(x * 2)


def at_most(x: Tensor) -> Tensor:
    if x.shape[0] * 2 <= 64:
        return torch.relu(x * 3)
    return torch.relu(x * 3)


def remainder(x: Tensor) -> Tensor:
    if x.shape[0] % 8 == 0:
        return torch.relu(x * 4)
    return torch.relu(x * 4)


def compared(x: Tensor, y: Tensor) -> Tensor:
    if x.shape[0] > y.shape[0]:
        return torch.relu(x).sum() + torch.relu(y).sum()
    return torch.relu(x).sum() + torch.relu(y).sum()


def number(x: Tensor, n: int) -> Tensor:
    if n > 100:
        return torch.relu(x * n)
    return torch.relu(x * n)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.x = torch.nn.Sequential(torch.nn.Linear(4, 4))

    def forward(self, tokens: Tensor) -> Tensor:
        y = self.x(tokens)
        if y.shape[1] >= 12:
            return torch.relu(y)
        return torch.relu(y)


def dynamic(rows: int, *rest: int, dim: int = 0) -> Tensor:
    x = torch.ones(rows, *rest)
    torch._dynamo.mark_dynamic(x, dim)
    return x


Call = Callable[[], tuple[Any, ...]]
CALLS: dict[str, dict[str, tuple[Any, Call]]] = {
    "first": {
        "bounded": (bounded, lambda: (dynamic(20),)),
        "at_most": (at_most, lambda: (dynamic(20),)),
        "remainder": (remainder, lambda: (dynamic(16),)),
        "compared": (compared, lambda: (dynamic(20), dynamic(7))),
        "number": (number, lambda: (torch.ones(3), 200)),
        "model": (Model, lambda: (dynamic(2, 16, 4, dim=1),)),
    },
    "second": {
        "bounded": (bounded, lambda: (dynamic(5),)),
        "at_most": (at_most, lambda: (dynamic(50),)),
        "remainder": (remainder, lambda: (dynamic(13),)),
        "compared": (compared, lambda: (dynamic(6), dynamic(9))),
        "number": (number, lambda: (torch.ones(3), 50)),
        "model": (Model, lambda: (dynamic(2, 7, 4, dim=1),)),
    },
    "padded": {
        "bounded": (bounded, lambda: (dynamic(11),)),
        "model": (Model, lambda: (dynamic(2, 12, 4, dim=1),)),
    },
    "both": {
        "bounded": (bounded, lambda: (dynamic(6),)),
        "at_most": (at_most, lambda: (dynamic(60),)),
        "remainder": (remainder, lambda: (dynamic(11),)),
        "compared": (compared, lambda: (dynamic(4), dynamic(5))),
        "number": (number, lambda: (torch.ones(3), 60)),
        "model": (Model, lambda: (dynamic(2, 5, 4, dim=1),)),
    },
}


def run(step: str) -> dict[str, dict[str, int]]:
    found = {}
    for name, (function, inputs) in CALLS[step].items():
        torch._dynamo.reset()
        counters.clear()
        torch.manual_seed(0)
        called = function() if isinstance(function, type) else function
        options: dict[str, Any] = {"dynamic": True} if name == "number" else {}
        with torch.no_grad():
            torch.compile(called, **options)(*inputs())
        groups = ("aot_autograd", "inductor")
        found[name] = {
            key: count for group in groups for key, count in counters[group].items() if "_cache_" in key
        }
    return found


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(run(sys.argv[1])))
