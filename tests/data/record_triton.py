"""Two Triton kernels, compiled without a GPU for the architectures named on the command line. Needs triton.

Run by record_directories.py, which sets TRITON_CACHE_DIR.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator"
from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask) + tl.load(y_ptr + offsets, mask), mask)


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x_ptr + row * columns + offsets, offsets < columns, 0.0)
    tl.store(out_ptr + row, tl.sum(values, axis=0))


def source(kernel: Any, signature: dict[str, str], block: int) -> ASTSource:
    """The names of two arguments, and whether a constant stands in the signature, changed between 3.2 and 3.6."""
    if triton.__version__.startswith(("3.0.", "3.1.", "3.2.")):
        return ASTSource(fn=kernel, signature=signature, constants={"BLOCK": block})
    return ASTSource(fn=kernel, signature={**signature, "BLOCK": "constexpr"}, constexprs={"BLOCK": block})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", type=int, nargs="+", default=[80, 90])
    parser.add_argument("--report", type=Path, required=True)
    arguments = parser.parse_args()
    add = source(add_kernel, {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}, 1024)
    row_sum = source(row_sum_kernel, {"x_ptr": "*fp16", "out_ptr": "*fp32", "columns": "i32"}, 256)
    compiled = []
    for arch in arguments.arch:
        for kernel, options in ((add, {}), (add, {"num_warps": 8}), (row_sum, {"num_stages": 2})):
            built = triton.compile(kernel, target=GPUTarget("cuda", arch, 32), options=options)
            compiled.append(
                {
                    "name": kernel.name,
                    "arch": arch,
                    "options": options,
                    "hash": built.hash,
                    "source_hash": kernel.hash(),
                    # Triton 3.2 does not keep this.
                    "paths": {k: str(v) for k, v in sorted(getattr(built, "metadata_group", {}).items())},
                    "asm": {name: len(text) for name, text in built.asm.items()},
                    "shared": built.metadata.shared,
                }
            )
    report = {
        "triton_version": triton.__version__,
        "python_version": platform.python_version(),
        "truth": {"kernels": compiled},
    }
    arguments.report.write_text(json.dumps(report, indent=1, default=repr) + "\n")


if __name__ == "__main__":
    main()
