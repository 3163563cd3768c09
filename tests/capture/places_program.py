"""Compiles functions twice each, with one thing changed; prints what torch counted. `fresh` does so in a fresh_cache()."""

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_cache
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
torch.set_num_threads(1)
layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))
hits: dict[str, list[int]] = {}


def call(name: str, function: Callable[..., Any], *arguments: Any, dynamic: bool | None = None) -> None:
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(function, dynamic=dynamic)
    for last in arguments[1:] or (None,):
        compiled(arguments[0], *(() if last is None else (last,)))
    hits.setdefault(name, []).append(counters["aot_autograd"]["autograd_cache_hit"])


def layered(x: torch.Tensor, is_checkpointed: bool = False) -> torch.Tensor:
    return checkpoint(layers, x, use_reentrant=False) if is_checkpointed else layers(x)


def on_device(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def passed(x: torch.Tensor) -> torch.Tensor:
    return x.cos() + 1


def scaled(x: torch.Tensor, number: int) -> torch.Tensor:
    return (x * number).tanh()


x = torch.ones(4, 8)
if sys.argv[1:] == ["fresh"]:
    with fresh_cache():
        call("on_device", on_device, x)
else:
    for is_checkpointed in (False, True):
        call("layered", layered, x.requires_grad_(), is_checkpointed)
    x = x.detach()
    for device in ("cpu", "meta"):
        call("on_device", on_device, x.to(device))
    for custom in (None, lambda graph: None):
        torch._inductor.config.pre_grad_custom_pass = custom
        call("passed", passed, x)
    torch._inductor.config.pre_grad_custom_pass = None
    call("scaled", scaled, x, 2, 3)
    for number in (3, 6):
        call("scaled", scaled, x, number, dynamic=True)
    with torch._dynamo.config.patch(specialize_int=True):
        call("scaled", scaled, x, 5)
print(json.dumps(hits))
