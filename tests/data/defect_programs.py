"""Programs that show known defects and limits of torch's caches: cachescope/catalogue/defects.json names them.

``python defect_programs.py NAME`` runs one, and prints what AOTAutograd's cache counted and what the program computed, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.utils import counters

CHOICE = os.environ.get("CHOICE", "")


def autocast() -> float:
    """Autocast in the compiled function, or, as the advice says, outside of it."""

    def product(x: torch.Tensor) -> torch.Tensor:
        if CHOICE == "outside":
            return x @ x
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ x

    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=CHOICE == "outside"):
        return float(torch.compile(product)(torch.ones(8, 8)).sum())


class Tagged(torch.Tensor):
    """A tensor subclass with metadata of any kind."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor, tags: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner: torch.Tensor, tags: Any) -> None:
        self.inner, self.tags = inner, tags

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        # A trace prints its inputs while they have no values.
        return "Tagged()"

    def __tensor_flatten__(self) -> tuple[list[str], dict[str, Any]]:
        return ["inner"], {"tags": self.tags}

    @classmethod
    def __tensor_unflatten__(cls, inner: Any, meta: Any, size: Any, stride: Any) -> Tagged:
        return cls(inner["inner"], meta["tags"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*[one.inner if isinstance(one, Tagged) else one for one in args], **(kwargs or {}))
        return cls(out, args[0].tags) if isinstance(out, torch.Tensor) else out


class Stable(Tagged):
    """It names what stands for its metadata in the key; the entry holds these all the same."""

    def _stable_hash_for_caching(self) -> str:
        return "tagged"


def of_subclass(tags: Any, kind: type[Tagged] = Tagged) -> float:
    """Compile a function of a tensor subclass."""
    found = torch.compile(lambda x: x * 2 + 1)(kind(torch.ones(4), tags))
    return float(found.inner.sum())


def set_in_metadata() -> float:
    """A set, whose order is another one under another PYTHONHASHSEED; or what is advised: a sorted tuple, a class that hashes itself."""
    tags = frozenset({"alpha", "beta", "gamma", "delta", "epsilon"})
    return of_subclass(
        tuple(sorted(tags)) if CHOICE == "sorted" else tags, Stable if CHOICE == "stable" else Tagged
    )


def weak_container() -> float:
    """A dictionary that cannot be pickled; the same in a class that hashes itself; or, as the advice says, without it."""
    tags = None if CHOICE == "without" else weakref.WeakValueDictionary()
    return of_subclass(tags, Stable if CHOICE == "stable" else Tagged)


def backward_without_operator() -> float:
    """The gradient is handed on as it came; or goes through an operator."""
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=CHOICE == "operator")
    torch.compile(lambda a, b: a + b * 1.5)(a, b).sum().backward()
    assert a.grad is not None
    return float(a.grad.sum())


def backward_never_run() -> float:
    """A training graph that only runs forward; or inference, as the advice says."""
    x = torch.ones(2, requires_grad=True)
    with torch.set_grad_enabled(CHOICE != "no_grad"):
        return float(torch.compile(lambda x: (x * x).sin())(x).sum().detach())


def custom_backward() -> float:
    """A custom operator whose backward is edited between two runs."""

    @torch.library.custom_op("cachescope_defects::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    same.register_fake(torch.empty_like)
    factor = float(CHOICE or 2)
    same.register_autograd(lambda ctx, grad: factor * grad)
    x = torch.ones(2, requires_grad=True)
    torch.compile(torch.ops.cachescope_defects.same)(x).sum().backward()
    assert x.grad is not None
    return float(x.grad.sum())


def list_of_timings() -> str:
    """A best configuration that is JSON, but no object."""
    from torch._inductor.runtime.autotune_cache import AutotuneCache

    kernel = os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "ab", "c1.py")
    best = AutotuneCache.create({}, kernel, "0" * 64)
    assert best is not None and best.local_cache is not None
    os.makedirs(os.path.dirname(best.local_cache[1]), exist_ok=True)
    with open(best.local_cache[1], "w") as file:
        file.write("[1, 2]")
    try:
        best.read_best({}, [])
    except AssertionError:
        return "AssertionError"
    return ""


PROGRAMS: dict[str, Callable[[], Any]] = {
    one.__name__: one
    for one in (
        autocast, set_in_metadata, weak_container, backward_without_operator, backward_never_run, custom_backward,
        list_of_timings,
    )
}  # fmt: skip

if __name__ == "__main__":
    result = PROGRAMS[sys.argv[1]]()
    print(json.dumps({"result": result, **counters["aot_autograd"]}))
