"""Records errors that bypass AOTAutograd's cache: ``python tests/data/record_errors.py PYTHON`` for an interpreter with torch.

Writes ``tests/data/errors/VERSION.tar.xz`` with two processes, ``text`` and ``none``, in which the hash of a user's tensor fails with an error
that has a text, and with one that has none. Each has the trace, and what torch itself says: ``lenient.json`` its counter of bypasses,
``strict.json`` the error that it raises where the cache is strict.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from packing import pack_each

_PROGRAM = """
import json, sys
import torch
from torch._dynamo.utils import counters
from torch.utils._pytree import tree_map_only

ERRORS = {"text": KeyError("scale"), "none": AssertionError()}

class Scaled(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Scaled(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args, kwargs):
        args, kwargs = tree_map_only(cls, lambda one: one.inner, (args, kwargs or {}))
        return tree_map_only(torch.Tensor, Scaled, function(*args, **kwargs))

    def _stable_hash_for_caching(self):
        raise ERRORS[sys.argv[1]]

@torch.compile
def scaled(x):
    return x * 2

torch._functorch.config.strict_autograd_cache = sys.argv[2] == "strict"
raised = None
with torch.no_grad():
    try:
        scaled(Scaled(torch.ones(4)))
    except torch._dynamo.exc.BackendCompilerFailed as error:
        raised = type(error.inner_exception).__name__
print(json.dumps({"bypasses": counters["aot_autograd"]["autograd_cache_bypass"], "raised": raised}))
"""
WAYS = ("text", "none")


def record_into(folder: Path, python: str = sys.executable) -> Path:
    """Run the program in each way, with the trace, and once more with a strict cache."""
    program = folder / "program.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    for way in WAYS:
        made = folder / way
        made.mkdir()
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
        for how, trace in (("lenient", {"TORCH_TRACE": str(made / "trace")}), ("strict", {})):
            command = [python, str(program), way, how]
            printed = subprocess.run(
                command, check=True, env=environment | trace, stdout=subprocess.PIPE, timeout=300
            )
            (made / f"{how}.json").write_bytes(printed.stdout)
    return folder


if __name__ == "__main__":
    pack_each("errors", record_into, {"cache", "program.py"})
