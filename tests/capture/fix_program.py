"""A program with one compiled function, forward and backward; what is changed is in variables.

``CHANGE`` is run first, ``APPLY`` is what `cachescope fix` said, run before the first compile; ``OPTIONS`` are those of
``torch.compile``. What torch counted is written to the file that is named on the command line.
"""

from __future__ import annotations

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
compiled(torch.ones(16, 8), torch.ones(8, 4, requires_grad=True)).backward()
if len(sys.argv) > 1:
    told = {name: dict(counters[name]) for name in ("inductor", "aot_autograd")}
    Path(sys.argv[1]).write_text(json.dumps(told))
