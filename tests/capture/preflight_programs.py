"""Small programs, each of one kind of compile; run as ``python preflight_programs.py NAME [COUNTERS]``.

`PREFLIGHT_PROGRAM_SIZES` gives those of dynamic programs other sizes, `PREFLIGHT_PROGRAM_CONFIG` names one setting of
Inductor that is switched off. What torch counted goes as JSON into the file COUNTERS.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

Program = Callable[[], None]
PROGRAMS: dict[str, Program] = {}
SIZES = [int(size) for size in os.environ.get("PREFLIGHT_PROGRAM_SIZES", "5 6 7").split()]


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def mlp_model() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def conv_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=2, padding=1),
        nn.Flatten(),
        nn.Linear(8 * 16, 4),
    )


@program
def mlp() -> None:
    compiled = torch.compile(mlp_model())
    with torch.no_grad():
        compiled(torch.randn(4, 8))


@program
def training() -> None:
    compiled = torch.compile(mlp_model())
    compiled(torch.randn(4, 8)).sum().backward()
    with torch.no_grad():
        compiled(torch.randn(4, 8))


@program
def convolution() -> None:
    compiled = torch.compile(conv_model())
    compiled(torch.randn(2, 3, 8, 8)).sum().backward()


@program
def channels_last() -> None:
    model = conv_model().to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    torch.compile(model)(x).sum().backward()


@program
def freezing() -> None:
    torch._inductor.config.freezing = True
    compiled = torch.compile(mlp_model().eval())
    with torch.no_grad():
        compiled(torch.randn(4, 8))


@program
def dropout() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 4))
    torch.compile(model)(torch.randn(4, 8)).sum().backward()


@program
def graph_break() -> None:
    linear = nn.Linear(8, 8)

    @torch.compile
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = linear(x).relu().t()
        torch._dynamo.graph_break()
        return (y * 2).softmax(0)

    broken(torch.randn(4, 8)).sum().backward()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.sin() * 2

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return gradient * x.cos() * 2


@program
def custom_autograd_function() -> None:
    @torch.compile
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return Doubled.apply(x) + 1

    doubled(torch.randn(4, 8, requires_grad=True)).sum().backward()


@program
def dynamic() -> None:
    compiled = torch.compile(lambda x: (x * x).sum(0) + x.shape[0], dynamic=True)
    for size in SIZES:
        compiled(torch.randn(size, 3))


@program
def automatic_dynamic() -> None:
    compiled = torch.compile(mlp_model())
    for size in SIZES:
        compiled(torch.randn(size, 8)).sum().backward()


@program
def branch_on_size() -> None:
    @torch.compile(dynamic=True)
    def branched(x: torch.Tensor) -> torch.Tensor:
        return x.sin() if x.shape[0] > 10 else x.cos()

    for size in SIZES:
        branched(torch.randn(size, 3))


@program
def guarded_size() -> None:
    """One graph, and two sets of guards."""

    @torch.compile(dynamic=True)
    def guarded(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 10:
            pass
        return x.sin() + 1

    for size in SIZES:
        guarded(torch.randn(size, 3))


@program
def unbacked_size() -> None:
    torch._dynamo.config.capture_scalar_outputs = True
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    compiled = torch.compile(lambda x: x[x > 0].exp() + 1)
    compiled(torch.tensor([1.0, -1.0, 2.0, 3.0]))


@program
def cpp_wrapper() -> None:
    torch._inductor.config.cpp_wrapper = True
    compiled = torch.compile(lambda x, y: (x @ y).relu())
    compiled(torch.randn(8, 8), torch.randn(8, 8))


@program
def autocast() -> None:
    compiled = torch.compile(mlp_model())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = compiled(torch.randn(4, 8)).float().sum()
    loss.backward()


@program
def checkpointed() -> None:
    first, second = nn.Linear(8, 8), nn.Linear(8, 8)

    @torch.compile
    def forward(x: torch.Tensor) -> torch.Tensor:
        hidden = checkpoint(lambda t: first(t).sin().cos(), x, use_reentrant=False)
        return second(hidden)

    forward(torch.randn(4, 8, requires_grad=True)).sum().backward()


@program
def optimizer() -> None:
    model = mlp_model()
    adam = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = torch.compile(adam.step)
    for _ in range(2):
        adam.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        step()


@program
def flex_attention() -> None:
    from torch.nn.attention.flex_attention import flex_attention as attention

    compiled = torch.compile(attention)
    q, k, v = (torch.randn(1, 2, 32, 16) for _ in range(3))
    with torch.no_grad():
        compiled(q, k, v, score_mod=lambda score, b, h, i, j: score + (i - j))


@program
def mutated_buffer() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(1)
            return x + self.count

    compiled = torch.compile(Counter())
    with torch.no_grad():
        compiled(torch.randn(3))
        compiled(torch.randn(3))


@program
def max_autotune() -> None:
    compiled = torch.compile(mlp_model(), mode="max-autotune")
    with torch.no_grad():
        compiled(torch.randn(64, 8))


@program
def reduce_overhead() -> None:
    compiled = torch.compile(mlp_model(), mode="reduce-overhead")
    compiled(torch.randn(4, 8)).sum().backward()


@program
def gru_cell() -> None:
    compiled = torch.compile(nn.GRUCell(8, 8))
    compiled(torch.randn(4, 8), torch.randn(4, 8)).sum().backward()


@program
def attention() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    torch.compile(layer)(torch.randn(2, 8, 32)).sum().backward()


class Tied(nn.Module):
    """A language model in small: its first and its last layer share their weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(32, 50, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.ones(32))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.block(self.embedding(tokens) * self.scale)
        return self.head(hidden)  # type: ignore[no-any-return]


@program
def converted() -> None:
    model = Tied().to(torch.bfloat16)
    adam = torch.optim.AdamW(model.parameters())
    compiled = torch.compile(model)
    for _ in range(2):
        logits = compiled(torch.randint(50, (2, 8)))
        torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), torch.randint(50, (16,))).backward()
        adam.step()
        adam.zero_grad()


@program
def twice() -> None:
    """The same graph under two keys of Dynamo: the second finds what the first stored."""
    for _ in range(2):
        torch._dynamo.reset()
        torch.compile(mlp_model())(torch.randn(4, 8)).sum().backward()


@program
def pass_without_uuid() -> None:
    torch._inductor.config.post_grad_custom_post_pass = lambda graph: None
    for _ in range(2):
        torch._dynamo.reset()
        torch.compile(mlp_model())(torch.randn(4, 8)).sum().backward()


@program
def caches_off() -> None:
    torch._inductor.config.force_disable_caches = True
    torch.compile(mlp_model())(torch.randn(4, 8))


@program
def fx_cache_alone() -> None:
    torch._functorch.config.enable_autograd_cache = False
    for _ in range(2):
        torch._dynamo.reset()
        torch.compile(mlp_model())(torch.randn(4, 8)).sum().backward()


@program
def bundled() -> None:
    torch._functorch.config.bundled_autograd_cache = True
    for _ in range(2):
        torch._dynamo.reset()
        torch.compile(mlp_model())(torch.randn(4, 8)).sum().backward()


@program
def double_backward_region() -> None:
    @torch.compile
    def kept(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x.t() @ w).t().contiguous().tanh()

    x, w = torch.randn(8, 4, requires_grad=True), torch.randn(8, 5, requires_grad=True)
    kept(x, w).sum().backward()


def counted() -> dict[str, int]:
    """What torch counted of its caches."""
    counters = torch._dynamo.utils.counters
    found = {
        f"fxgraph {way}": counters["inductor"][f"fxgraph_cache_{way}"] for way in ("hit", "miss", "bypass")
    }
    for way in ("hit", "miss", "bypass"):
        found[f"aotautograd {way}"] = counters["aot_autograd"][f"autograd_cache_{way}"]
    return found


if __name__ == "__main__":
    torch.manual_seed(0)
    if switched_off := os.environ.get("PREFLIGHT_PROGRAM_CONFIG"):
        setattr(torch._inductor.config, switched_off, False)
    PROGRAMS[sys.argv[1]]()
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as file:
            json.dump(counted(), file)
