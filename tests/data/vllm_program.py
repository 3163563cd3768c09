"""One start of vLLM's compiling: a small model under its ``support_torch_compile``, run twice.

Started by record_vllm.py. The compiling is vLLM's own, as it runs in an engine. Stood in for, as no GPU and none of
vLLM's compiled extensions are here:

- ``FixFunctionalizationPass``, which names operators of ``vllm._C``, does nothing;
- the platform is vLLM's own for CPUs, which turns VLLM_COMPILE into another mode: it is set again after the configuration was made;
- packages that are imported and never called here are mocks (``STUBS``, in the ``sitecustomize`` of record_vllm.py).
"""

from __future__ import annotations

import json
import os
import sys

import torch
from vllm.config import CompilationConfig, CompilationMode, VllmConfig, set_current_vllm_config
from vllm.forward_context import set_forward_context
from vllm_stand_ins import name_the_process, without_compiled_operators


def main() -> None:
    """Make the configuration, compile the model and run it."""
    name_the_process("EngineCore")
    change = json.loads(sys.argv[1])
    for name, value in change.get("inductor", {}).items():
        setattr(torch._inductor.config, name, value)
    compilation = CompilationConfig(mode=CompilationMode.VLLM_COMPILE, compile_sizes=[])
    config = VllmConfig(compilation_config=compilation, additional_config=change.get("additional", {}))
    config.compilation_config.mode = CompilationMode.VLLM_COMPILE
    config.compilation_config.backend = "inductor"
    config.parallel_config.rank = change.get("rank", 0)
    without_compiled_operators()
    from vllm_model import Model

    with set_current_vllm_config(config), torch.no_grad():
        torch.manual_seed(0)
        model = Model(vllm_config=config)
        with set_forward_context(None, config):
            for size in (8, 16):
                print(float(model(torch.ones(size, 16)).sum()))


if __name__ == "__main__":
    os.chdir(os.environ["HOME"])
    main()
