"""What a custom operator declares of its result is in no key: after an edit the old code stops.

The edit changes the strides of the result, in the operator and in its fake alike. Graph and inputs are the same, so the entry is found, and its
code asserts the old strides.

Expected: the second process computes the result, or misses.
Known as: the schema and fake of a custom operator are in no key
"""

import sys

import torch
from torch._dynamo.utils import counters

is_edited = "edited" in sys.argv


@torch.library.custom_op("upstream::laid_out", mutates_args=())
def laid_out(x: torch.Tensor) -> torch.Tensor:
    return x.t().clone(memory_format=torch.contiguous_format).t() if is_edited else x.clone()


@laid_out.register_fake
def _(x):
    return torch.empty_like(x).t() if is_edited else torch.empty_like(x)


x = torch.arange(16.0).reshape(4, 4)
try:
    print("right", torch.equal(torch.compile(lambda x: torch.ops.upstream.laid_out(x) * 2)(x), x * 2))
except AssertionError as error:
    print("AssertionError", str(error).splitlines()[0])
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
