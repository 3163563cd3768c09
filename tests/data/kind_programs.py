"""The texts of small programs that record_kind.py runs."""

from __future__ import annotations

AHEAD_OF_TIME = """
import sys
import torch
from torch._inductor import aoti_compile_and_package

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

x = torch.ones(2, 4)
with torch.no_grad():
    exported = torch.export.export(Model(), (x,))
    if sys.argv[1] != "export":
        aoti_compile_and_package(exported, package_path=sys.argv[2])
    if sys.argv[1] == "both":
        torch.compile(Model())(x)
"""
AUDITED = """
import os, sys, torch
if "bundled" in sys.argv:
    import torch._functorch.config
    torch._functorch.config.bundled_autograd_cache = True
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
compiled, held = torch.compile(model), torch.randn(8, 8)
for size in (4, 6):
    compiled(torch.randn(size, 8)).sum().backward()
torch.compile(lambda x: ((x @ held).sum(0), x[::2].t()))(torch.randn(8, 8))
growing = torch.compile(lambda x: (x.view(-1, 2).cumsum(0), x.shape[0] * 2), dynamic=True)
growing(torch.randn(6)), growing(torch.randn(10))
with open(os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "mega_cache.bin"), "wb") as file:
    file.write(torch.compiler.save_cache_artifacts()[0])
print(torch.__version__.partition("+")[0])
"""
CANDIDATES = """
import sys
import torch

@torch.compile
def branches(x):
    if x.shape[0] > 1000:
        return x * 5
    if x.shape[0] > 100:
        return x * 5
    if x.shape[0] > 10:
        return x * 5
    return x * 5

x = torch.ones(int(sys.argv[1]))
torch._dynamo.mark_dynamic(x, 0)
branches(x)
"""
COLLECTIVES = """
import sys
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives

dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=int(sys.argv[3]), world_size=2)
are_apart = sys.argv[1] != "alike"

@torch.compile
def step(x):
    x = collectives.all_reduce(x * 2, "sum", dist.group.WORLD)
    if are_apart and dist.get_rank() == 0:
        x = collectives.all_reduce(x + 1, "sum", dist.group.WORLD)
    return x.relu()

@torch.compile
def gathered(x):
    y = collectives.all_gather_tensor(x, 0, dist.group.WORLD)
    return collectives.all_reduce(y * 3, "sum", dist.group.WORLD) + 1

@torch.compile
def alone(x):
    return x.sin()

x = torch.ones(4)
step(x)
if are_apart and dist.get_rank() == 1:
    dist.all_reduce(x)
gathered(x)
alone(x)
dist.barrier()
dist.destroy_process_group()
"""
OUTCOMES = """
import sys
import torch

torch.set_num_threads(1)
torch._inductor.config.epilogue_fusion = sys.argv[1] != "option"
layer = torch.nn.Linear(8, 8)
step = torch.compile(lambda x: layer(x).relu().sum())
for rows in (2, 3):
    step(torch.ones(rows, 8)).backward()
with torch.no_grad():
    torch.compile(lambda x: x.sin() * 2)(torch.ones(8))
"""

ERRORS = """
import json, sys
import torch
from torch._dynamo.utils import counters
from torch.utils._pytree import tree_map_only

ERRORS = {"text": KeyError("scale"), "none": AssertionError()}

class Scaled(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Scaled(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args, kwargs):
        args, kwargs = tree_map_only(cls, lambda one: one.inner, (args, kwargs or {}))
        return tree_map_only(torch.Tensor, Scaled, function(*args, **kwargs))

    def _stable_hash_for_caching(self):
        raise ERRORS[sys.argv[1]]

@torch.compile
def scaled(x):
    return x * 2

torch._functorch.config.strict_autograd_cache = sys.argv[2] == "strict"
raised = None
with torch.no_grad():
    try:
        scaled(Scaled(torch.ones(4)))
    except torch._dynamo.exc.BackendCompilerFailed as error:
        raised = type(error.inner_exception).__name__
print(json.dumps({"bypasses": counters["aot_autograd"]["autograd_cache_bypass"], "raised": raised}))
"""
THREADS = """
import json
import sys
import threading

import torch
from torch._dynamo.callback import callback_handler
from torch._dynamo.utils import get_compilation_metrics

compiled = []
second_compiles = threading.Event()


def note(args):
    compiled.append([args.compile_id, threading.current_thread().name])
    if threading.current_thread().name == "second":
        second_compiles.set()


callback_handler.register_start_callback(note)


def f(x):
    return (x.sin() + 1).relu().sum()


def g(x):
    for _ in range(8):
        x = (x.cos() @ x).tanh()
    return x.sum()


# The backward graph of the first thread has to wait until the second has compiled: torch has one lock for both.
loss = torch.compile(f)(torch.randn(8, 8, requires_grad=True))


def first():
    second_compiles.wait()
    loss.backward()


def second():
    torch.compile(g)(torch.randn(16, 16, requires_grad=True)).backward()


made = [threading.Thread(target=first, name="first"), threading.Thread(target=second, name="second")]
for thread in made:
    thread.start()
for thread in made:
    thread.join()

measured = [
    {
        "compile_id": one.compile_id,
        "is_forward": one.is_forward,
        "duration_us": one.duration_us,
        "start_time_us": one.start_time_us,
        "end_time_us": one.end_time_us,
    }
    for one in get_compilation_metrics()
]
with open(sys.argv[1], "w") as file:
    json.dump({"compiles": measured, "threads": compiled}, file, indent=1)
"""

# Nothing of C++ is compiled, which no key depends on.
CALLS = """
import sys

import torch

torch._inductor.config.fallback_by_default = True
way = sys.argv[1]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)
        self.more = 4 if way == "number" else 3

    def forward(self, x):
        y = self.fc(x).view(x.shape[0], 2, 4) + self.more
        return y.softmax(-1).to(x.dtype)


dtype = torch.bfloat16 if way == "dtype" else torch.float32
x = torch.ones(6 if way in ("batch", "edited") else 5, 8, dtype=dtype)
with torch.autocast("cpu", torch.bfloat16, enabled=way == "autocast"), torch.no_grad():
    torch.compile(Net().to(dtype))(x)
"""
