"""Programs whose compiles are recorded: each reason to compile again, graph breaks, a backward graph, a limit that is reached.

``python compile_programs.py FACTS`` runs them, and writes what torch and Python themselves say of them to a JSON file: torch's counters, and
for each function its name, file and first line. Run it with ``TORCH_TRACE=FOLDER`` and ``TORCH_LOGS=recompiles,dynamic``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.utils import counters

compiled: list[Any] = []


def compile_(function: Any) -> Any:
    compiled.append(function.forward if isinstance(function, torch.nn.Module) else function)
    return torch.compile(function, backend="aot_eager")


def sizes(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def whole_number(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n


def grad_mode(x: torch.Tensor) -> torch.Tensor:
    return x.cos()


def dtypes(x: torch.Tensor) -> torch.Tensor:
    return x.exp()


def breaks(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    print("a break")
    x = x * 2
    torch._dynamo.graph_break()
    return x.sin()


def limited(x: torch.Tensor, text: str) -> torch.Tensor:
    return x + len(text)


def trained(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).sum()


def guarded(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 10:
        return x * 2
    return x * 3


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.flag = 1
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x * self.flag

    def method(self, x: torch.Tensor) -> torch.Tensor:
        return x - self.flag


def elsewhere() -> Callable[[torch.Tensor], torch.Tensor]:
    """A function in a file whose name has spaces."""
    file = Path(tempfile.mkdtemp(prefix="a folder ")) / "with spaces.py"
    file.write_text("\n\ndef of_another_file(x):\n    return x.tan()\n")
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    return names["of_another_file"]  # type: ignore[no-any-return]


def run() -> None:
    ones = torch.ones
    f = compile_(sizes)
    f(ones(3)), f(ones(5)), f(ones(7))
    f = compile_(whole_number)
    f(ones(3), 2), f(ones(3), 3), f(ones(3), 4)
    model = Model()
    f = compile_(model)
    f(ones(2, 4))
    model.flag = 2
    f(ones(2, 4))
    model.layers.append(torch.nn.Linear(4, 4))
    f(ones(2, 4))
    f = compile_(grad_mode)
    f(ones(3, requires_grad=True))
    with torch.no_grad():
        f(ones(3, requires_grad=True))
    f = compile_(dtypes)
    f(ones(3)), f(ones(3, dtype=torch.float64))
    compile_(breaks)(ones(3))
    f = compile_(limited)
    for n in range(10):
        f(ones(3), "a" * n)
    w = ones(4, 4, requires_grad=True)
    compile_(trained)(ones(2, 4), w).backward()
    f = compile_(guarded)
    f(ones(4)), f(ones(12)), f(ones(13))
    compile_(model.method)(ones(3))
    compile_(elsewhere())(ones(3))
    compile_(lambda x: x.tan())(ones(3))
    # Compile ids begin again.
    torch._dynamo.reset()
    compile_(lambda x: x.atan())(ones(3))


if __name__ == "__main__":
    run()
    places = [(f.__name__, f.__code__.co_filename, f.__code__.co_firstlineno) for f in compiled]
    facts = {"counters": {name: dict(of) for name, of in counters.items()}, "places": places}
    Path(sys.argv[1]).write_text(json.dumps(facts, default=str))
