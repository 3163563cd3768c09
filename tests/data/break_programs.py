"""Functions whose graphs break: at a call, in a function that is inlined, in a loop, in a block whose function is left to Python.

``python break_programs.py FACTS`` runs them, and writes the counters of torch to a JSON file.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
from torch._dynamo.utils import counters


def printed(x: torch.Tensor) -> torch.Tensor:
    print("a break")
    return x + 1


def calls(x: torch.Tensor) -> torch.Tensor:
    return printed(x.sin()).cos()


def loops(x: torch.Tensor) -> torch.Tensor:
    for number in range(3):
        x = x + 1
        print("in a loop", number)
    return x


def opens(x: torch.Tensor) -> torch.Tensor:
    with open(os.devnull, "w") as file:
        x = x + 1
        print("in a block", file=file)
    return x * 2


def raises(x: torch.Tensor) -> torch.Tensor:
    try:
        x = x + 1
        raise ValueError("caught")
    except* ValueError:
        x = x * 2
    return x


def main() -> None:
    for function in (calls, loops, opens, raises):
        torch.compile(function, backend="eager")(torch.ones(3))
    Path(sys.argv[1]).write_text(json.dumps({"counters": counters}, indent=1))


main()
