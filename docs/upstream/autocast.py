"""Autocast in the compiled function bypasses AOTAutograd's cache.

Dynamo puts `_enter_autocast` and `_exit_autocast` into the graph, and these are no functions that the cache allows.

Expected: the second process hits, as it does where torch.autocast is entered outside of the compiled function.
Known as: autocast in a compiled function
"""

import sys

import torch
from torch._dynamo.utils import counters


def product(x):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled="outside" not in sys.argv):
        return x @ x


def plain(x):
    return x @ x


with torch.autocast("cpu", dtype=torch.bfloat16, enabled="outside" in sys.argv):
    torch.compile(plain if "outside" in sys.argv else product)(torch.ones(8, 8))
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
