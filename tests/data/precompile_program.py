"""Lets torch write a precompile package (``dynamo/<id>/entry``); what torch itself unpickles of it goes to ``torchs.json``.

Run by `record_kind.py` with the folder to write to.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import torch

OUT = Path(sys.argv[1]).resolve()


def halves(x):
    y = torch.relu(x) + 1
    torch._dynamo.graph_break()
    return y * 2


def told(entry: Path) -> dict[str, object]:
    """What torch reads from a package."""
    package = pickle.loads(entry.read_bytes())
    dynamo, system = package.dynamo, package.dynamo.system_info
    return {
        "function": dynamo.fn_name,
        "line": int(dynamo.fn_first_lineno),
        "device": dynamo.device_type,
        "backends": len(package.backends),
        "torch": str(system.torch_version),
        "python": system.python_version,
    }


def main() -> None:
    torch.manual_seed(0)
    torch.compile(halves)(torch.ones(4, 4))
    torch.compiler.save_cache_artifacts()
    (OUT / "torchs.json").write_text(
        json.dumps({entry.parent.name: told(entry) for entry in (OUT / "cache").glob("dynamo/*/entry")})
    )


main()
