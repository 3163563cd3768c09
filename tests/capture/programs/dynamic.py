"""Sizes that vary, and what guards say of them."""

import torch

from tests.capture.programs.registry import SIZES, mlp_model, program


@program
def dynamic() -> None:
    compiled = torch.compile(lambda x: (x * x).sum(0) + x.shape[0], dynamic=True)
    for size in SIZES:
        compiled(torch.randn(size, 3))


@program
def dynamic_training() -> None:
    compiled = torch.compile(mlp_model(), dynamic=True)
    for size in SIZES:
        compiled(torch.randn(size, 8)).sum().backward()


@program
def automatic_dynamic() -> None:
    compiled = torch.compile(mlp_model())
    for size in SIZES:
        compiled(torch.randn(size, 8)).sum().backward()


@program
def marked_dynamic() -> None:
    x = torch.randn(SIZES[0], 8)
    torch._dynamo.mark_dynamic(x, 0)
    torch.compile(mlp_model())(x).sum().backward()


@program
def branch_on_size() -> None:
    @torch.compile(dynamic=True)
    def branched(x: torch.Tensor) -> torch.Tensor:
        return x.sin() if x.shape[0] > 10 else x.cos()

    for size in SIZES:
        branched(torch.randn(size, 3))


def guarded(x: torch.Tensor) -> torch.Tensor:
    """One graph, and two sets of guards."""
    if x.shape[0] > 10:
        pass
    return x.sin() + 1


@program
def guarded_size() -> None:
    compiled = torch.compile(guarded, dynamic=True)
    for size in SIZES:
        compiled(torch.randn(size, 3))


@program
def guard_miss() -> None:
    """The second lookup finds the key, and guards that do not hold; the third finds its own."""
    for size in (5, 50, 60):
        torch._dynamo.reset()
        torch.compile(guarded, dynamic=True)(torch.randn(size, 3))


@program
def guard_miss_in_training() -> None:
    weight = torch.randn(3, requires_grad=True)
    for size in (5, 50):
        torch._dynamo.reset()
        torch.compile(lambda x: guarded(x) * weight, dynamic=True)(torch.randn(size, 3)).sum().backward()


@program
def unbacked_size() -> None:
    compiled = torch.compile(lambda x: x[x > 0].exp() + 1)
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        compiled(torch.tensor([1.0, -1.0, 2.0, 3.0]))


@program
def float_argument() -> None:
    compiled = torch.compile(lambda x, scale: x * scale + 1)
    for scale in (0.5, 1.5, 2.5):
        compiled(torch.randn(4), scale)
