"""Builds two graphs; what torch keys do not show is said by variables: which pass runs, and which choice wins.

``PASS`` is what a custom pass of one uuid puts in place of relu. Of the choices that max-autotune measures, the one whose
class has ``FASTEST`` in its name is said to be the fastest.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch._inductor import config, select_algorithm
from torch._inductor.custom_graph_pass import CustomGraphPass


class Replaces(CustomGraphPass):
    """Replaces relu, and says under any ``PASS`` that it is the same pass."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        for node in graph.nodes:
            if node.target is torch.ops.aten.relu.default:
                node.target = getattr(torch.ops.aten, os.environ["PASS"]).default

    def uuid(self) -> str:
        return "the same"


measured = select_algorithm.AlgorithmSelectorCache.benchmark_choices.__func__


def benchmark_choices(cls: type, choices: Any, *args: Any, **options: Any) -> dict[Any, float]:
    times = measured(cls, choices, *args, **options)
    return {
        choice: 0.25 if os.environ["FASTEST"] in type(choice).__name__ else 1.0 + time
        for choice, time in times.items()
    }


select_algorithm.AlgorithmSelectorCache.benchmark_choices = classmethod(benchmark_choices)
torch.manual_seed(0)
torch.compile(lambda x: (x * 3).sin() + 1, dynamic=False)(torch.ones(64, 32))
config.post_grad_custom_post_pass = Replaces()
torch.compile(lambda x: (x * 2).relu() + 1, dynamic=False)(torch.ones(64, 32))
config.post_grad_custom_post_pass = None
# As an option of torch.compile, freezing comes too late for the weights to be constants.
config.freezing = True
layer = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU()).eval()
with torch.no_grad():
    torch.compile(layer, dynamic=False, options={"max_autotune": True})(torch.ones(32, 64))
