"""Compiles with torch's remote caches, and lets torch's own classes store results of autotuning.

Run by `record_kind.py`. A CPU autotunes no Triton kernel, so the two caches of its results are called directly, with a
configuration that is made up; everything else is what ``torch.compile`` does by itself.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch._inductor.runtime import autotune_cache
from torch._inductor.runtime.autotune_cache import AutotuneCache


def layer(x, w):
    return torch.relu(x @ w).sum()


def store_autotuned() -> None:
    """Store the best configuration of one kernel, and the bundle of a graph with one kernel."""
    meta = {"backend_hash": "0" * 64, "autotune_remote_cache": True, "bundled_autotune_remote_cache": True}
    best = SimpleNamespace(kwargs={"XBLOCK": 128}, num_warps=4, num_stages=1)
    cache = AutotuneCache("1" * 64)
    cache._setup_remote_autotune_cache(meta, "2" * 64)
    cache.save(best, 5_000_000, triton_cache_hash="3" * 64)
    bundle_cache = autotune_cache.create_cache(
        "bundled-autotune-v1", False, "FbRemoteBundledAutotuneCache", "RemoteBundledAutotuneCache"
    )
    bundle = autotune_cache._AutotuneCacheBundlerImpl("4" * 64, bundle_cache)
    stored = {"XBLOCK": 128, "num_warps": 4, "num_stages": 1, "configs_hash": "1" * 64}
    bundle.put("5" * 64 + ".best_config", stored)
    bundle.end_compile()


def main() -> None:
    compiled = torch.compile(layer)
    weight = torch.ones(8, 8, requires_grad=True)
    for rows in (4, 5):
        compiled(torch.ones(rows, 8), weight).backward()
    store_autotuned()


main()
