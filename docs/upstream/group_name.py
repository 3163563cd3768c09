"""The name of a process group stands in the graph: a group made in another order gives another key.

The argument says how many other groups were made before. The groups have the same ranks, and the code is the same but for the name.

Expected: the third process hits; a graph could name its group by its place among the groups that it uses.
Known as: names of process groups in graphs
"""

import sys

import torch
import torch.distributed as dist
from torch._dynamo.utils import counters
from torch.distributed._functional_collectives import all_reduce

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
groups = [dist.new_group([0]) for _ in range(1 + int(sys.argv[1]))]
torch.compile(lambda x: all_reduce(x * 2, "sum", groups[-1]))(torch.ones(8))
print("group", groups[-1].group_name)
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
dist.destroy_process_group()
