"""What the fields of a key depend on: the program, the call, the inputs, or the process."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# The fields of an FX key that depend on the program (the graph, its inputs, the call) and not on the process:
# torch/_inductor/codecache.py, `FxGraphHashDetails` (2.6 to 2.15). A field that a later torch adds counts as the process's
# until it is listed here.
OF_THE_PROGRAM: Final = frozenset(
    "gm example_inputs fx_kwargs user_defined_triton_source inputs_to_check nested_inductor_config_patches "  # noqa: SIM905
    "cudagraph_override cudagraph_annotation var_to_hint_override".split()
)

# torch/_inductor/codecache.py, `FxGraphHashDetails.__init__` (2.9 to 2.15; up to 2.8 the first is the flag allow_tf32).
_MATMUL: Final = (
    "fp32_precision",
    "allow_fp16_reduced_precision_reduction",
    "allow_bf16_reduced_precision_reduction",
)

TORCH_VERSION: Final = "torch_version"
"""The version of torch and a hash of its sources: where it differs, other fields follow from it."""

FUNCTORCH_CONFIG: Final = "autograd_config"
"""All options of ``torch._functorch.config``, pickled: torch prints the bytes, and cuts them."""

OF_THE_INSTALLATION: Final = (TORCH_VERSION, "system_info")
"""What the fields begin with that nothing a program sets brings back: another torch, another machine."""

FREEZING: Final = "inductor_config[freezing]"
"""The option that makes constants of a model's parameters and folds them: a frozen graph and its inputs are others."""

GRAPH_OPTIONS: Final = frozenset(
    f"inductor_config[{name}]"
    for name in (
        "align_random_eager", "auto_chunker.enable", "coordinate_descent_tuning", "decompose_shard_dim_alltoall", "deterministic",
        "emulate_precision_casts", "fallback_embedding_bag_byte_unpack", "fallback_random", "force_shape_pad", "joint_graph_constant_folding",
        "numerics", "optimize_scatter_upon_const_tensor", "pattern_matcher", "permute_fusion", "pre_grad_fusion_options",
        "selective_decompose", "shape_padding", "triton.autotune_at_compile_time",
    )
)  # fmt: skip
"""Options by which torch makes another graph of the same code before it is hashed: torch/_inductor/decomposition.py, compile_fx.py, and in
fx_passes/ the passes of joint_graph.py and pre_grad.py (2.9, 2.12 to 2.15)."""

IS_INFERENCE: Final = "fx_kwargs[is_inference]"
"""Whether no backward graph can follow: gradients are off, or no input needs any."""

_OF_INPUTS: Final = re.compile(r"example_inputs\[.*|inputs_to_check\[.*|fx_kwargs\[static_input_idxs\]")
# Of an AOTAutograd key: what it knows of the arguments, and two states that Dynamo guards; up to 2.12 the latter is `disable_amp`.
_OF_THE_CALL: Final = ("aot_config", "grad_enabled", "autocast_state", "disable_amp")
# Arguments of the compile that repeat options, which are also in the key (torch/_inductor/compile_fx.py).
_OF_OPTIONS: Final = re.compile(r"fx_kwargs\[(?:cudagraphs|cpp_wrapper|fx_wrapper)\]")


def is_of_the_program(name: str) -> bool:
    """Whether a field of an FX key depends on the program rather than on the process.

    >>> is_of_the_program("example_inputs[0]"), is_of_the_program("inductor_config[epilogue_fusion]")
    (True, False)
    """
    return name.partition("[")[0] in OF_THE_PROGRAM


@lru_cache(maxsize=1 << 14)
def is_input(name: str) -> bool:
    """Whether a field describes the inputs of a graph."""
    return _OF_INPUTS.fullmatch(name) is not None


def is_code(field: str) -> bool:
    """Whether a field is of the user's own code: a graph, a kernel, or a custom pass and the like, by its uuid."""
    return field == "gm" or "custom" in field or "triton" in field.partition("[")[0]


def is_of_the_call(name: str) -> bool:
    """Whether a field depends on the program and the call: on its arguments, or on whether gradients or autocast are on around it.

    >>> is_of_the_call("grad_enabled"), is_of_the_call("inductor_config[epilogue_fusion]"), is_of_the_call("fx_kwargs[cudagraphs]")
    (True, False, False)
    """
    is_either = is_of_the_program(name) or name.partition("[")[0] in _OF_THE_CALL
    return is_either and _OF_OPTIONS.fullmatch(name) is None


def matmul_settings(value: object) -> tuple[str, ...]:
    """The names of what ``cuda_matmul_settings`` holds, in its order; none if this is no value of that field."""
    if not isinstance(value, tuple) or len(value) != len(_MATMUL):
        return ()
    names = ("allow_tf32", *_MATMUL[1:]) if isinstance(value[0], bool) else _MATMUL
    return tuple(f"torch.backends.cuda.matmul.{name}" for name in names)
