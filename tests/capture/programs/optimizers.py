"""Optimizers whose step is compiled."""

from collections.abc import Callable, Iterable

import torch

from tests.capture.programs.registry import mlp_model, program


def two_steps(made: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]) -> None:
    model = mlp_model()
    optimizer = made(model.parameters())
    step = torch.compile(optimizer.step)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        step()


@program
def optimizer() -> None:
    two_steps(lambda parameters: torch.optim.AdamW(parameters, lr=1e-3))


@program
def momentum() -> None:
    two_steps(lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, foreach=True))


@program
def whole_step() -> None:
    """Forward, backward and the optimizer's step in one function, each a graph of its own."""
    model = mlp_model()
    adam = torch.optim.Adam(model.parameters())

    @torch.compile
    def step(x: torch.Tensor) -> None:
        model(x).square().mean().backward()
        adam.step()
        adam.zero_grad()

    step(torch.randn(4, 8))
