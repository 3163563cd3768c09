"""One of two programs that share a cache and a folder of runs; its flags and its report are record_programs.py's."""

from __future__ import annotations

import record_programs  # before torch: it keeps the environment as it was
import torch

Tensor = torch.Tensor


def block(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x @ w)


def head(x: Tensor, w: Tensor) -> Tensor:
    return torch.softmax(x @ w, dim=1)


def shared(x: Tensor, w: Tensor) -> Tensor:
    # The same in score.py, letter for letter.
    return torch.sigmoid(x @ w) * 0.5


class Ranker(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.first(x))


def layers() -> torch.nn.Module:
    # Its compiled code is in torch's own file, as that of score.py is.
    return torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU())


if __name__ == "__main__":
    record_programs.main(
        functions={function.__name__: function for function in (block, head, shared)},
        models={"ranker": Ranker, "layers": layers},
    )
