"""The model of vllm_ranks_program.py: its ranks add what each of them has."""

import torch
from torch import nn
from vllm.compilation.decorators import support_torch_compile
from vllm.distributed import tensor_model_parallel_all_reduce


@support_torch_compile
class Model(nn.Module):
    """One layer, without a module of torch: with one rank no file of torch is traced, and another torch leaves the code's hash."""

    def __init__(self, *, vllm_config: object, prefix: str = "") -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply it."""
        return torch.tanh(tensor_model_parallel_all_reduce(x @ self.weight)) + 1.0
