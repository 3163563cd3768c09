"""A graph with gradients whose backward is never run is compiled anew in every process.

The entry is written with the backward graph, at the first backward(). Who forgets torch.no_grad() around inference stores nothing, and no message
says so.

Expected: the forward graph is stored, or a message says why nothing was.
Known as: a training graph whose backward is never run
"""

import sys

import torch
from torch._dynamo.utils import counters

x = torch.ones(2, requires_grad=True)
with torch.set_grad_enabled("no_grad" not in sys.argv):
    torch.compile(lambda x: (x * x).sin())(x)
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
