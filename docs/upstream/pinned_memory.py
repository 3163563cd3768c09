"""Pinned memory is in no key: constants that are pinned share an entry with those that are not.

Expected: the second process returns pinned memory, or misses.
Known as: pinned memory is in no key
Not run: memory is pinned for a GPU. `python pinned_memory.py`, then `python pinned_memory.py pinned` with the same directory.
"""

import sys

import torch
from torch._dynamo.utils import counters

constant = torch.ones(8)
if "pinned" in sys.argv:
    constant = constant.pin_memory()
print("pinned", torch.compile(lambda x: (constant, x + constant))(torch.ones(8))[0].is_pinned())
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
