"""Writes cachescope/report/redaction/torch_words.txt: words of torch that tell nothing of whoever runs it.

    python tests/data/make_harmless_words.py

The names of its operators, functions, modules, dtypes and options, what its options may be by default, the keywords of the
languages it writes code in, and the files of its compiler. Run it where torch and Triton's sources are, after an upgrade.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import torch
import torch._dynamo.config
import torch._functorch.config
import torch._inductor.config

TARGET: Final = Path(__file__).parents[2] / "cachescope" / "report" / "redaction" / "torch_words.txt"
_WORD: Final = re.compile(r"[A-Za-z_]\w*(?:[.-][A-Za-z_]\w*)*")
_COMPILER: Final = ("_dynamo", "_functorch", "_inductor", "_guards.py", "fx", "_higher_order_ops", "compiler")
# Whose classes and functions are named in keys, guards and errors.
_NAMED: Final = (
    "_dynamo/source.py", "_dynamo/exc.py", "_dynamo/guards.py", "_guards.py", "_subclasses/fake_tensor.py",
    "_inductor/codecache.py", "_inductor/exc.py", "_inductor/output_code.py", "_inductor/cpu_vec_isa.py",
    "_inductor/runtime/hints.py", "_inductor/runtime/triton_heuristics.py", "_inductor/async_compile.py",
    "_inductor/ops_handler.py", "_inductor/codegen/triton.py", "_inductor/codegen/wrapper.py",
    "_functorch/_aot_autograd/schemas.py", "_functorch/_aot_autograd/autograd_cache.py",
    "fx/experimental/symbolic_shapes.py", "utils/_sympy/functions.py", "utils/_ordered_set.py",
)  # fmt: skip
# Whose texts are the code that Inductor writes.
_WRITERS: Final = ("wrapper.py", "cpp.py", "triton.py", "cpp_wrapper_cpu.py", "python_wrapper_mtia.py")
# What names a board, beside what the datasheets hold; and the rest of the code that Inductor writes.
_BOARDS: Final = """NVIDIA AMD Intel Tesla GeForce Quadro RTX GTX Instinct Radeon Max Arc A10 A10G A16 A30 A40 A100 A800 A6000 H20
H100 H200 H800 GH200 B100 B200 GB200 B300 GB300 L4 L20 L40 L40S T4 T4G V100 P100 V100-SXM2-16GB V100-SXM2-32GB A100-SXM4-40GB
A100-SXM4-80GB A100-PCIE-40GB MI100 MI210 MI250 MI250X MI300A MI300X MI325X MI355X PCIe PCIE SXM SXM2 SXM4 SXM5 NVL HBM2 HBM2e
HBM3 HBM3e DGX Spark Thor Orin Ti SUPER Laptop GPU Generation Ada Blackwell Hopper Server Edition Workstation 4090 5090 3090 2080 1080"""
_CODE: Final = """const auto int void float double bool char long unsigned signed short struct class template typename static inline
constexpr namespace return for if else while do switch case break continue new delete this nullptr true false include define
ifdef ifndef endif pragma extern using omp parallel num_threads simd collapse restrict int8_t int16_t int32_t int64_t uint8_t
uint16_t uint32_t uint64_t size_t size_type value_type at c10 vec Vectorized loadu store at_vec std numeric_limits memcpy main
hpp cpp cubin ptx ttir ttgir llir llvm spv json constexpr program_id num_programs arange load where full zeros broadcast_to
xnumel rnumel r0_numel ynumel znumel XBLOCK YBLOCK ZBLOCK RBLOCK R0_BLOCK xoffset yoffset roffset xindex yindex rindex xmask
ymask rmask xbase rbase eviction_policy evict_last evict_first other num_warps num_stages num_ctas kernel call args forward
backward inner runner stream stream0 size_hints triton_meta inductor_meta signature device constants configs mutated_arg_names
autotune_hints optimize_mem no_x_dim num_load num_reduction backend_hash assert_indirect_indexing is_inference is_backward
async_compile extern_kernels empty_strided_cpu empty_strided_cuda assert_size_stride reinterpret_tensor wait_all compile_cpp
grid in_ptr out_ptr in_out_ptr graph GraphModule gm code self nn fx _C _nn"""


def operators() -> Iterator[str]:
    """The names of operators, without their namespaces and overloads; generated names are made of them."""
    for name in torch._C._dispatch_get_all_op_names():
        yield name.split("::")[-1].split(".")[0]


def words() -> Iterator[str]:
    """The other words."""
    for name in torch._C._dispatch_get_all_op_names():
        yield from re.split(r"::|\.", name)
    for thing in (
        torch,
        torch.Tensor,
        torch.nn,
        torch.nn.functional,
        torch.fx,
        torch.linalg,
        torch.cuda,
        torch.fft,
    ):
        yield from dir(thing)
    for config in (torch._inductor.config, torch._dynamo.config, torch._functorch.config):
        for name, value in config.get_config_copy().items():
            yield from name.split(".")
            yield name
            if isinstance(value, str) and "/" not in value:
                yield from _WORD.findall(value)
    package = Path(torch.__file__).parent
    for name in _NAMED:
        for node in ast.walk(ast.parse((package / name).read_text())):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id
    for name in _WRITERS:
        if (path := package / "_inductor" / "codegen" / name).exists():
            yield from _names_in_texts(ast.parse(path.read_text()))
    yield from (*_BOARDS.split(), *_CODE.split())


def _names_in_texts(tree: ast.AST) -> Iterator[str]:
    """The identifiers with a sign of code in them: what else the texts say are words of any language."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (
                word for word in _WORD.findall(node.value) if "_" in word or re.search("[a-z][A-Z]", word)
            )


def files() -> Iterator[str]:
    """The files of torch's compiler, from ``torch/``."""
    package = Path(torch.__file__).parent
    for path in package.rglob("*.py"):
        name = path.relative_to(package.parent).as_posix()
        if name.split("/")[1] in _COMPILER:
            yield name


if __name__ == "__main__":
    sections = {
        "operators": set(operators()),
        "words": set(words()) - set(operators()),
        "files": set(files()),
    }
    lines = []
    for title, members in sections.items():
        kept = {
            word
            for word in members
            if title == "files" or (len(word) > 1 and _WORD.fullmatch(word)) or word.isdigit()
        }
        lines += [f"[{title}]", *sorted(kept)]
    TARGET.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} lines in {TARGET}")
