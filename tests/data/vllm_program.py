"""One start of vLLM's compiling: a small model under its ``support_torch_compile``, run twice.

Started by record_vllm.py. The compiling is vLLM's own, as it runs in an engine. Stood in for, as no GPU and none of
vLLM's compiled extensions are here:

- ``FixFunctionalizationPass``, which names operators of ``vllm._C``, does nothing;
- the platform is vLLM's own for CPUs, which turns VLLM_COMPILE into another mode: it is set again after the configuration was made;
- packages that are imported and never called here are mocks (``STUBS``, in the ``sitecustomize`` of record_vllm.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

import torch
from vllm import logger as vllm_logger

if hasattr(vllm_logger, "configure_logging"):  # 0.33
    from vllm.config.logging import LoggingConfig

    vllm_logger.configure_logging(LoggingConfig(log_level="DEBUG"))
    vllm_logger.set_vllm_process_name("EngineCore")
else:
    from vllm.utils.system_utils import decorate_logs

    decorate_logs("EngineCore")

from vllm.config import CompilationConfig, CompilationMode, VllmConfig, set_current_vllm_config
from vllm.forward_context import set_forward_context


def main() -> None:
    """Make the configuration, compile the model and run it."""
    change = json.loads(sys.argv[1])
    for name, value in change.get("inductor", {}).items():
        setattr(torch._inductor.config, name, value)
    compilation = CompilationConfig(mode=CompilationMode.VLLM_COMPILE, compile_sizes=[])
    config = VllmConfig(compilation_config=compilation, additional_config=change.get("additional", {}))
    config.compilation_config.mode = CompilationMode.VLLM_COMPILE
    config.compilation_config.backend = "inductor"
    config.parallel_config.rank = change.get("rank", 0)
    _without_compiled_operators()
    from vllm_model import Model

    with set_current_vllm_config(config), torch.no_grad():
        torch.manual_seed(0)
        model = Model(vllm_config=config)
        with set_forward_context(None, config):
            for size in (8, 16):
                print(float(model(torch.ones(size, 16)).sum()))


def _without_compiled_operators() -> None:
    for module in ("passes.utility.fix_functionalization", "fix_functionalization"):
        with contextlib.suppress(ImportError):
            found = __import__(f"vllm.compilation.{module}", fromlist=["FixFunctionalizationPass"])
            found.FixFunctionalizationPass.__call__ = lambda self, graph: None


if __name__ == "__main__":
    os.chdir(os.environ["HOME"])
    main()
