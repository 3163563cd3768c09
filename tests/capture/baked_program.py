"""What the processes of test_preflight_against.py run: a snapshot of the process, then a few compiles. Needs torch."""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
import torch._functorch.config
import torch._inductor.config

import cachescope


def forward(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w) * 2.0


def grows(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * x + 1.0


def pretend_another_torch() -> None:
    """Give this process another key of torch's own sources, as an edited file would."""
    from torch._inductor import codecache

    other = bytes(reversed(codecache.torch_key()))
    codecache.torch_key = lambda: other


SWITCHES: dict[str, tuple[Any, str, Any]] = {
    "config": (torch._inductor.config, "epilogue_fusion", False),
    "donated": (torch._functorch.config, "donated_buffer", False),
    # What keeps this process from looking into a cache, though its keys are the same.
    "force_disabled": (torch._inductor.config, "force_disable_caches", True),
    "fx_off": (torch._inductor.config, "fx_graph_cache", False),
    "aot_off": (torch._functorch.config, "enable_autograd_cache", False),
    "precompile": (torch._dynamo.config, "caching_precompile", True),
    "custom_pass": (torch._inductor.config, "post_grad_custom_post_pass", lambda graph: None),
}
VARIANTS = ("same", "one", "torch_key", *SWITCHES)


def compile_one() -> None:
    """One compile with options of its own, as most programs have it; torch has a kernel, and g++ rests."""
    torch.compile(torch.mm, mode="max-autotune-no-cudagraphs")(torch.ones(8, 16), torch.ones(16, 16))


def compile_all() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(8, 16), torch.randn(16, 16)
    torch.compile(forward)(x, w)
    torch.compile(forward, options={"max_fusion_size": 32})(x, w * 1.0)
    for size in (5, 7, 9):
        torch.compile(grows)(torch.randn(size, 4))
    leaf = w.clone().requires_grad_()
    torch.compile(forward)(x, leaf).sum().backward()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("snapshot", type=Path)
    parser.add_argument("variant", choices=VARIANTS)
    arguments = parser.parse_args()
    if arguments.variant == "torch_key":
        pretend_another_torch()
    elif arguments.variant in SWITCHES:
        setattr(*SWITCHES[arguments.variant])
    arguments.snapshot.write_text(json.dumps(cachescope.capture()))
    if arguments.variant == "one":
        compile_one()
    else:
        compile_all()
