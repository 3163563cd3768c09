"""Records guard misses of keys with several entries: ``python tests/data/record_candidates.py PYTHON`` for an interpreter with torch.

Writes ``tests/data/candidates/VERSION.tar.xz``: one process after another calls a function with a size of another branch. ``trace`` has
their traces, ``entries.json`` how many entries lay under each key before each of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from packing import pack_each

_PROGRAM = """
import sys
import torch

@torch.compile
def branches(x):
    if x.shape[0] > 1000:
        return x * 5
    if x.shape[0] > 100:
        return x * 5
    if x.shape[0] > 10:
        return x * 5
    return x * 5

x = torch.ones(int(sys.argv[1]))
torch._dynamo.mark_dynamic(x, 0)
branches(x)
"""
SIZES = (20, 200, 2000, 5)


def record_into(folder: Path, python: str = sys.executable) -> Path:
    """Run the program with each size, on one cache."""
    program, cache = folder / "candidates.py", folder / "cache"
    program.write_text(_PROGRAM, encoding="utf-8")
    environment = os.environ | {
        "TORCH_TRACE": str(folder / "trace"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
    }
    entries = []
    for size in SIZES:
        files = [*cache.glob("fxgraph/*/*/*"), *cache.glob("aotautograd/*/*")]
        entries.append(Counter(path.parent.name for path in files if not path.name.startswith(".")))
        subprocess.run([python, str(program), str(size)], check=True, env=environment, timeout=300)
    (folder / "entries.json").write_text(json.dumps(entries))
    return folder


if __name__ == "__main__":
    pack_each("candidates", record_into, {"cache", "candidates.py"})
