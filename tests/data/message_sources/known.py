"""Which files of vLLM and torch say something of their caches, and what it means: a kind, and the names of the values in the message.

The readers know the kinds (`cachescope/readers/logs/vllm_log.py`). ``-`` is a value that nobody asks for; ``told`` is an error that is quoted, and
nothing at all a message that says nothing of a lookup.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Scope:
    """What is read of a release."""

    files: tuple[str, ...]
    levels: tuple[str, ...]
    raised: str  # how the error begins that is counted as a message


_COMPILATION: Final = (
    "backends", "caching", "compiler_interface", "cuda_piecewise_backend", "decorators", "monitor", "piecewise_backend", "wrapper",
)  # fmt: skip
SCOPES: Final = {
    "vllm": Scope(
        tuple(f"vllm/compilation/{name}.py" for name in _COMPILATION),
        ("debug", "info", "warning", "error", "raised"),
        "vLLM failed to compile",
    ),
}

_VLLM: Final = {
    "Starting torch.compile": "begins",
    "Using cache directory: %s for vLLM's torch.compile": "directory path",
    "vLLM's torch.compile cache is disabled.": "disabled",
    "torch.compile cache factors: env=%s cfg=%s comp=%s code=%s dir=%s": "factors env cfg comp code path",
    "Dynamo bytecode transform time: %.2f s": "dynamo seconds",
    "Compiling a graph for compile range %s takes %.2f s": "compiled - seconds",
    "Compiling a graph for dynamic shape takes %.2f s": "compiled seconds",
    "Compiling a graph for general shape takes %.2f s": "compiled seconds",
    "Compiling a graph for shape %s takes %.2f s": "compiled - seconds",
    "Cache the graph for dynamic shape for later use": "stored",
    "Cache the graph of compile range %s for later use": "stored -",
    "Cache the graph of shape %s for later use": "stored -",
    "Store the %s-th graph for compile range%s from %s via handle %s": "stored - - - -",
    "Store the %s-th graph for dynamic shape from %s via handle %s": "stored - - -",
    "Store the %s-th graph for shape %s from %s via handle %s": "stored - - - -",
    "store the %s-th graph for shape %s from %s via handle %s": "stored - - - -",
    "store the %s-th graph for shape %s via hash %s": "stored - - -",
    "store the %s-th graph for shape %s via hash %s from file %s": "stored - - - -",
    "Directly load the compiled graph for shape %s from the cache": "graphs_loaded -",
    "Directly load the compiled graph(s) for compile range %s from the cache, took %.3f s": "graphs_loaded - -",
    "Directly load the compiled graph(s) for dynamic shape from the cache, took %.3f s": "graphs_loaded -",
    "Directly load the compiled graph(s) for shape %s from the cache, took %.3f s": "graphs_loaded - -",
    "Directly lookup the graph for shape %s from the cache": "graphs_loaded -",
    "Directly load the %s-th graph for compile range %sfrom %s via handle %s": "graphs_loaded - - - -",
    "Directly load the %s-th graph for dynamic shape from %s via handle %s": "graphs_loaded - - -",
    "Directly load the %s-th graph for shape %s from %s via handle %s": "graphs_loaded - - - -",
    "directly lookup the %s-th graph for shape %s via hash %s": "graphs_loaded - - -",
    "Directly load AOT compilation from path %s": "aot_loaded package",
    "AOT compiled function was loaded from cache, skipping save": "aot_loaded",
    "Cannot load aot compilation from path %s, error: %s": "aot_failed package why",
    "Compiling model again due to a load failure from %s, reason: %s": "aot_failed package why",
    "collected artifacts: %d entries, %d artifacts, %d bytes total": "aot_made - - -",
    "collected artifact for %s shape %s (%d bytes)": "aot_made - - -",
    "saving AOT compiled function to %s": "aot_made package",
    "saved AOT compiled function to %s": "aot_made package",
    "Cannot save aot compilation to path %s, error: %s": "aot_not_saved package not_saved",
    "unable to save AOT compiled function to %s: %s": "aot_not_saved package not_saved",
    "vLLM failed to compile the model. The most likely reason for this is that a previous compilation failed, leading to a corrupted "
    "compilation artifact. We recommend trying to remove ~/.cache/vllm/torch_compile_cache and try again to see the real issue. ": "failed",
    "torch.compile takes %.2f s in total": "ends seconds",
    "torch.compile took %.2f s in total": "ends seconds",
    "torch.compile and initial profiling/warmup run together took %.2f s in total": "ends seconds",
    "Could not write compile cache metadata at %s; continuing without metadata. Compiled cache remains valid; diagnostics may be limited.": "told",
    "Failed to read file %s": "told",
    "CRITICAL: VLLM_USE_MEGA_AOT_ARTIFACT is enabled but PyTorch version does not support 'aot' parameter in standalone_compile. This requires "
    "PyTorch 2.10.0+. Falling back to non-AOT mode.": "told",
    "No execution code found, falling back to graph module execution.": "told",
    "torch._dynamo.config.enable_aot_compile is not available. AOT compile is disabled and please upgrade PyTorch version to use AOT compile.": "told",
    "Detected eager backend, disabling AOT compile.": "",
    "Exception during depyf cleanup.": "",
    "Initial profiling/warmup run took %.2f s": "",
    "Saved compiler manager cache in %.2f seconds.": "",
    "Skipping inductor lazy_init pre-trigger: %s": "",
    "Using EagerAdaptor": "",
    "Using InductorAdaptor": "",
    "Using InductorStandaloneAdaptor": "",
    "reconstructed serializable fn from standalone compile artifacts": "",
    "reconstructed serializable fn from standalone compile artifacts. num_artifacts=%d num_submods=%d": "",
    "reconstructing serializable fn from standalone compile artifacts. num_artifacts=%d num_submods=%d": "",
}

KNOWN: Final[dict[str, dict[str, str]]] = {"vllm": _VLLM}
