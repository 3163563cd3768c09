"""Ten functions that are compiled again for the reasons that torch's own tests of recompiles are about (test/dynamo/test_recompiles.py).

Prints what torch counted, as JSON.
"""

import json
from collections.abc import Callable

import torch
from torch._dynamo.utils import counters

Tensor = torch.Tensor
torch._inductor.config.cpp_cache_precompile_headers = False


@torch.compile
def by_sizes_until_one_is_symbolic(x: Tensor, y: Tensor) -> Tensor:
    return x - y


@torch.compile
def by_a_truth_and_a_size(is_twice: bool, x: Tensor) -> Tensor:
    return x * 2 if is_twice else x / 3


@torch.compile
def by_a_number_for_a_tensor(x: Tensor, y: Tensor | float) -> Tensor:
    return torch.maximum(x, torch.as_tensor(y)) if isinstance(y, float) else torch.minimum(x, y)


@torch.compile
def by_an_alias(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    x.mul_(y)
    return z + 3


OTHER = torch.full((6,), 2.0)


@torch.compile
def by_an_alias_of_a_global(x: Tensor) -> Tensor:
    x.sub_(OTHER)
    return OTHER + 4


@torch.compile
def by_the_size_of_a_parameter(x: Tensor) -> Tensor:
    return torch.tanh(x).sum()


class Dropped(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(6, 2)
        self.dropout = torch.nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.layer(x))


def adding(number: int) -> Callable[[Tensor], Tensor]:
    def added(x: Tensor) -> Tensor:
        return x + number

    return added


@torch.compile
def by_a_closed_number(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    return function(torch.cos(x))


@torch.compile(dynamic=False)
def by_a_number_beyond_the_limit(x: Tensor, number: int) -> Tensor:
    return torch.exp(x) + number


@torch.compile
def by_a_size_that_becomes_one(x: Tensor) -> Tensor:
    return x * x


with torch.no_grad():
    for size in (2, 3, 4):
        by_sizes_until_one_is_symbolic(torch.ones(size), torch.ones(size))
    for is_twice, size in ((True, 2), (False, 2), (True, 3)):
        by_a_truth_and_a_size(is_twice, torch.ones(size))
    by_a_number_for_a_tensor(torch.ones(6), torch.ones(6))
    by_a_number_for_a_tensor(torch.ones(6), 0.5)
    x, y, z = torch.ones(6), torch.ones(6), torch.ones(6)
    by_an_alias(x, y, z), by_an_alias(x, y, x)
    by_an_alias_of_a_global(torch.ones(6)), by_an_alias_of_a_global(OTHER)
    for size in (5, 6):
        by_the_size_of_a_parameter(torch.nn.Parameter(torch.ones(size)))
    model = Dropped()
    compiled = torch.compile(model)
    for is_training in (False, True):
        model.train(is_training)
        compiled(torch.ones(6))
    by_a_closed_number(torch.ones(6), adding(2)), by_a_closed_number(torch.ones(6), adding(3))
    with torch._dynamo.config.patch(recompile_limit=2):
        for number in range(4):
            by_a_number_beyond_the_limit(torch.ones(6), number)
    for size in (3, 1):
        by_a_size_that_becomes_one(torch.ones(size))
print(json.dumps({name: dict(counters[name]) for name in ("inductor", "aot_autograd")}))
