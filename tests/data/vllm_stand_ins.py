"""What the programs of record_vllm.py and record_vllm_ranks.py have of vLLM's start, and do without of its extensions."""

from __future__ import annotations

import contextlib

from vllm import logger as vllm_logger


def name_the_process(name: str) -> None:
    """Log at the level DEBUG with the name of the process, as an engine does."""
    if hasattr(vllm_logger, "configure_logging"):  # 0.33
        from vllm.config.logging import LoggingConfig

        vllm_logger.configure_logging(LoggingConfig(log_level="DEBUG"))
        vllm_logger.set_vllm_process_name(name)
    else:
        from vllm.utils.system_utils import decorate_logs

        decorate_logs(name)


def without_compiled_operators() -> None:
    """Let the pass that names operators of ``vllm._C`` do nothing."""
    for module in ("passes.utility.fix_functionalization", "fix_functionalization"):
        with contextlib.suppress(ImportError):
            found = __import__(f"vllm.compilation.{module}", fromlist=["FixFunctionalizationPass"])
            found.FixFunctionalizationPass.__call__ = lambda self, graph: None
