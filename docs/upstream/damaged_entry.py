"""A damaged entry is never removed.

It is skipped with a warning, and a sound entry is written beside it. Each later process that comes to the damaged file first reads it and warns again.

Expected: what cannot be unpickled is removed, or replaced by the sound entry.
Known as: a damaged entry is never removed
"""

import os
import sys
from pathlib import Path

import torch
from torch._dynamo.utils import counters

entries = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], "fxgraph")
if "damage" in sys.argv:
    for entry in entries.glob("*/*/*"):
        entry.write_bytes(entry.read_bytes()[:100])
torch.compile(lambda x: x.sin() + 1)(torch.ones(8))
print(
    "entries of the key:",
    sorted("sound" if one.stat().st_size > 100 else "damaged" for one in entries.glob("*/*/*")),
)
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
