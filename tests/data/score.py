"""The other of two programs that share a cache and a folder of runs: names and inputs alike, other code."""

from __future__ import annotations

import record_programs  # before torch: it keeps the environment as it was
import torch

Tensor = torch.Tensor


def block(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x @ w)


def tail(x: Tensor, w: Tensor) -> Tensor:
    return torch.log1p(x.abs()) - w.sum()


def shared(x: Tensor, w: Tensor) -> Tensor:
    # The same in serve.py, letter for letter.
    return torch.sigmoid(x @ w) * 0.5


class Ranker(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.first(x))


def layers() -> torch.nn.Module:
    # Its compiled code is in torch's own file, as that of serve.py is.
    return torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh())


if __name__ == "__main__":
    record_programs.main(
        functions={function.__name__: function for function in (block, tail, shared)},
        models={"ranker": Ranker, "layers": layers},
    )
