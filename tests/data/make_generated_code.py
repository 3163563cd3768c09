"""Makes `cachescope/auditing/generated_code.json`: the words of the Python that torch's code generators write, 2.4 to 2.15.

    python tests/data/make_generated_code.py SITE-PACKAGES…

By hand, from ``torch/_inductor/codegen/*.py``, ``torch/_inductor/select_algorithm.py``, ``torch/_inductor/kernel`` and
``torch/fx/graph.py`` of each release: imports, the names that stand for a path, the paths that begin with a name that is imported
(patterns), the attributes of all other values, builtins, and the namespaces of operators. From the sources that are named: the
operators of ATen (``native_functions.yaml``) but for those that read or write a file, and what kernels of Triton use.
"""

import json
import re
import sys
from pathlib import Path

TARGET = Path(__file__).parents[2] / "cachescope" / "auditing" / "generated_code.json"
RUNTIME = "torch._inductor.runtime"
IMPORTS = [
    "import math", "import os", "import pickle", "import random", "import tempfile", "import torch", "import triton",
    "import triton.language as tl", "import torch.fx._pytree as fx_pytree", "import torch.utils._pytree as pytree",
    *(f"from ctypes import {name}" for name in ("c_void_p", "c_long", "c_int")),
    "from math import inf", "from math import nan", "from cmath import nanj", "from __future__ import annotations",
    "from torch import device", "from torch import empty_strided",
    *(f"from torch._C import _{name}_getCurrentRawStream as get_raw_stream" for name in ("cuda", "xpu", "mtia")),
    "from torch._C._dynamo.guards import copy_if_misaligned", "from torch._C._dynamo.guards import copy_misaligned",
    "from torch._dynamo.graph_bytecode_inputs import get_external_object_by_index",
    "from torch._dynamo.testing import rand_strided", "from torch._dynamo.utils import preserve_rng_state",
    "from torch._dynamo.variables.streams import _get_stream_by_index",
    "from torch._inductor.async_compile import AsyncCompile", "from torch._inductor.codecache import CppWrapperCodeCache",
    "from torch._inductor.codegen.debug_utils import _print_debugging_tensor_value_info",
    "from torch._inductor.codegen.memory_planning import _align as align",
    "from torch._inductor.codegen.multi_kernel import MultiKernelCall",
    "from torch._inductor.hooks import run_intermediate_hooks",
    f"from {RUNTIME} import triton_helpers", f"from {RUNTIME} import triton_heuristics",
    f"from {RUNTIME}.benchmarking import benchmarker",
    *(f"from {RUNTIME}.debug_utils import {name}" for name in ("check_memory_step", "track_tensor", "tracked_empty_strided")),
    *(
        f"from {RUNTIME}.hints import {name}"
        for name in ("AutotuneHint", "ReductionHint", "TileHint", "DeviceProperties", "instance_descriptor")
    ),
    f"from {RUNTIME}.runtime_utils import assert_tensor_metadata", f"from {RUNTIME}.runtime_utils import compile_mps_shader",
    f"from {RUNTIME}.triton_helpers import libdevice", f"from {RUNTIME}.triton_helpers import math as tl_math",
    *(
        f"from {RUNTIME}.triton_heuristics import {name}"
        for name in (
            "grid", "split_scan_grid", "grid_combo_kernels", "start_graph", "end_graph", "cooperative_reduction_grid",
            "maybe_cooperative_reduction_grid",
        )
    ),
    "from torch._inductor.select_algorithm import AlgorithmSelectorCache", "from torch._inductor.select_algorithm import extern_kernels",
    "from torch._inductor.utils import maybe_profile", "from torch._inductor.utils import print_performance",
    "from torch._inductor.wrapper_benchmark import compiled_module_main", "from torch.cuda import nvtx",
    "from torch.profiler import record_function", "from triton.compiler.compiler import AttrsDescriptor",
    "from triton.testing import do_bench",
]  # fmt: skip
GUARDS = "torch._C._dynamo.guards"
ALIASES = {
    "aten": "torch.ops.aten", "inductor_ops": "torch.ops.inductor", "_quantized": "torch.ops._quantized",
    **{name: f"{GUARDS}.{name}" for name in ("assert_size_stride", "assert_size_stride_grouped", "assert_alignment")},
    **{f"empty_strided_{name}": f"{GUARDS}._empty_strided_{name}" for name in ("cpu", "cpu_pinned", "cuda", "xpu", "mtia")},
    "reinterpret_tensor": f"{GUARDS}._reinterpret_tensor", "alloc_from_pool": "torch.ops.inductor._alloc_from_pool",
    "empty_strided_p2p": "torch._C._distributed_c10d._SymmetricMemory.empty_strided_p2p",
    "generate_example_value": "AlgorithmSelectorCache.generate_example_value",
    "async_compile": "AsyncCompile()", "NoneType": "type(None)",
}  # fmt: skip
PATHS = [
    r"torch\.(?:b?float\d+\w*|u?int\d+|complex\d+|bool|float|double|half|int|long|short|q?u?int\d+|bits\d+\w*)",
    r"torch\.(?:strided|sparse_\w+|jagged|contiguous_format|channels_last|channels_last_3d|preserve_format|nan|inf|pi|e)",
    r"torch\.(?:device|empty|empty_strided|as_strided|zeros|ones|full|stack|tensor|Tensor|Size|Event|_?sym_\w+)",
    r"torch\.(?:cuda|xpu|mtia)\.(?:_DeviceGuard|device|set_device|synchronize|stream|current_stream|current_device|use_mem_pool)",
    r"torch\.cuda\.nvtx\.range_(?:push|pop)", r"torch\._ops\.contextlib\.nullcontext",
    r"torch\._C\._(?:cuda|xpu|mtia)_getCurrentRawStream",
    r"torch\._C\._aoti\.(?:unsafe_alloc_void_ptrs_from_tensors|alloc_tensors_by_stealing_from_void_ptrs)",
    r"async_compile\.(?:triton|cpp|cpp_pybinding|cuda|rocm|xpu|halide|metal|cutedsl|pallas|nv_universal_gemm|multi_kernel|"
    r"size_hint_multi_kernel|wait)",
    r"math\.(?:inf|nan|pi|e|sqrt|floor|ceil|trunc|log|log2|pow|isinf|isnan|copysign)", r"extern_kernels\.\w+", r"pickle\.loads",
    r"CppWrapperCodeCache\.load_pybinding", r"AlgorithmSelectorCache\.generate_example_value", r"nvtx\._device_range_(?:start|end)",
    r"(?:AutotuneHint|ReductionHint|TileHint)\.[A-Z_]+", r"AttrsDescriptor\.from_dict", r"benchmarker\.benchmark(?:_gpu)?", r"fx_pytree\.tree_flatten_spec", r"pytree\.tree_unflatten",
    r"triton\.(?:jit|cdiv|next_power_of_2|constexpr_function)",
    r"triton_heuristics\.(?:pointwise|reduction|persistent_reduction|cooperative_reduction|split_scan|foreach|template|fixed_config)",
    r"tl\.(?:PropagateNan\.ALL|ReductionOrdering\.INNER_TREE|math\.\w+|core\.view|extra\.cuda\.gdc_(?:wait|launch_dependents))",
    r"libdevice\.[a-z][a-z0-9_]*", r"tl_math\.[a-z][a-z0-9_]*",
]  # fmt: skip
# Names that stand for a module or a class: they are never a value themselves.
ROOTS = (
    "torch math tl triton triton_helpers triton_heuristics libdevice tl_math pickle os random tempfile nvtx extern_kernels benchmarker "
    "fx_pytree pytree maybe_profile end_graph aten inductor_ops _quantized async_compile AttrsDescriptor AlgorithmSelectorCache CppWrapperCodeCache "
    "AutotuneHint ReductionHint TileHint"
)
ATTRIBUTES = [
    "append", "any", "as_strided", "benchmark_all_configs", "broadcast_to", "call", "clear", "clone", "contiguous", "copy_",
    "cuda_stream", "detach", "dim", "dtype", "element_ty", "expand", "extend", "fill_", "isinf", "isnan", "item", "mean",
    "numel", "partitions", "permute", "record", "recursively_apply_fns", "reshape", "run", "shape", "size", "squeeze", "stride",
    "sum", "synchronize", "T", "to", "transpose", "unsqueeze", "view", "zero_",
]  # fmt: skip
BUILTINS = [
    "abs", "bool", "dict", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min", "print", "range", "round",
    "set", "slice", "str", "sum", "tuple", "zip",
]  # fmt: skip
NAMESPACES = [
    "prims", "inductor", "_quantized", "quantized", "quantized_decomposed", "onednn", "mkldnn", "mkldnn_prepacked", "mkl",
    "c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "symm_mem", "_dtensor", "rngprims", "sparse", "streams",
]  # fmt: skip
HIGHER_ORDER = [
    "associative_scan", "auto_functionalized", "auto_functionalized_v2", "cond", "flex_attention", "flex_attention_backward",
    "invoke_subgraph", "map_impl", "graphsafe_run_with_rng_state", "out_dtype", "run_and_save_rng_state", "run_with_rng_state",
    "scan", "triton_kernel_wrapper_functional", "triton_kernel_wrapper_mutation", "while_loop", "with_effects",
]  # fmt: skip
FILES = {"from_file"}
MODULES = {"core", "extra", "math"}
# Kernels make the other names of Triton's language from the operator or type.
LANGUAGE = {
    "all", "any", "argmax", "argmin", "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or", "atomic_xor",
    "bfloat16", "cat", "ceil", "clamp", "cos", "cumprod", "cumsum", "dot_scaled", "erf", "exp", "exp2", "flip", "floor",
    "gather", "histogram", "interleave", "log", "log2", "permute", "sin", "softmax", "sort", "sqrt", "swizzle2d", "uint16",
    "umulhi", "view", "xor_sum",
}  # fmt: skip


def main() -> None:
    operators, language = set(), set(LANGUAGE)
    helpers = {"constexpr_next_power_of_2", "if_mask", "set_driver_to_cpu", "set_driver_to_gpu"}
    for site in map(Path, sys.argv[1:]):
        declared = (site / "torchgen/packaged/ATen/native/native_functions.yaml").read_text()
        operators |= set(re.findall(r"^- func: (\w+)", declared, re.MULTILINE)) - FILES
        inductor = site / "torch" / "_inductor"
        for path in inductor.rglob("*"):
            if path.suffix in (".py", ".jinja"):
                language |= set(re.findall(r"(?<![\w.])tl\.([a-z]\w+)(?![\w.])", path.read_text())) - MODULES
        runtime = (inductor / "runtime" / "triton_helpers.py").read_text()
        helpers |= set(re.findall(r"^@triton\.jit\ndef ([a-z]\w*)\(", runtime, re.MULTILINE))
    table = {
        "imports": sorted(IMPORTS), "aliases": ALIASES,
        "paths": [*PATHS, f"{GUARDS.replace('.', '[.]')}[.](?:assert_\\w+|_empty_strided_\\w+|_reinterpret_tensor|copy_(?:if_)?misaligned)"],
        "triton": {"tl": " ".join(sorted(language)), "triton_helpers": " ".join(sorted(helpers))},
        "roots": ROOTS,
        "attributes": " ".join(ATTRIBUTES), "builtins": " ".join(BUILTINS),
        "operators": {
            "aten": " ".join(sorted(operators)), "higher_order": " ".join(HIGHER_ORDER), **dict.fromkeys(NAMESPACES, ""),
        },
    }  # fmt: skip
    TARGET.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
