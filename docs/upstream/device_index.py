"""The index of a device is in every key: each rank of a node compiles the same graph for itself.

Expected: the second process hits, as the code does not depend on which of several equal GPUs it runs on.
Releases: 2.4 to 2.15 by their sources (pytorch #196153 leaves the index out under compile_on_one_rank)
Not run: it needs two GPUs. `python device_index.py 0`, then `python device_index.py 1` with the same directory.
"""

import sys

import torch
from torch._dynamo.utils import counters

torch.cuda.set_device(int(sys.argv[1]))
torch.compile(lambda x: x.sin() + 1)(torch.ones(8, device="cuda"))
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
