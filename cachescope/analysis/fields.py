"""Fields of hash details: where their values come from, and what can be advised about changing them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from cachescope.catalogue.facts import field_facts
from cachescope.keys.key_fields import is_of_the_program

# Fields that only some graphs have: below a changed AOTAutograd key, a new graph may add or drop them.
_WITH_THE_GRAPH: Final = frozenset(
    {"triton_kernel_source_codes", "cpp_runtime_thread_count", "default_cuda_device_index"}
)
_INPUTS: Final = re.compile(r"example_inputs\[.*|inputs_to_check\[.*|fx_kwargs\[static_input_idxs\]")

_ADVICE: Final[tuple[tuple[str, str], ...]] = (
    (r"deterministic_algorithms(_settings)?", "Set by torch.use_deterministic_algorithms(…) and "
     "torch.utils.deterministic.fill_uninitialized_memory; set both to the same values before every compile."),
    (r"cuda_matmul_settings", "Set by torch.set_float32_matmul_precision(…), torch.backends.cuda.matmul.* and "
     "torch.backends.fp32_precision; setting the default explicitly also changes the key (2.10 and later)."),
    (r"cache_key_tag", "Set by TORCH_COMPILE_CACHE_KEY_TAG or torch.compiler.config.cache_key_tag: caches under "
     "different tags never meet. Use one tag for processes that should share."),
    (r"torch_version", "Another torch, or an edited file in it: torch hashes its own sources, and a cache serves "
     "the very build that made it."),
    (r"system_info\[.*", "Another GPU model, CUDA, ROCm or Triton: a cache serves the kind of machine that made it."),
    (r"aot_config", "What AOTAutograd knows of the arguments: their names, their sources, dynamic shapes, static inputs. "
     "A renamed argument or attribute is enough."),
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
     r"custom_backend_passes.*|_custom_partitioner_fn)", "The uuid() of a custom pass, or None without one. Set the same passes in every process; a uuid() should change only when its pass does."),
    (r"default_cuda_device_index", "The current CUDA device, of a graph without inputs. A process that sees one device alone "
     "(CUDA_VISIBLE_DEVICES, one for each rank) has index 0."),
    (r"precompile_enabled", "Set by TORCH_CACHING_PRECOMPILE or torch._dynamo.config.caching_precompile."),
    (r"user_defined_triton_source.*|triton_kernel_source_codes.*", "The source of a Triton kernel that the program defines."),
)  # fmt: skip
# When a key lacks a field: no other value was set (`FxGraphHashDetails.__init__` in torch/_inductor/codecache.py, 2.13).
_LEFT_OUT: Final = {
    "cpp_runtime_thread_count": "cpp_runtime_thread_count is in a key only if the graph may become C++ code for the CPU, and "
    "torch._inductor.config.cpp.threads and cpp.dynamic_threads are not set (2.13 and later).",
    "default_cuda_device_index": "default_cuda_device_index is in a key only if the graph has no tensor inputs.",
    "pre_grad_custom_pass": "pre_grad_custom_pass is not in a key if pre-grad passes run before the lookup: with a pass in "
    'torch._inductor.config.pre_grad_custom_pass that has no uuid(), or with pre_grad_pass_timing="early". '
    "Set the same passes and timing in every process.",
}
_UNKNOWN_OPTION: Final = re.compile(r"inductor_config\[(.*)\]")
_ARGUMENT: Final = re.compile(r"fx_kwargs\[(.*)\]")
_COMPILED: Final = tuple((re.compile(pattern), text) for pattern, text in _ADVICE)


@lru_cache(maxsize=1 << 14)
def is_from_the_graph(field: str) -> bool:
    """Whether a field of an FX key follows from the program, in which case a changed AOTAutograd key explains it."""
    return is_of_the_program(field) or field.partition("[")[0] in _WITH_THE_GRAPH


@lru_cache(maxsize=1 << 14)
def is_input(field: str) -> bool:
    """Whether a field describes the inputs of a graph."""
    return _INPUTS.fullmatch(field) is not None


def field_advice(field: str) -> str | None:
    """What sets a field and how to keep it equal, with torch's option names; None if nothing is certain.

    Options are looked up in the catalogue, as of the newest torch that has them. What to do about the graph and its
    inputs depends on how they changed: `graph_advice`, `tensor_advice`.
    """
    for pattern, text in _COMPILED:
        if pattern.fullmatch(field):
            return text
    return _option_advice(field)


def left_out_advice(field: str) -> str | None:
    """Which keys lack a field; None if there is no such rule."""
    return _LEFT_OUT.get(field)


def _option_advice(field: str) -> str | None:
    """Every way to set an option, from the catalogue; for an option it lacks, what the name shows."""
    facts = field_facts(field)
    if facts is not None and facts.python_name is not None:
        ways = [
            *([f"by {facts.option} of torch.compile"] if facts.option else []),
            f"by {facts.python_name}",
            *([f"by {' or '.join(facts.environment)}"] if facts.environment else []),
        ]
        return f"Set {_listed(ways)}; keep it equal in every process."
    if option := _UNKNOWN_OPTION.fullmatch(field):
        return (
            f'Set by options={{"{option[1]}": …}} of torch.compile, by torch._inductor.config.{option[1]}, '
            "or by a TORCHINDUCTOR_… variable; keep it equal in every process."
        )
    if argument := _ARGUMENT.fullmatch(field):
        what = facts.meaning if facts is not None else None
        return f"An argument that torch.compile hands to Inductor ({what or argument[1]})."
    return None


def _listed(ways: list[str]) -> str:
    if len(ways) <= 2:
        return " or ".join(ways)
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"
