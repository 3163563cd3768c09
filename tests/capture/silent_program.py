"""Compiles one function after doing what a program may do to its logs; run by test_silent_programs.py."""

import logging.config
import os
import subprocess
import sys

kind = sys.argv[1]
if kind == "own TORCH_LOGS":
    os.environ["TORCH_LOGS"] = "+dynamo"
if kind == "own TORCH_TRACE":
    del os.environ["TORCH_TRACE"]
if kind in ("child", "compiles too"):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TORCH_")}
    subprocess.run([sys.executable, __file__, "plain"], env=kept, check=True)
if kind == "child":
    sys.exit()

import torch  # noqa: E402
import torch._inductor.config  # noqa: E402

# A minute of compiling that no test here needs.
torch._inductor.config.cpp_cache_precompile_headers = False

if kind == "dictConfig":
    logging.config.dictConfig({"version": 1})
if kind == "disable":
    logging.disable(logging.INFO)


def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


def trebled(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 3


if kind != "nothing compiled":
    torch.compile(trebled if kind == "compiles too" else doubled, dynamic=False)(torch.ones(8))
