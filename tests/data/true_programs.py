"""Small programs after what people run; each prints what torch counted, as JSON on its last line.

``python true_programs.py NAME`` runs one; CHOICE is what is edited between two runs, and PLACE the folder for what it saves.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch._inductor.config
from torch._dynamo.utils import counters
from torch._inductor.custom_graph_pass import CustomGraphPass

# A minute of compiling that no test here needs.
torch._inductor.config.cpp_cache_precompile_headers = False
CHOICE = os.environ.get("CHOICE", "")
PLACE = Path(os.environ.get("PLACE", "."))


def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


def trebled(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 3


def plain() -> None:
    torch.compile(doubled)(torch.ones(8))


def unpicklable() -> None:
    class Pass(CustomGraphPass):  # type: ignore[misc]
        def __call__(self, graph: torch.fx.Graph) -> None:
            pass

        def uuid(self) -> Any:
            return lambda: None

    torch._inductor.config.post_grad_custom_post_pass = Pass()
    plain()


def checkpointed() -> None:
    from torch.utils.checkpoint import checkpoint

    one, other = (getattr(torch, name) for name in CHOICE.split(","))

    def first(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(lambda x: one(x) * x, x, use_reentrant=False)

    def second(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(lambda x: other(x) + x, x, use_reentrant=False)

    for function in (first, second):
        torch.compile(function)(torch.ones(8, requires_grad=True))


def mega_saved() -> None:
    for function in (doubled, trebled):
        torch.compile(function)(torch.ones(8))
    saved = torch.compiler.save_cache_artifacts()
    assert saved is not None
    (PLACE / "mega").write_bytes(saved[0])


def mega_loaded() -> None:
    """Of the two graphs in it one is used."""
    torch.compiler.load_cache_artifacts((PLACE / "mega").read_bytes())
    plain()


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 2


def aoti_saved() -> None:
    exported = torch.export.export(Model(), (torch.ones(8),))
    torch._inductor.aoti_compile_and_package(exported, package_path=str(PLACE / "model.pt2"))


def aoti_loaded() -> None:
    torch._inductor.aoti_load_package(str(PLACE / "model.pt2"))(torch.ones(8))


def precompile_saved() -> None:
    compiled: Any = torch.compile(doubled, fullgraph=True)
    compiled.aot_compile(((torch.ones(8),), {})).save_compiled_function(str(PLACE / "function"))


def precompile_loaded() -> None:
    with (PLACE / "function").open("rb") as file:
        torch.compiler.load_compiled_function(file)(torch.ones(8))


def limit() -> None:
    """Seven blocks, each with a number of its own, of one function that is compiled three times at most."""
    torch._dynamo.config.recompile_limit = 3

    class Block(torch.nn.Module):
        def __init__(self, factor: int) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x) * self.factor

    with torch.no_grad():
        for factor in range(7):
            torch.compile(Block(factor))(torch.ones(8))


def cell() -> None:
    """The second value of a closure cell makes it symbolic, and the third is served by that."""
    count = 2

    @torch.compile
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * count

    scaled(torch.ones(8))
    count = 3
    scaled(torch.ones(8))
    count = 4
    scaled(torch.ones(8))


def number() -> None:
    """A number that is an argument: CHOICE, a float or an integer."""

    @torch.compile(dynamic=True)
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return torch.relu(x) * by

    scaled(torch.ones(8), json.loads(CHOICE))


def frozen() -> None:
    """A product of matrices; CHOICE is whether it is frozen."""
    options = {"freezing": json.loads(CHOICE)}
    with torch.no_grad():
        torch.compile(lambda a, b: torch.relu(a @ b), options=options)(torch.ones(4, 16), torch.ones(16, 16))


def unbiased() -> None:
    """A model that is compiled twice: once as it is, and once after CHOICE was changed."""

    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.scale = torch.nn.Linear(8, 8), 2.0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.layer(x)) * self.scale

    model = Scaled()
    compiled = torch.compile(model)
    with torch.no_grad():
        compiled(torch.ones(4, 8))
        if CHOICE == "scale":
            model.scale = 3.0
        else:
            model.layer.bias = None
        compiled(torch.ones(4, 8))


def setdefault() -> None:
    """Too late: torch set the variable as it was imported."""
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(PLACE / "own"))
    plain()


def custom_op() -> None:
    """An operator whose body and fake implementation are edited."""
    size = int(CHOICE)

    @torch.library.custom_op("cachescope_true::firsts", mutates_args=())
    def firsts(x: torch.Tensor) -> torch.Tensor:
        return x[:size].clone()

    @firsts.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return x.new_empty(size)

    try:
        torch.compile(lambda x: firsts(torch.relu(x)) + 1)(torch.ones(8))
    except AssertionError:
        print("expected the size of the entry")


class Quantised(torch.Tensor):
    """Integers and their scale; CHOICE is in its metadata."""

    @staticmethod
    def __new__(cls, values: torch.Tensor, scale: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=torch.float32)

    def __init__(self, values: torch.Tensor, scale: torch.Tensor) -> None:
        self.values_, self.scale = values, scale

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return "Quantised()"

    def __tensor_flatten__(self) -> tuple[list[str], dict[str, Any]]:
        return ["values_", "scale"], {"kind": CHOICE}

    @classmethod
    def __tensor_unflatten__(cls, inner: Any, meta: Any, size: Any, stride: Any) -> Quantised:
        return cls(inner["values_"], inner["scale"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = [one.values_.float() * one.scale if isinstance(one, cls) else one for one in args]
        return func(*plain, **(kwargs or {}))


def quantised() -> None:
    weight = Quantised(torch.ones(8, 8, dtype=torch.int8), torch.tensor(0.5))
    with torch.no_grad():
        torch.compile(lambda x, w: torch.relu(x @ w))(torch.ones(8, 8), weight)


def interrupted() -> None:
    """Ctrl-C while code is generated, and the call again: as after an interrupted notebook cell; CHOICE resets Dynamo in between."""
    from torch._inductor.graph import GraphLowering

    codegen = GraphLowering.codegen

    def stopped(graph: Any) -> Any:
        GraphLowering.codegen = codegen
        os.kill(os.getpid(), signal.SIGINT)
        return codegen(graph)

    GraphLowering.codegen = stopped
    compiled = torch.compile(doubled)
    try:
        compiled(torch.ones(8))
    except KeyboardInterrupt:
        print("interrupted")
    if CHOICE:
        torch._dynamo.reset()
    compiled(torch.ones(8))
    torch._dynamo.reset()
    compiled(torch.ones(8))


def bundled() -> None:
    """AOTAutograd's entry holds the graphs, and no other cache is asked."""
    torch._functorch.config.bundled_autograd_cache = True
    torch.compile(torch.nn.Linear(8, 8))(torch.ones(8)).sum().backward()


def fresh() -> None:
    """Another directory for a while, then the first one again."""
    from torch._inductor.utils import fresh_inductor_cache

    plain()
    torch._dynamo.reset()
    with fresh_inductor_cache():
        plain()
    torch._dynamo.reset()
    plain()


def fresh_failed() -> None:
    """What was compiled in the first directory fails to compile in another one."""
    from torch._inductor.graph import GraphLowering
    from torch._inductor.utils import fresh_inductor_cache

    torch.compile(trebled)(torch.ones(8))
    if not CHOICE:
        plain()
        return
    with (
        fresh_inductor_cache(),
        mock.patch.object(GraphLowering, "compile_to_module", None),
        suppress(Exception),
    ):
        plain()


@torch.no_grad()
def halved(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) / 2


@torch.inference_mode()
def squared(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * x


def wrapped() -> None:
    """Functions under decorators of torch, or without them, in a block of the same."""
    for function in (halved, squared):
        with torch.no_grad() if CHOICE else nullcontext():
            torch.compile(function.__wrapped__ if CHOICE else function)(torch.ones(8))


def growing() -> None:
    """A cache of keys and values that grows: CHOICE are those whose size is said to vary."""

    def attend(keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return torch.relu(keys + values)

    compiled = torch.compile(attend)
    for size in (4, 5, 6):
        tensors = {"keys": torch.ones(size, 8), "values": torch.ones(size, 8)}
        for name in filter(None, CHOICE.split(",")):
            torch._dynamo.mark_dynamic(tensors[name], 0)
        compiled(**tensors)


def compiled_autograd() -> None:
    """The backward pass is compiled from autograd's own graph, so that AOTAutograd's is not."""
    torch._dynamo.config.compiled_autograd = True
    size = int(CHOICE or 8)
    layer = torch.nn.Linear(size, size)

    @torch.compile
    def train(x: torch.Tensor) -> None:
        layer(x).relu().sum().backward()

    train(torch.ones(4, size))


def twice_before_backward() -> None:
    """One graph for two values of an argument, and two modules of torch's own."""

    @torch.compile
    def step(x: torch.Tensor, name: str) -> torch.Tensor:
        return torch.relu(x @ x) * {"one": 2, "other": 2}[name]

    weight = torch.ones(8, 8, requires_grad=True)
    (step(weight, "one") + step(weight, "other")).sum().backward()
    if CHOICE == "modules":
        torch.compile(torch.nn.Linear(8, 4))(torch.ones(8, 8))
        torch.compile(torch.nn.Embedding(8, 4))(torch.ones(2, 2, dtype=torch.int64))


def branch() -> None:
    """With another size first in each process, another side of the branch is the first to be compiled."""

    def sided(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 10:
            return x * 2
        return x.sin()

    compiled = torch.compile(sided)
    for size in map(int, CHOICE.split(",")):
        x = torch.ones(size, 8)
        torch._dynamo.mark_dynamic(x, 0)
        compiled(x)


def alone() -> None:
    """A process group of one rank."""
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)


def buckets() -> None:
    """DDP splits the graph into a part for each bucket of gradients, of so many MB; with 0, not at all."""
    alone()
    torch._dynamo.config.optimize_ddp = CHOICE != "0"

    class Layers(torch.nn.Sequential):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self:
                x = torch.relu(layer(x))
            return x

    model = torch.nn.parallel.DistributedDataParallel(
        Layers(*(torch.nn.Linear(512, 512) for _ in range(6))), bucket_cap_mb=float(CHOICE) or 25
    )
    torch.compile(model)(torch.ones(8, 512)).sum().backward()
    torch.distributed.destroy_process_group()


def mesh() -> None:
    """Tensor parallel over one rank, by a mesh of its own or a part of one with two dimensions."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    alone()
    one = init_device_mesh("cpu", (1,), mesh_dim_names=("tp",))
    part = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))["tp"]
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    torch._inductor.config.epilogue_fusion = CHOICE != "option"
    if CHOICE != "whole":
        parallelize_module(model, part if CHOICE == "part" else one, {"0": ColwiseParallel()})
    torch.compile(model)(torch.ones(16 if CHOICE == "more" else 4, 8))
    torch.distributed.destroy_process_group()


PROGRAMS: dict[str, Callable[[], None]] = {
    one.__name__: one
    for one in (
        plain, unpicklable, checkpointed, mega_saved, mega_loaded, aoti_saved, aoti_loaded, precompile_saved, precompile_loaded, limit, cell,
        setdefault, custom_op, quantised, interrupted, bundled, fresh, fresh_failed, wrapped, growing, compiled_autograd,
        branch, number, frozen, unbiased, buckets, mesh, twice_before_backward,
    )
}  # fmt: skip

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
    counted = {**counters["aot_autograd"], **counters["inductor"]}
    print(json.dumps({name: count for name, count in counted.items() if "_cache_" in name}))
