"""Compiles a forward and a backward graph, and prints how often each cache hit."""

import json

import torch
from torch._dynamo.utils import counters


@torch.compile
def program(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ x).sum()


program(torch.ones(8, 8, requires_grad=True)).backward()
aot, fx = counters["aot_autograd"], counters["inductor"]
print(json.dumps({"aot": aot["autograd_cache_hit"], "fx": fx["fxgraph_cache_hit"]}))
