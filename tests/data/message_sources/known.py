"""Which files of vLLM, SGLang, Triton and torch say something of their caches, and what it means: a kind, and the names of the values in the message.

The readers know the kinds (`cachescope/readers/logs/vllm_log.py`). ``-`` is a value that nobody asks for; ``told`` is an error that is quoted, and
nothing at all a message that says nothing of a lookup.
"""

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
_CACHES: Final = (
    "torch/_inductor/codecache.py", "torch/_inductor/output_code.py", "torch/_inductor/remote_cache.py", "torch/_inductor/standalone_compile.py",
    "torch/_inductor/triton_bundler.py", "torch/_inductor/runtime/autotune_cache.py", "torch/_inductor/codegen/cuda/cutlass_cache.py",
    "torch/_inductor/codegen/cutlass/cache.py", "torch/_functorch/_aot_autograd/autograd_cache.py", "torch/_dynamo/eval_frame.py",
    "torch/_functorch/_aot_autograd/aot_autograd_result.py", "torch/_dynamo/package.py", "torch/_dynamo/pgo.py",
    "torch/_dynamo/precompile_context.py", "torch/compiler/_cache.py",
)  # fmt: skip
SCOPES: Final = {
    "vllm": Scope(
        tuple(f"vllm/compilation/{name}.py" for name in _COMPILATION),
        ("debug", "info", "warning", "error", "raised"),
        "vLLM failed to compile",
    ),
    "sglang": Scope(("sglang/srt/compilation/backend.py",), ("debug", "info", "warning", "error"), "-"),
    "triton": Scope(
        ("triton/runtime/*.py", "triton/compiler/compiler.py"), ("info", "warning", "error", "exception"), "-"
    ),
    "torch": Scope(_CACHES, ("warning", "error", "exception", "critical"), "-"),
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
    "Directly load the compiled graph(s) for compile range %s from the cache, took %.3f s": "graphs_loaded - seconds",
    "Directly load the compiled graph(s) for dynamic shape from the cache, took %.3f s": "graphs_loaded seconds",
    "Directly load the compiled graph(s) for shape %s from the cache, took %.3f s": "graphs_loaded - seconds",
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

# SGLang's fork of vLLM's backend; nothing but these words tells its lines from those of others.
_SGLANG: Final = {
    "Cache the graph for dynamic shape for later use": "told",
    "Cache the graph of shape %s for later use": "told -",
    "Compiling a graph for dynamic shape takes %.2f s": "told seconds",
    "Compiling a graph for shape %s takes %.2f s": "told - seconds",
    "Directly load the %s-th graph for dynamic shape from %s via handle %s": "told - - -",
    "Directly load the %s-th graph for shape %s from %s via handle %s": "told - - - -",
    "Store the %s-th graph for dynamic shape from %s via handle %s": "told - - -",
    "Store the %s-th graph for shape %s from %s via handle %s": "told - - - -",
}

# ``fact`` is one of `cachescope/readers/logs/text_messages.py`, which is a fact of a lookup.
_TORCH: Final = {
    **dict.fromkeys(
        (
            "fx graph cache unable to serialize compiled graph",
            "fx graph unable to write to cache",
            "Can't pickle",
            "fx graph cache unable to load compiled graph",
            "AOTAutograd cache unable to load compiled graph: %s",
            "AOTAutograd cache unable to serialize compiled graph: %s",
            "Bypassing autograd cache due to: %s",
            "remote autograd cache unable to load compiled graph",
            "Failed to pickle cache key",
            "%s unable to load compiled graph",
            "AOTAutograd cache unable to write compiled graph: %s",
            "%s unable to list cache entries",
        ),
        "fact",
    ),
    **dict.fromkeys(
        (
            "Failed to load cached artifact: %s",
            "Unable to create a remote cache",
            "Unable to create a remote cache: %s",
            "get_code_state failed remote read on %s",
            "get_code_state failed while reading %s",
            "get_code_state failed parsing remote result on %s",
            "Failed to load artifact: %s",
            "Bundle contains illegal %s, payload: %s",
            "Warning, failed to recreate remote cache after pickling",
            "Failed to pickle cache artifacts",
            "Failed to un-pickle cache artifacts",
            "Unsupported artifact type %s",
            "Failed to load CUTLASS config %s from local cache: %s",
            "standalone_compile artifact generation failed, cannot save. Run with TORCH_LOGS=+torch._inductor.codecache to identify the problem",
            "Failed to reload cubin file statically launchable autotuner %s: %s",
            "Failed to load entry from dynamo cache: %s",
            "Failed to load package from path %s: %s",
            "Failed to load entry from dynamo cache",
            "Backend not found",
            "Failed to load package from path %s",
            "Failed to create cache entry %s",
            "Failed to load CUTLASS config %s from local cache",
            "Failed to reload cubin file statically launchable autotuner %s",
            "pre_grad_custom_pass %s does not implement uuid(); falling back to early timing (pre-grad pass cache will be bypassed). Implement uuid() on your CustomGraphPass to enable caching.",
            "Unable to create cache",
            "Ignoring corrupt local cache entry %s: %s: %s",
        ),
        "told",
    ),
    **dict.fromkeys(
        (
            "could not determine __code__ for %s",
            "dll unloading function was not found, library may not be unloaded properly!",
            "Parameter %s is optional with a default value of %s",
            "Batched cubin embedding failed, falling back to per-cubin objcopy",
            "Failed to collect cache system info from device interface %s",
            "Directory %s is not empty - skipping!",
        ),
        "",
    ),
}
_TRITON: Final = {"Triton cache error: compiled module %s.so could not be loaded": "told -"}
KNOWN: Final[dict[str, dict[str, str]]] = {
    "vllm": _VLLM, "sglang": _SGLANG, "triton": _TRITON, "torch": _TORCH,
}  # fmt: skip
