"""The backward of a custom operator is in no key: after an edit the old gradient is computed.

The argument stands for the edit.

Expected: the second process computes 3.0, or misses.
Known as: the backward of a custom operator is in no key
"""

import sys

import torch
from torch._dynamo.utils import counters

factor = float(sys.argv[1])


@torch.library.custom_op("upstream::same", mutates_args=())
def same(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


same.register_fake(torch.empty_like)
same.register_autograd(lambda ctx, grad: factor * grad)
x = torch.ones(1, requires_grad=True)
torch.compile(torch.ops.upstream.same)(x).sum().backward()
print("gradient", x.grad.item())
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
