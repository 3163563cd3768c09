"""Programs whose sizes and numbers become symbols, with a guard on each: bounds, remainders, expressions, equal sizes, numbers from data.

``python shape_programs.py FACTS`` runs them, and writes what torch itself knows of each compile to a JSON file: the ranges of its symbols, and
the values for which its guards on one symbol hold. Run it with ``TORCH_TRACE=FOLDER``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sympy
import torch
import torch._dynamo
from torch import Tensor, ones
from torch._guards import CompileContext
from torch.fx.experimental.symbolic_shapes import ShapeEnv

TRIED = range(5000)
environments: dict[str, ShapeEnv] = {}


def bounded(x: Tensor) -> Tensor:
    if x.shape[0] > 10 and x.shape[0] < 4097:
        return x * 2
    return x * 3


def two_inputs(x: Tensor, y: Tensor) -> Tensor:
    if x.shape[0] * 2 > y.shape[0] + 3:
        return x.sum() + y.sum()
    return x.sum()


def equal_inputs(x: Tensor, y: Tensor) -> Tensor:
    z = x + y
    if z.shape[0] > 10:
        return z * 2
    return z


def shared(x: Tensor, y: Tensor) -> Tensor:
    if x.shape[0] > 4:
        return x.sum() + y.sum()
    return x.sum()


def remainder(x: Tensor) -> Tensor:
    if x.shape[0] % 8 == 0:
        return x * 2
    return x


def scaled(x: Tensor) -> Tensor:
    if 2 * x.shape[0] + 1 > 10:
        return x * 2
    return x


def expression(x: Tensor) -> Tensor:
    z = torch.cat([x, x])
    if z.shape[0] <= 40:
        return z * 2
    return z


def unequal(x: Tensor) -> Tensor:
    if x.shape[0] != 7:
        return x * 2
    return x


def fixed(x: Tensor) -> Tensor:
    if x.shape[0] == 12:
        return x * 2
    return x


def from_data(x: Tensor) -> Tensor:
    n = x.sum().item()
    torch._check(n >= 2)
    torch._check(n <= 50)
    return torch.zeros(n)


def numbers(x: Tensor, n: int, f: float) -> Tensor:
    if n > 3:
        return x * n * f
    return x


def restarted(x: Tensor) -> Tensor:
    y = x + 1
    if x.shape[0] > 3:
        y = y * 2
    torch._dynamo.graph_break()
    if x.shape[0] > 6:
        y = y * 3
    return y


def is_large(x: Tensor) -> bool:
    return x.shape[0] > 100


def called(x: Tensor) -> Tensor:
    if is_large(x):
        return x
    return x + 1


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        if y.shape[0] >= 5:
            y = y + 1
        return y


def trained(x: Tensor, w: Tensor) -> Tensor:
    y = x @ w
    if y.shape[0] < 64:
        y = y * 2
    return y.sum()


def dynamic(x: Tensor, **limits: int) -> Tensor:
    torch._dynamo.mark_dynamic(x, 0, **limits)
    return x


def compile_(function: Any, **options: Any) -> Callable[..., Any]:
    return torch.compile(function, backend="aot_eager", **options)


def run() -> None:
    torch._dynamo.config.capture_scalar_outputs = True
    compile_(bounded)(dynamic(ones(20)))
    compile_(two_inputs)(dynamic(ones(20)), dynamic(ones(21)))
    compile_(equal_inputs)(dynamic(ones(20)), dynamic(ones(20)))
    compile_(shared, dynamic=True)(ones(20), ones(20))
    compile_(remainder)(dynamic(ones(16)))
    compile_(scaled)(dynamic(ones(16)))
    compile_(expression)(dynamic(ones(16)))
    compile_(unequal)(dynamic(ones(9)))
    compile_(fixed, dynamic=True)(ones(12))
    compile_(from_data)(torch.tensor([3, 4]))
    f = compile_(numbers)
    f(ones(3), 5, 1.5), f(ones(3), 6, 2.5)
    compile_(restarted)(dynamic(ones(9)))
    compile_(called)(dynamic(ones(9)))
    compile_(Model())(dynamic(ones(6, 4)))
    compile_(trained)(dynamic(ones(8, 4), min=4, max=32), ones(4, 4, requires_grad=True)).backward()


def noted(created: Callable[..., None]) -> Callable[..., None]:
    """Keep the environment of the last attempt of each compile."""

    def create(self: ShapeEnv, *given: Any, **named: Any) -> None:
        created(self, *given, **named)
        environments.setdefault("all", self)
        environments[str(CompileContext.current_compile_id())] = self

    return create


def held(environment: ShapeEnv, symbol: sympy.Symbol) -> list[int]:
    """The least and the most of the tried values for which all guards on this symbol alone hold, and that they are all between."""
    wanted = environment.replace(symbol)
    guards = [environment.replace(guard.expr) for guard in environment.guards]
    for deferred in environment.deferred_runtime_asserts.values():
        guards += [environment.replace(one.expr) for one in deferred]
    own = [guard for guard in guards if guard.free_symbols == {wanted}]
    return [value for value in TRIED if all(guard.subs(wanted, value) == sympy.true for guard in own)]


def told(environment: ShapeEnv) -> dict[str, Any]:
    found = {}
    for symbol, bounds in environment.var_to_range.items():
        values = held(environment, symbol) if not str(symbol).startswith("z") else []
        found[str(symbol)] = {
            "range": [str(bounds.lower), str(bounds.upper)],
            "held": [values[0], values[-1], len(values)] if values else [],
            "sources": [
                str(getattr(one, "name", "") if isinstance(getattr(one, "name", ""), str) else one.name())
                for one in environment.var_to_sources.get(symbol, ())
            ],
        }
    return found


if __name__ == "__main__":
    ShapeEnv.__init__ = noted(ShapeEnv.__init__)  # type: ignore[method-assign]
    run()
    environments.pop("all")
    Path(sys.argv[1]).write_text(json.dumps({name: told(one) for name, one in environments.items()}))
