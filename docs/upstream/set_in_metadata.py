"""A set in the metadata of a tensor subclass gives another key in every process.

The set is pickled in its order of iteration, which changes with PYTHONHASHSEED, and by default in every process.

Expected: the second process hits. A sorted tuple does, one PYTHONHASHSEED for all, or a class that hashes itself.
Known as: a set in a tensor subclass
"""

import sys

import torch
from torch._dynamo.utils import counters


class Tagged(torch.Tensor):
    @staticmethod
    def __new__(cls, inner, tags):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner, tags):
        self.inner, self.tags = inner, tags

    def __tensor_flatten__(self):
        return ["inner"], self.tags

    @classmethod
    def __tensor_unflatten__(cls, inner, tags, size, stride):
        return cls(inner["inner"], tags)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        out = func(*[one.inner if isinstance(one, Tagged) else one for one in args], **(kwargs or {}))
        return cls(out, args[0].tags)


if "stable" in sys.argv:
    Tagged._stable_hash_for_caching = lambda self: "tagged"
tags = frozenset({"alpha", "beta", "gamma", "delta", "epsilon"})
torch.compile(lambda x: x * 2 + 1)(
    Tagged(torch.ones(4), tuple(sorted(tags)) if "sorted" in sys.argv else tags)
)
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
