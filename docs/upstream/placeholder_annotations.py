"""The key of AOTAutograd depends on how Dynamo annotates a placeholder: FakeTensor or Parameter.

Under FakeTensorMode, where one would compute keys without weights, the graph is the same and so is its FX key; but the placeholders of the parameters
are annotated otherwise, which is pickled into the AOTAutograd key.

Expected: AOTAutograd's key is the same too: its entry is found. (That a fake tensor cannot be computed with is meant.)
Releases: tried with 2.13
"""

import contextlib
import sys

import torch
from torch._dynamo.utils import counters
from torch._subclasses import FakeTensorMode

with FakeTensorMode() if "fake" in sys.argv else contextlib.nullcontext():
    layer, x = torch.nn.Linear(8, 8), torch.ones(8, 8)
with torch.no_grad(), contextlib.suppress(AssertionError):
    torch.compile(layer)(x)
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
