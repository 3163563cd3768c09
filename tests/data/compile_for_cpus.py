"""Records the code that torch generates for one CPU limited to several capabilities, as tests/data/cpu_code.json.xz.

    python tests/data/compile_for_cpus.py record PYTHON    on a CPU with AVX512; PYTHON has torch

The file holds, for each capability and each function below, the generated source as the FX entry stores it. The one in
the repository was made by torch 2.13.0+cpu, g++ 12.
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from pathlib import Path

from packing import run

CAPABILITIES = ("avx512", "avx2", "default")
TARGET = Path(__file__).with_name("cpu_code.json.xz")


def compile_all() -> None:
    """Compile each function once, in this order; what runs in a process of each capability."""
    import torch

    x = torch.randn(64, 64)
    cases = {
        "floats": (lambda a: a.sin() + 1, x),
        "five_floats": (lambda a: a.sin() + 1, torch.randn(5)),
        "softmax": (lambda a: a.softmax(1), x),
        "bfloat16": (lambda a: a.sin() + 1, x.bfloat16()),
        "bfloat16_transposed": (lambda a: a.t().contiguous(), x.bfloat16()),
        "bfloat16_cat": (lambda a: torch.cat([a, a], 1), x.bfloat16()),
        "doubles": (lambda a: a.sin() + 1, x.double()),
        "int64": (lambda a: a * 2 + 1, (x * 9).long()),
        "int8": (lambda a: a * 2, (x * 9).to(torch.int8)),
        "two_types": (lambda a: (a.float().sin().sum(), a * 2), x.bfloat16()),
        "zeros": (lambda a: torch.zeros(100), x),
        "arange": (lambda a: torch.arange(100) * 2, x),
        "transposed": (lambda a: a.t() + a, x),
        "dropout": (lambda a: torch.nn.functional.dropout(a, 0.5), x),
        "mm": (lambda a: a @ a, x),
        "indexed": (lambda a: a[torch.tensor([1, 2, 3])], x),
        "compared": (lambda a: a > 0, x),
    }
    for name, (function, argument) in cases.items():
        function.__name__ = name
        torch._dynamo.reset()
        torch.compile(function)(argument)
        print(name)


def sources(cache: str) -> list[str]:
    """The sources of the FX entries of a directory, in the order they were made."""
    import cachescope
    from cachescope.readers.directory.file_contents import source_of

    entries = cachescope.read(cache).entries
    graphs = entries[entries["cache"] == "fxgraph"].sort_values("modified_time")
    return [source_of(row) or "" for row in graphs.itertuples()]


def record(python: str) -> None:
    """Run `compile_all` once for each capability and keep what it generated."""
    found = {}
    for capability in CAPABILITIES:
        with tempfile.TemporaryDirectory() as cache:
            limits = {"ATEN_CPU_CAPABILITY": capability, "OMP_NUM_THREADS": "2"}
            names = run(python, __file__, "compile", cache=cache, **limits).split()
            found[capability] = dict(zip(names, sources(cache), strict=True))
    TARGET.write_bytes(lzma.compress(json.dumps(found).encode()))


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        compile_all()
    else:
        record(sys.argv[2])
