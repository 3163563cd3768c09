"""Code of other shapes: graph breaks, several functions, functions that torch transforms, other ways to compile."""

import torch
from torch import nn

from tests.capture.programs.registry import Layer, mlp_model, program


@program
def graph_break() -> None:
    linear = nn.Linear(8, 8)

    @torch.compile
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = linear(x).relu().t()
        torch._dynamo.graph_break()
        return (y * 2).softmax(0)

    broken(torch.randn(4, 8)).sum().backward()


@program
def printed() -> None:
    """Breaks at a call that Dynamo cannot trace, twice in one function."""

    @torch.compile
    def told(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        print(y.shape)
        z = y.cos() + 1
        print(z.sum().item())
        return z * 2

    told(torch.randn(4, 8))


@program
def layer_by_layer() -> None:
    """Equal layers, each compiled by itself: Dynamo compiles one for all."""
    model = nn.Sequential(*(Layer() for _ in range(3)))
    for layer in model:
        layer.compile()
    model(torch.randn(4, 8)).sum().backward()


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
def double_backward_region() -> None:
    @torch.compile
    def kept(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x.t() @ w).t().contiguous().tanh()

    x, w = torch.randn(8, 4, requires_grad=True), torch.randn(8, 5, requires_grad=True)
    kept(x, w).sum().backward()


@program
def mapped() -> None:
    @torch.compile
    def outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.vmap(lambda a: torch.vmap(lambda b: (a * b).sum())(y))(x)

    outer(torch.randn(4, 8), torch.randn(3, 8))


@program
def functional_gradient() -> None:
    weight = torch.randn(8, 4)

    @torch.compile
    def gradient(x: torch.Tensor) -> torch.Tensor:
        return torch.func.grad(lambda w: (x @ w).tanh().sum())(weight)

    gradient(torch.randn(3, 8))


@program
def conditional() -> None:
    @torch.compile
    def branched(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,))

    with torch.no_grad():
        branched(torch.ones(4, 8))


@program
def compiled_autograd() -> None:
    """The backward pass is compiled as a whole, when it runs."""
    model = torch.compile(mlp_model())
    with torch._dynamo.config.patch(compiled_autograd=True):
        torch.compile(lambda x: model(x).sum().backward())(torch.randn(4, 8))


@program
def views_of_inputs() -> None:
    """Outputs that are views of inputs, and an input that is changed."""

    @torch.compile
    def viewed(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y.mul_(2)
        return x.t(), (x + y).view(-1)[2:]

    viewed(torch.randn(4, 8), torch.randn(4, 8))


@program
def data_loader() -> None:
    """The program has processes that compile nothing."""
    data = torch.utils.data.TensorDataset(torch.randn(8, 8))
    compiled = torch.compile(mlp_model())
    for (x,) in torch.utils.data.DataLoader(data, batch_size=4, num_workers=2):
        compiled(x).sum().backward()
