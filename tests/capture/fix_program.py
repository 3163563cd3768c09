"""A program with one compiled function, forward and backward; what is changed is in variables.

``CHANGE`` is run first, ``APPLY`` is what `cachescope fix` said, run before the first compile; ``OPTIONS`` are those of
``torch.compile``; ``DTYPE`` is that of its data, and ``CAST`` what they are brought to. What torch counted is written to the file that is named on the command line.
"""

import json
import os
import sys
from pathlib import Path

import torch
from torch._dynamo.utils import counters


def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.relu(x @ w).sum()


exec(os.environ.get("CHANGE", ""))
exec(os.environ.get("APPLY", ""))
compiled = torch.compile(scaled, options=json.loads(os.environ.get("OPTIONS", "null")))
dtype = getattr(torch, os.environ.get("DTYPE", "float32"))
x, w = (torch.ones(*size, dtype=dtype) for size in ((16, 8), (8, 4)))
if "CAST" in os.environ:
    x, w = (one.to(getattr(torch, os.environ["CAST"])) for one in (x, w))
compiled(x, w.requires_grad_()).backward()
if len(sys.argv) > 1:
    told = {name: dict(counters[name]) for name in ("inductor", "aot_autograd")}
    Path(sys.argv[1]).write_text(json.dumps(told))
