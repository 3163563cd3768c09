"""Compiles a model and the same with a wider layer, one in training and in eval mode, a function of a tensor and of a subclass."""

import torch
from torch.testing._internal.two_tensor import TwoTensor


class Model(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, width)
        self.second = torch.nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


class Normed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.norm(torch.tanh(x)))


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


torch.set_num_threads(1)
x = torch.ones(4, 8)
with torch.no_grad():
    for width in (8, 16):
        torch.compile(Model(width))(x)
        torch._dynamo.reset()
    for is_training in (True, False):
        torch.compile(Normed().train(is_training))(x)
        torch._dynamo.reset()
    for argument in (x, TwoTensor(x, x.clone())):
        torch.compile(double)(argument)
        torch._dynamo.reset()
