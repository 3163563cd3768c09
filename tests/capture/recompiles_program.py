"""Functions that are compiled again in this process, for one reason each; prints what torch counted, as JSON."""

import json

import torch
from torch._dynamo.utils import counters

FACTOR = 2


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.dropout = torch.nn.Dropout(0.5)
        self.factor = 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.linear(x)) * self.factor


@torch.compile
def by_size(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x * 2)


@torch.compile
def by_dtype(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x)


@torch.compile
def by_requires_grad(x: torch.Tensor) -> torch.Tensor:
    return torch.cos(x)


@torch.compile
def by_key(x: torch.Tensor, given: dict[str, float]) -> torch.Tensor:
    return x + given["b"] if "b" in given else x * given["a"]


@torch.compile
def by_global(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(x) * FACTOR


@torch.compile
def by_length(several: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(several).sum()


@torch.compile
def by_number(x: torch.Tensor, number: int) -> torch.Tensor:
    return torch.tanh(x) - number


def by_cell(x: torch.Tensor) -> None:
    factor = 3

    @torch.compile
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return torch.abs(x) / factor

    scaled(x)
    factor = 4
    scaled(x)


x = torch.ones(4, 3)
with torch.no_grad():
    by_size(x), by_size(torch.ones(5, 3))
    by_dtype(x), by_dtype(x.double())
    by_key(x, {"a": 1.0}), by_key(x, {"b": 1.0})
    by_global(x)
    FACTOR = 5
    by_global(x)
    by_length([x, x]), by_length([x, x, x])
    by_number(x, 7), by_number(x, 8)
    by_cell(x)
by_requires_grad(x), by_requires_grad(torch.ones(4, 3, requires_grad=True))
for change in ("attribute", "eval", "grad_mode"):
    layer = Layer()
    compiled = torch.compile(layer.train(change == "eval"))
    with torch.set_grad_enabled(change == "grad_mode"):
        compiled(x)
    if change == "attribute":
        layer.factor = 3
    layer.eval()
    with torch.no_grad():
        compiled(x)
# The size is compiled again until the limit; then torch runs the function without compiling it.
torch._dynamo.config.recompile_limit = 2
torch._dynamo.config.automatic_dynamic_shapes = False


@torch.compile
def by_too_many_sizes(x: torch.Tensor) -> torch.Tensor:
    return torch.log(x)


with torch.no_grad():
    for size in (2, 3, 4, 5):
        by_too_many_sizes(torch.ones(size, 3))
print(json.dumps({name: dict(counters[name]) for name in ("inductor", "aot_autograd")}))
