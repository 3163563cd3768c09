"""Operators that torch handles in ways of their own."""

import torch
import torch._inductor.config
from torch import nn

from tests.capture.programs.registry import mlp_model, program


@program
def cpp_wrapper() -> None:
    compiled = torch.compile(lambda x, y: (x @ y).relu())
    with torch._inductor.config.patch(cpp_wrapper=True):
        compiled(torch.randn(8, 8), torch.randn(8, 8))


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
def options() -> None:
    compiled = torch.compile(mlp_model(), options={"shape_padding": False, "size_asserts": False})
    compiled(torch.randn(4, 8)).sum().backward()


@program
def custom_operator() -> None:
    @torch.library.custom_op("preflight::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    @scaled.register_fake
    def _(x: torch.Tensor, by: float) -> torch.Tensor:
        return torch.empty_like(x)

    torch.compile(lambda x: scaled(x, 2.0).relu() + 1)(torch.randn(4, 8))


@program
def fallbacks() -> None:
    """Operators for which Inductor has no kernel, and an output whose layout ATen decides."""

    @torch.compile
    def decomposed(x: torch.Tensor) -> torch.Tensor:
        q, r = torch.linalg.qr(x @ x.t() + 1)
        return (torch.cumsum(q, 0) @ r).sort(dim=0).values

    decomposed(torch.randn(6, 6))


@program
def complex_numbers() -> None:
    compiled = torch.compile(lambda x: torch.fft.ifft(torch.fft.fft(x) * 2).real + 1)
    compiled(torch.randn(4, 8))


@program
def random_numbers() -> None:
    compiled = torch.compile(lambda x: x + torch.rand_like(x) * torch.randn(x.shape))
    compiled(torch.randn(4, 8))


@program
def pooled() -> None:
    model = nn.Sequential(
        nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2), nn.Upsample(scale_factor=2), nn.Softmax(1)
    )
    torch.compile(model)(torch.randn(2, 3, 9, 9, requires_grad=True)).sum().backward()


@program
def transposed_convolution() -> None:
    model = nn.Sequential(nn.Conv1d(4, 8, 3, groups=2), nn.GroupNorm(2, 8), nn.ConvTranspose1d(8, 4, 3))
    torch.compile(model)(torch.randn(2, 4, 16)).sum().backward()
