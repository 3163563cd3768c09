"""Let torch.compile itself write Triton kernels, their best configurations and its bundles, without a GPU. Needs triton.

Inductor generates Triton code for tensors on the CPU (`cpu_backend`), Triton compiles it for sm_90, and torch's own
`TritonBundler` and `AutotuneCache` store what they store on a GPU. Three things stand in for the GPU: a driver that names
the target, the device in the properties of each kernel, and the choice of the configuration, which is the last instead of
the fastest, for nothing runs. Everything on disk is written by torch and Triton. Run by record_directories.py.
"""

# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import argparse
import inspect
import json
import platform
from pathlib import Path
from typing import Any

import torch
import triton
from directory_programs import private
from triton.backends.compiler import GPUTarget

TARGET = GPUTarget("cuda", 90, 32)
TIME_TAKEN_NS = 5_000_000

heuristics = private("_inductor.runtime.triton_heuristics")
bundler = private("_inductor.triton_bundler").TritonBundler
winners: list[dict[str, Any]] = []


class Driver:
    """What torch and Triton ask of the active driver while they compile."""

    def get_current_target(self) -> GPUTarget:
        return TARGET

    def get_current_device(self) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        return torch.device("cpu")


def on_a_gpu(make: Any) -> Any:
    """Kernels made for the CPU say that they are for the first GPU, which is also where their directory goes."""

    def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807
        meta = named["triton_meta"]
        there = {"type": "cuda", "index": 0, "cc": 90, "multi_processor_count": 132, "warp_size": 32}
        known = {name: value for name, value in there.items() if name in meta["device"]._fields}
        make(self, *args, **{**named, "triton_meta": {**meta, "device": meta["device"]._replace(**known)}})

    return __init__


def compile_and_choose(compile_all: Any) -> Any:
    """Compile every configuration as torch's workers do, then save the last as the best one."""

    def precompile(self: Any, *args: Any, **named: Any) -> None:
        configs = list(self.configs)
        compile_all(self, warm_cache_only=True)
        key = bundler._entries[-1].kernel_hash
        saved = {}
        if self.save_cache_hook is not None:
            if "triton_cache_hash" in inspect.signature(self.save_cache_hook).parameters:
                saved["triton_cache_hash"] = key
            self.save_cache_hook(configs[-1], TIME_TAKEN_NS, **saved)
        winners.append(
            {
                "kernel_file": self.filename,
                "best_config": self.save_cache_hook and self.save_cache_hook.__self__.local_cache[1],
                "configs": len(configs),
                "compiled": [entry.kernel_hash for entry in bundler._entries[-len(configs) :]],
                "chosen": key,
            }
        )

    return precompile


def set_up() -> None:
    triton.runtime.driver.set_active(Driver())
    config = private("_inductor.config")
    config.cpu_backend, config.compile_threads = "triton", 1
    config.coordinate_descent_tuning = config.bundle_triton_into_fx_graph_cache = True
    helpers = private("_inductor.runtime.triton_helpers")
    helpers.set_driver_to_cpu = helpers.set_driver_to_gpu = lambda: None
    autotuner = heuristics.CachingAutotuner
    autotuner.__init__ = on_a_gpu(autotuner.__init__)
    autotuner.precompile = compile_and_choose(autotuner.precompile)
    autotuner.run = lambda self, *args, **named: None


def normalised(x: Any, w: Any) -> Any:
    return torch.softmax(torch.relu(x) * 2 + w, dim=1)


def two_kernels(x: Any, w: Any) -> Any:
    return torch.sin(x @ w.t()) + 1, (x * w).sum(dim=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, required=True)
    arguments = parser.parse_args()
    set_up()
    torch.manual_seed(0)
    x, w = torch.randn(8, 16), torch.randn(8, 16)
    for function in (normalised, two_kernels):
        torch.compile(function, dynamic=False)(x, w)
    truth: dict[str, Any] = {
        "kernels": winners,
        "torch_key": private("_inductor.codecache").torch_key().hex(),
        "cache_key_tag": private("compiler.config").cache_key_tag,
    }
    report = {
        "torch_version": torch.__version__,
        "triton_version": triton.__version__,
        "python_version": platform.python_version(),
        "truth": truth,
    }
    arguments.report.write_text(json.dumps(report, indent=1, default=repr) + "\n")


if __name__ == "__main__":
    main()
