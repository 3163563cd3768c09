"""The model of vllm_program.py. record_vllm.py copies it, and edits the copy where a step says so."""

import torch
from torch import nn
from vllm.compilation.decorators import support_torch_compile


@support_torch_compile
class Model(nn.Module):
    """One layer."""

    def __init__(self, *, vllm_config: object, prefix: str = "") -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply it."""
        return torch.tanh(self.layer(x)) + 1.0
