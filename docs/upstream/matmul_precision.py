"""Setting the precision of matrix products to its default changes every key.

torch.set_float32_matmul_precision("highest") is what torch reports without the call as well. The key holds the inner state, which the call turns from
"none" to "ieee", also where no product runs on a GPU.

Expected: the second process hits.
Releases: 2.10 to 2.15 (2.6 and 2.8 hit)
"""

import sys

import torch
from torch._dynamo.utils import counters

if "set" in sys.argv:
    torch.set_float32_matmul_precision("highest")
print("precision", torch.get_float32_matmul_precision())
torch.compile(lambda x: x.sin())(torch.ones(8))
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
