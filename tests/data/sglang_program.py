"""Compiles a small model with SGLang's own backend on a CPU: run by `record_sglang.py`, with the unpacked wheel on the path.

``SGLangBackend``, its ``CompilerManager``, ``InductorAdaptor`` and ``CUDAPiecewiseBackend`` are SGLang's. Stood in for: packages that
SGLang imports and this never calls (STUBS), ``weak_ref_tensor``, which needs a GPU, and the group of one process that ``torch.distributed`` needs. There are no
CUDA graphs: no size is to be captured.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import sys
from unittest.mock import MagicMock

import torch
import torch._dynamo
import torch._inductor.compile_fx
from torch._inductor.codecache import CacheBase, torch_key
from torch.utils._triton import has_triton, has_triton_package

# Before Triton is stood in for: torch is to see that there is none.
assert not has_triton_package()
assert not has_triton()
STUBS = set(os.environ["STUBS"].split(","))


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in STUBS:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__spec__, module.__path__, module.__name__ = spec, [], spec.name
        return module

    def exec_module(self, module):
        pass


sys.meta_path.append(Stubs())
# It refuses to be imported without a GPU; only CUDA graphs use it.
WEAK = "sglang.srt.model_executor.runner_backend_utils.weak_ref_tensor"
sys.modules[WEAK] = MagicMock(name=WEAK)
from sglang.srt.compilation.backend import SGLangBackend  # noqa: E402
from sglang.srt.compilation.compilation_config import CompilationConfig  # noqa: E402

sys.meta_path.pop()
for name in [one for one in sys.modules if one.partition(".")[0] in STUBS]:
    del sys.modules[name]


def layer(x, w):
    for _ in range(int(os.environ.get("LAYERS", "1"))):
        x = torch.relu(x @ w)
    return torch.sigmoid(x) * 2


def main() -> None:
    torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:29511", rank=0, world_size=1)
    config = CompilationConfig([], compiler=sys.argv[1])
    config.add_split_op("aten.sigmoid.default")
    backend = SGLangBackend(config, object())
    x = torch.ones(4, 8)
    torch._dynamo.mark_dynamic(x, 0)
    with torch.no_grad():
        torch.compile(layer, backend=backend, fullgraph=True)(x, torch.ones(8, 8))
    manager = backend.compiler_manager
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                "system": CacheBase.get_system(),
                "torch_key": torch_key().hex(),
                "name": manager.compute_hash(),
                "folder": manager.cache_dir,
                "handles": [[list(key), handle] for key, handle in manager.cache.items()],
            }
        )
    )
    torch.distributed.destroy_process_group()


main()
