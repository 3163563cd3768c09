"""Entries with static autotuners can only be loaded by whoever lets a pickle call getattr.

The pickle of a TritonBundle names `builtins.getattr`, `inspect.Signature` and its parts, and `__globals__`, `__module__`, `__qualname__` of jitted functions. A
loader that admits nothing but torch's own classes has to refuse every entry made on a GPU.

Expected: an entry holds plain values, from which torch makes its functions.
Releases: 2.8 and later, seen in public caches of 2.8
Not run: it needs a GPU.
"""

import os
import pickletools
from pathlib import Path

import torch

torch.compile(lambda x: x.softmax(-1))(torch.ones(64, 64, device="cuda"))
for entry in Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], "fxgraph").glob("*/*/*"):
    words = {value for _, value, _ in pickletools.genops(entry.read_bytes()) if isinstance(value, str)}
    print(sorted(words & {"getattr", "Signature", "__globals__", "__qualname__"}))
