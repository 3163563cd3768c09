"""Functions that are called with two sizes and with two numbers; prints how many graphs torch made for each."""

import json
import sys
from collections.abc import Callable

import torch
from torch import Tensor
from torch._dynamo.utils import counters

ROWS, NUMBERS = (8, 12, 16), (0.25, 0.5, 0.75)


def sized(x: Tensor) -> Tensor:
    return x.sin() + 1


def scaled(x: Tensor, scale: float) -> Tensor:
    return x.cos() * scale


def tensors(is_marked: bool) -> list[tuple[object, ...]]:
    found = [torch.ones(rows, 4) for rows in ROWS]
    for x in found if is_marked else ():
        torch._dynamo.mark_dynamic(x, 0)
    return [(x,) for x in found]


def graphs(function: Callable[..., Tensor], calls: list[tuple[object, ...]], **options: bool) -> int:
    torch._dynamo.reset()
    before = counters["stats"]["unique_graphs"]
    compiled = torch.compile(function, **options)  # type: ignore[call-overload]
    for arguments in calls:
        compiled(*arguments)
    return counters["stats"]["unique_graphs"] - before


way = sys.argv[1]
x = torch.ones(4)
options = {"dynamic": True} if way == "dynamic" else {}
numbers = [torch.tensor(number) if way == "passed" else number for number in NUMBERS]
of_sizes = graphs(sized, tensors(way == "passed"), **options)
of_numbers = graphs(scaled, [(x, number) for number in numbers], **options)
print(json.dumps({"sized": of_sizes, "scaled": of_numbers}))
