"""A training graph whose backward has no operator is compiled anew in every process.

The gradient is handed on as it came. Inductor returns a plain function for such a graph, which has no cache key, and AOTAutograd stores no entry.

Expected: the second process hits, as it does where the backward has an operator.
Known as: a backward graph without an operator is never stored
"""

import sys

import torch
from torch._dynamo.utils import counters

a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad="operator" in sys.argv)
torch.compile(lambda a, b: a + b * 1.5)(a, b).sum().backward()
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
