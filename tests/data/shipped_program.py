"""Makes the files that people ship: standalone artifacts, a mega-cache, compiled functions, AOTInductor packages.

Run by `record_kind.py` with the folder to write to; what torch itself says of the files goes to ``torchs.json`` there.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import torch
from torch._dynamo.aot_compile import ModelInput
from torch._inductor import aoti_compile_and_package, standalone_compile
from torch._inductor.codecache import torch_key

OUT = Path(sys.argv[1]).resolve()


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.linear(x)) + 1


def product(x, y):
    return torch.relu(x @ y) + 1


def difference(x, y):
    return torch.sigmoid(x - y) * 2


def graph_of(function, *inputs):
    """The graph that Dynamo makes of a function, and the inputs it gives to a backend."""
    made = []

    def backend(graph, given):
        made.append((graph, given))
        return graph.forward

    torch.compile(function, backend=backend, fullgraph=True)(*inputs)
    return made[0]


def main() -> None:
    torch.manual_seed(0)
    square = torch.ones(4, 4), torch.ones(4, 4)
    truth = {"torch": torch.__version__, "torch_key": torch_key().hex()}

    graph, given = graph_of(product, *square)
    artifact = standalone_compile(graph, given, dynamic_shapes="from_example_inputs", options={})
    artifact.save(path=str(OUT / "standalone.bin"))
    artifact.save(path=str(OUT / "unpacked"), format="unpacked")
    try:
        ahead = standalone_compile(graph, given, dynamic_shapes="from_example_inputs", options={}, aot=True)
        ahead.save(path=str(OUT / "standalone_aot.bin"))
    except TypeError:
        truth["standalone_aot"] = "this torch has no aot=True"

    if hasattr(torch._dynamo.config, "enable_aot_compile"):
        torch._dynamo.config.enable_aot_compile = True
    function = torch.compile(product, fullgraph=True).aot_compile((square, {}))
    function.save_compiled_function(str(OUT / "function.pt"))
    truth["function_line"] = product.__code__.co_firstlineno

    model = torch.compile(Layer().eval(), fullgraph=True)
    model._aot_compile(
        [ModelInput((torch.ones(rows, 8),), {}, [contextlib.nullcontext()]) for rows in (2, 4)]
    )
    model._save_aot_compiled_module(str(OUT / "model.pt"))

    exported = torch.export.export(Layer().eval(), (torch.ones(4, 8),))
    options = {"aot_inductor.package_cpp_only": True}
    aoti_compile_and_package(exported, package_path=str(OUT / "sources.pt2"), inductor_configs=options)
    if "--library" in sys.argv:
        aoti_compile_and_package(exported, package_path=str(OUT / "library.pt2"))

    torch._dynamo.reset()
    torch.compile(difference)(*square)
    data, info = torch.compiler.save_cache_artifacts()
    (OUT / "bundle.bin").write_bytes(data)
    truth["bundle"] = {kind: sorted(keys) for kind, keys in info.artifacts.items()}
    (OUT / "torchs.json").write_text(json.dumps(truth, indent=1))


main()
