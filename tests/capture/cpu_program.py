"""What the processes of tests/wild/test_predicted_safety.py run: a few compiles for the CPU. Needs torch."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import torch
from torch._dynamo.utils import counters

import cachescope

Function = Callable[[torch.Tensor], torch.Tensor]


def waves(x: torch.Tensor) -> torch.Tensor:
    return x.cos() + x.sin()


def total(x: torch.Tensor) -> torch.Tensor:
    return x.cos().sum()


def product(x: torch.Tensor) -> torch.Tensor:
    """A call of a library, which holds no vectors of its own."""
    return x @ x


# What needs no vectors comes first: the process may not live through the others.
FUNCTIONS: dict[str, Function] = {"product": product, "waves": waves, "total": total}


def compiled(name: str) -> dict[str, object]:
    """Compile and call one function; what torch counted, and whether it is right."""
    torch._dynamo.reset()
    counters.clear()
    x = torch.linspace(0, 1, 64 * 64).reshape(64, 64)
    function = FUNCTIONS[name]
    try:
        found = torch.compile(function)(x)
        is_right = torch.allclose(found, function(x), rtol=1e-4)
    except Exception:
        # A kernel of another CPU may not even compile.
        is_right = False
    return {
        "is_right": bool(is_right),
        "fxgraph": counters["inductor"]["fxgraph_cache_hit"],
        "aotautograd": counters["aot_autograd"]["autograd_cache_hit"],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--load", type=Path, help="a mega-cache file to load first")
    parser.add_argument("--save", type=Path, help="a mega-cache file to write at the end")
    arguments = parser.parse_args()
    arguments.folder.mkdir(exist_ok=True)
    (arguments.folder / "host.json").write_text(json.dumps(cachescope.capture()))
    if arguments.load:
        torch.compiler.load_cache_artifacts(arguments.load.read_bytes())
    results = {}
    for name in FUNCTIONS:
        results[name] = compiled(name)
        (arguments.folder / "results.json").write_text(json.dumps(results))
    if arguments.save:
        blob = torch.compiler.save_cache_artifacts()
        arguments.save.write_bytes(blob[0])
