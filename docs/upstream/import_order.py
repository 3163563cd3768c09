"""The order of imports is in keys: multiprocessing before torch, or torch before it.

pickle looks a memory format, which names no module, up in sys.modules, and names the first one that has it. That is `torch._utils`, or the main
program, which multiprocessing adds as `__mp_main__`. Each process that multiprocessing spawns imports it before torch.

Expected: all but the first hit; `FxGraphCachePickler` could reduce a memory format to its name.
Known as: the order of imports is in keys
"""

import sys

if sys.argv[1] == "multiprocessing":
    import multiprocessing  # noqa: F401

import torch
from torch._dynamo.utils import counters

torch.compile(lambda x: x * 2)(torch.ones(8))
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
