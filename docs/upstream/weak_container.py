"""A weak container in the metadata of a tensor subclass bypasses the cache.

The key is a pickle of the inputs, and WeakValueDictionary cannot be pickled. A class that hashes itself has a key, but its entry holds the container
all the same, and is not saved.

Expected: metadata that no compiled code depends on can be left out of the key without a bypass of the whole graph.
Known as: a weak container in a tensor subclass
"""

import sys
import weakref

import torch
from torch._dynamo.utils import counters


class Tagged(torch.Tensor):
    @staticmethod
    def __new__(cls, inner, tags):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner, tags):
        self.inner, self.tags = inner, tags

    def __tensor_flatten__(self):
        return ["inner"], {"tags": self.tags}

    @classmethod
    def __tensor_unflatten__(cls, inner, meta, size, stride):
        return cls(inner["inner"], meta["tags"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        out = func(*[one.inner if isinstance(one, Tagged) else one for one in args], **(kwargs or {}))
        return cls(out, args[0].tags)


if "stable" in sys.argv:
    Tagged._stable_hash_for_caching = lambda self: "tagged"
tags = None if "without" in sys.argv else weakref.WeakValueDictionary()
torch.compile(lambda x: x * 2 + 1)(Tagged(torch.ones(4), tags))
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
