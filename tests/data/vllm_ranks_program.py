"""One start of an engine of vLLM with several ranks: vLLM's own executor starts them, a small model is compiled in each.

Started by record_vllm_ranks.py. ``MultiprocExecutor`` spawns the ranks, names their processes and joins them by gloo, and
what they compile has an all-reduce between them. Stood in for, besides what vllm_program.py says: the worker, which
would load the weights of a real model onto a device (``Worker`` has a few numbers), and its cache of images.
"""

from __future__ import annotations

import json
import os
from typing import Any

import torch
from vllm.config import (
    CompilationConfig,
    CompilationMode,
    ParallelConfig,
    VllmConfig,
    set_current_vllm_config,
)
from vllm.forward_context import set_forward_context
from vllm.v1.worker import worker_base
from vllm_stand_ins import name_the_process, without_compiled_operators

# The cache of images asks for a model that it knows.
worker_base.worker_receiver_cache_from_config = lambda *args, **kwargs: None


class Worker(worker_base.WorkerBase):
    """One rank."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        os.environ.update(_change()["of_rank"].get(str(self.rank), {}))
        without_compiled_operators()

    def init_device(self) -> None:
        """Join the other ranks, by vLLM's own function."""
        from vllm.v1.worker.gpu_worker import init_worker_distributed_environment

        self.device = torch.device("cpu")
        init_worker_distributed_environment(
            self.vllm_config, self.rank, self.distributed_init_method, self.local_rank, "gloo"
        )

    def load_model(self, **kwargs: Any) -> None:
        """Make the model."""
        from vllm_ranks_model import Model

        with set_current_vllm_config(self.vllm_config):
            torch.manual_seed(0)
            self.model = Model(vllm_config=self.vllm_config)

    def numbers(self) -> list[float]:
        """Compile the model, or load it, and run it."""
        with (
            set_current_vllm_config(self.vllm_config),
            set_forward_context(None, self.vllm_config),
            torch.no_grad(),
        ):
            return [float(self.model(torch.ones(size, 16)).sum()) for size in (8, 16)]


def main() -> None:
    """Start an engine, and run the model of its ranks."""
    name_the_process("EngineCore")
    from vllm.v1.executor.multiproc_executor import MultiprocExecutor

    compilation = CompilationConfig(mode=CompilationMode.VLLM_COMPILE, compile_sizes=[])
    parallel = ParallelConfig(tensor_parallel_size=_change()["ranks"], distributed_executor_backend="mp")
    config = VllmConfig(compilation_config=compilation, parallel_config=parallel)
    config.parallel_config.worker_cls = "vllm_ranks_program.Worker"
    config.compilation_config.mode = CompilationMode.VLLM_COMPILE
    config.compilation_config.backend = "inductor"
    executor = MultiprocExecutor(config)
    print(executor.collective_rpc("numbers"))
    executor.shutdown()


def _change() -> dict[str, Any]:
    return json.loads(os.environ["CHANGE"])


if __name__ == "__main__":
    main()
