"""Fields of hash details: where their values come from, and what can be said about changing them."""

from __future__ import annotations

import re
from typing import Final

# Fields that follow from the program itself: a new graph or new inputs below a changed AOTAutograd key.
_FROM_THE_GRAPH: Final = re.compile(
    r"gm|example_inputs\[.*|fx_kwargs\[.*|inputs_to_check\[.*|user_defined_triton_source\[.*|"
    r"triton_kernel_source_codes\[.*|cpp_runtime_thread_count|var_to_hint_override\[.*|"
    r"default_cuda_device_index|cudagraph_.*"
)
_INPUTS: Final = re.compile(r"example_inputs\[.*|inputs_to_check\[.*|fx_kwargs\[static_input_idxs\]")

_ADVICE: Final[tuple[tuple[str, str], ...]] = (
    (r"gm", "The code of the graph changed: another operation, constant, or captured tensor. "
            "A graph that changes with every run often holds a value of its environment."),
    (r"example_inputs\[.*", "An input changed. Pad or fix shapes, or compile with dynamic=True or "
                            "torch._dynamo.mark_dynamic(tensor, dim) so that one entry serves many sizes."),
    (r"inductor_config\[(?P<option>.*)\]", "Set by options={{\"{option}\": …}} of torch.compile, by "
     "torch._inductor.config.{option}, or by a TORCHINDUCTOR_… variable; keep it equal in every process."),
    (r"inductor_config_comms\[(?P<option>.*)\]", "Set by torch._inductor.config.{option}; keep it equal in every process."),
    (r"deterministic_algorithms(_settings)?", "Set by torch.use_deterministic_algorithms(…) and "
     "torch.utils.deterministic.fill_uninitialized_memory; call it the same way before every compile."),
    (r"cuda_matmul_settings", "Set by torch.set_float32_matmul_precision(…), torch.backends.cuda.matmul.* and "
     "torch.backends.fp32_precision; setting the default explicitly also changes the key (2.10 and later)."),
    (r"cache_key_tag", "Set by TORCH_COMPILE_CACHE_KEY_TAG or torch.compiler.config.cache_key_tag: caches under "
     "different tags never meet. Use one tag for processes that should share."),
    (r"torch_version", "Another torch, or an edited file in it: torch hashes its own sources. "
     "Caches do not survive this; bake them with the very build that uses them."),
    (r"system_info\[.*", "Another GPU model, CUDA, ROCm or Triton. Make the cache on the kind of machine that uses it."),
    (r"aot_config", "What AOTAutograd knows of the arguments: their names, their sources, dynamic shapes, static inputs. "
     "Renaming an argument, attribute or local is enough."),
    (r"autograd_config", "Set in torch._functorch.config; torch shows it only as bytes. Compare "
     "torch._functorch.config.get_config_copy() of both processes."),
    (r"grad_enabled", "Set by torch.no_grad(), torch.inference_mode() or torch.set_grad_enabled(…) around the call."),
    (r"disable_amp|autocast_state", "Set by torch.autocast(…) around the call."),
    (r"default_dtype", "Set by torch.set_default_dtype(…)."),
    (r"cpp_runtime_thread_count", "Follows OMP_NUM_THREADS or torch.set_num_threads(…) (2.13 and later); set it "
     "explicitly so that machines with other core counts agree."),
    (r"provenance_tracking_level|provenance_tracking_to_timeline", "Set by TORCH_COMPILE_DEBUG=1 or "
     "INDUCTOR_PROVENANCE=1: switching debugging on changes the key."),
    (r"(post_grad_custom_(pre|post)_pass|joint_custom_(pre|post)_pass|pre_grad_custom_pass|_p(re|ost)_fusion_custom_pass|"
     r"custom_backend_passes.*|_custom_partitioner_fn)", "The uuid() of a custom pass; it should change only when the pass does."),
    (r"fx_kwargs\[cudagraphs\]", "Set by mode=\"reduce-overhead\", by options={{\"triton.cudagraphs\": …}} or "
     "torch._inductor.config.triton.cudagraphs."),
    (r"fx_kwargs\[(?P<option>.*)\]", "An argument that torch.compile hands to Inductor ({option})."),
    (r"default_cuda_device_index", "The current CUDA device of a graph without inputs: each rank has its own."),
    (r"precompile_enabled", "Set by TORCH_CACHING_PRECOMPILE or torch._dynamo.config.caching_precompile."),
    (r"user_defined_triton_source.*|triton_kernel_source_codes.*", "The source of a Triton kernel that the program defines."),
)  # fmt: skip
_COMPILED: Final = tuple((re.compile(pattern), text) for pattern, text in _ADVICE)


def is_from_the_graph(field: str) -> bool:
    """Whether a field of an FX key follows from the program, so that a changed AOTAutograd key explains it."""
    return _FROM_THE_GRAPH.fullmatch(field) is not None


def is_input(field: str) -> bool:
    """Whether a field describes the inputs of a graph."""
    return _INPUTS.fullmatch(field) is not None


def field_advice(field: str) -> str | None:
    """What sets a field and how to keep it equal, in torch's own option names; None where nothing is certain.

    Examples
    --------
    >>> field_advice("grad_enabled").startswith("Set by torch.no_grad()")
    True
    """
    for pattern, text in _COMPILED:
        if match := pattern.fullmatch(field):
            return text.format(**{"option": "", **match.groupdict()})
    return None
