"""Compiles six graphs; a bundle is saved after the first ones, and another at the end. Run by `record_kind.py`.

``make FOLDER`` compiles all of it into an empty cache and writes ``early.bin`` and ``late.bin``. ``load FOLDER BUNDLE`` does the
same after it loaded one of these, and saves what torch gives then. What torch says of each bundle goes to ``STEP.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch._dynamo.utils import counters

torch.compiler.config.job_id = "covered"


def difference(x, y):
    return torch.sigmoid(x - y) * 2


def softmax_rows(x, y):
    return torch.softmax(x @ y, dim=-1)


def branch_on_size(x, w):
    # Both branches are the same graph, so the key is the same and only the guard on the size differs.
    if x.shape[0] > 10:
        return torch.relu(x @ w)
    return torch.relu(x @ w)


def train():
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    torch.compile(model)(torch.ones(2, 8)).sum().backward()


def branch(rows):
    x = torch.ones(rows, 8)
    torch._dynamo.mark_dynamic(x, 0)
    torch.compile(branch_on_size)(x, torch.ones(8, 8))


def before():
    torch.compile(difference)(torch.ones(4, 4), torch.ones(4, 4))
    train()
    branch(20)


def after():
    torch.compile(softmax_rows)(torch.ones(4, 4), torch.ones(4, 4))
    branch(5)


def save(path):
    data, info = torch.compiler.save_cache_artifacts()
    path.write_bytes(data)
    return {kind: sorted(keys) for kind, keys in info.artifacts.items()}


def main() -> None:
    step, folder, *bundle = sys.argv[1:]
    out = Path(folder)
    said = {"torch": torch.__version__}
    if bundle:
        loaded = torch.compiler.load_cache_artifacts((out / bundle[0]).read_bytes())
        said["loaded"] = {kind: sorted(keys) for kind, keys in loaded.artifacts.items()}
        name = f"{step}_{bundle[0].removesuffix('.bin')}"
        before()
        after()
        said["saved"] = save(out / f"{name}.bin")
    else:
        name = step
        before()
        said["early"] = save(out / "early.bin")
        after()
        said["late"] = save(out / "late.bin")
    said["counters"] = {group: dict(found) for group, found in counters.items()}
    (out / f"{name}.json").write_text(json.dumps(said, indent=1))


main()
