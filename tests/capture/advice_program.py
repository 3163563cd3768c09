"""Follows advice with a real torch: what tests/wild/test_advice.py runs, and counts hits and misses of.

Each case is a list of steps. ``cold`` makes an entry, ``changed`` is the same call after the change that is advised on, and
``followed`` the call once the advice is followed. Between steps only the caches on disk stay. Graphs of one call of a
library need no C++ compiler.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch._functorch.config
import torch._inductor.config
import torch._inductor.utils
from torch._dynamo.utils import counters
from torch._inductor.custom_graph_pass import CustomGraphPass

Step = tuple[str, Callable[[], object]]
Changes = dict[str, Any]


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, w)


def renamed(first: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.mm(first, w)


def with_local(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    first = torch.mm(x, w)
    return torch.mm(first, w)


def with_renamed_local(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    found = torch.mm(x, w)
    return torch.mm(found, w)


def other(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.mm(torch.mm(x, w), w)


def branch(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, w) if x.shape[0] > 10 else torch.mm(x, torch.mm(w, w))


class Pass(CustomGraphPass):  # type: ignore[misc]
    """A pass that does nothing, under a name."""

    def __init__(self, name: bytes | None) -> None:
        self.name = name

    def __call__(self, graph: object) -> None:
        """Leave the graph as it is."""

    def uuid(self) -> bytes | None:
        return self.name


def call(
    size: int,
    *,
    rows: int = 4,
    within: Callable[[], Any] = nullcontext,
    function: Callable[..., torch.Tensor] = product,
    change: Callable[[torch.Tensor], torch.Tensor] = lambda x: x,
    **options: Any,
) -> Callable[[], object]:
    """A step that compiles and calls a function; no two cases have the same `size`."""

    def step() -> object:
        with within():
            x = change(torch.ones(rows, size, dtype=torch.float32))
            w = torch.ones(size, size, dtype=x.dtype)
            return torch.compile(function, **options)(x, w)

    return step


def inductor(**values: object) -> Callable[[], Any]:
    return lambda: torch._inductor.config.patch(values)


def functorch(**values: object) -> Callable[[], Any]:
    return lambda: torch._functorch.config.patch(values)


def dynamo(**values: object) -> Callable[[], Any]:
    return lambda: torch._dynamo.config.patch(values)


@contextlib.contextmanager
def setting(set_to: Callable[[Any], object], get: Callable[[], Any], value: object) -> Iterator[None]:
    before = get()
    set_to(value)
    try:
        yield
    finally:
        set_to(before)


def set_by(set_to: Callable[[Any], object], get: Callable[[], Any], value: object) -> Callable[[], Any]:
    return lambda: setting(set_to, get, value)


def precision(name: str) -> Callable[[], Any]:
    return set_by(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision, name)


def passing(name: bytes | None) -> Callable[[], Any]:
    return inductor(post_grad_custom_post_pass=Pass(name))


def directory(path: str) -> Any:
    return mock.patch.dict(os.environ, TORCHINDUCTOR_CACHE_DIR=path)


def pad(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(x, (0, 0, 0, 4 - x.shape[0]))


def marked(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.mark_dynamic(x, 0)
    return x


def transposed(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous().t()


def leaf(x: torch.Tensor) -> torch.Tensor:
    return x.requires_grad_()


def training(size: int, *, backward: bool) -> Callable[[], object]:
    """A step that calls a training graph, with its backward graph or without."""

    def step() -> None:
        x, w = torch.ones(4, size, requires_grad=True), torch.ones(size, size)
        found = torch.compile(product)(x, w)
        if backward:
            found.sum().backward()

    return step


def optimized(size: int, lr: float | torch.Tensor) -> Callable[[], object]:
    def step() -> None:
        weight = torch.nn.Parameter(torch.ones(size, size))
        weight.grad = torch.ones(size, size)
        torch.compile(torch.optim.SGD([weight], lr=lr).step)()

    return step


def frozen(size: int, *, freezing: bool) -> Callable[[], object]:
    def step() -> None:
        torch.manual_seed(0)
        model = torch.nn.Linear(size, size).eval()
        with torch.no_grad(), torch._inductor.config.patch(freezing=freezing):
            torch.compile(model)(torch.ones(4, size))

    return step


def entries_of_last_key() -> list[Path]:
    """The files under the FX key that was stored last."""
    root = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    files = [path for path in (root / "fxgraph").glob("*/*/*") if not path.name.startswith(".")]
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    return list(newest.parent.iterdir())


def damage() -> None:
    for path in entries_of_last_key():
        path.write_bytes(path.read_bytes()[:100])


def delete() -> None:
    for path in entries_of_last_key():
        path.unlink()


def both(first: Callable[[], object], then: Callable[[], object]) -> Callable[[], object]:
    def step() -> object:
        first()
        return then()

    return step


def blocked() -> None:
    """Put a file where FX entries are stored: nothing can be written there."""
    root = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    root.joinpath("fxgraph").write_text("")


def unblocked() -> None:
    Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], "fxgraph").unlink()


def copied(to: str) -> Callable[[], object]:
    return lambda: shutil.copytree(os.environ["TORCHINDUCTOR_CACHE_DIR"], to, dirs_exist_ok=True)


def fields() -> dict[str, list[Step]]:
    """Cases of changed fields."""
    cases: dict[str, list[Step]] = {}

    def case(name: str, cold: Changes | None = None, followed: Changes | None = None, **changed: Any) -> int:
        """Without another way to follow the advice, the change is undone."""
        size, before = 10 + 3 * len(cases), cold or {}
        steps = [call(size, **before), call(size, **changed), call(size, **(followed or before))]
        cases[name] = list(zip(("cold", "changed", "followed"), steps, strict=True))
        return size

    case("dtype", change=torch.Tensor.double, followed={"change": lambda x: x.double().float()})
    case("stride", change=transposed, followed={"change": lambda x: transposed(x).contiguous()})
    case("requires_grad", change=leaf, followed={"change": lambda x: leaf(x).detach()})
    size = case("shape", rows=3)
    cases["shape"] += [
        ("followed", call(size, rows=3, change=pad)),
        ("cold", call(size, rows=5, dynamic=True)),
        ("followed", call(size, rows=6, dynamic=True)),
        ("followed", call(size, rows=7, dynamic=True, within=dynamo(automatic_dynamic_shapes=False))),
    ]
    size = case("shape_marked", rows=3)
    cases["shape_marked"] += [
        ("cold", call(size, rows=5, change=marked)),
        ("followed", call(size, rows=6, change=marked)),
    ]
    five = {"rows": 5, "function": other}
    case("fixed_size", cold={**five, "dynamic": True}, **five, dynamic=False)
    case("renamed", function=renamed)
    case("renamed_local", cold={"function": with_local}, function=with_renamed_local)
    case("other_graph", function=other)
    case("option", options={"epilogue_fusion": False})
    case("config", within=inductor(epilogue_fusion=False))
    case("mode", mode="max-autotune-no-cudagraphs")
    case(
        "deterministic",
        within=set_by(torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled, True),
    )
    # "highest" is the default, and setting it is another key than not setting it: no way leads back to the first.
    case("precision", cold={"within": precision("high")}, within=precision("highest"))
    case("tag", within=lambda: torch.compiler.config.patch(cache_key_tag="other"))
    case("functorch", within=functorch(donated_buffer=False))
    case("grad_mode", within=torch.no_grad)
    case("autocast", within=lambda: torch.autocast("cpu"))
    case("default_dtype", within=set_by(torch.set_default_dtype, torch.get_default_dtype, torch.float64))
    case("threads", within=set_by(torch.set_num_threads, torch.get_num_threads, 2))
    case("provenance", within=lambda: torch._inductor.config.patch({"trace.provenance_tracking_level": 1}))
    case("pass", cold={"within": passing(b"one")}, within=passing(b"two"))
    case("precompile", within=dynamo(caching_precompile=True))
    cases["learning_rate"] = [
        ("cold", optimized(4, 0.1)),
        ("changed", optimized(4, 0.2)),
        ("cold", optimized(4, torch.tensor(0.1))),
        ("followed", optimized(4, torch.tensor(0.2))),
    ]
    return cases


def within_full(before: Callable[[], None] | None, path: str) -> Callable[[], object]:
    def step() -> object:
        with directory(path):
            if before is not None:
                before()
            return call(212)()

    return step


def environment() -> dict[str, list[Step]]:
    """Cases that depend on what a process is started with; a label of the command line stands for each."""
    label = sys.argv[3]
    return {"variables": [(label, call(301))], "set": [(label, call(302, within=in_a_set))]}


def in_a_set() -> Any:
    """An option that holds a set of strings, which each process orders anew."""
    return torch._inductor.config.patch(
        {"aot_inductor.metadata": {"names": {"one", "two", "three", "four", "five"}}}
    )


def around(size: int, step: Callable[[], object], label: str = "changed") -> list[Step]:
    """A step between two calls that are alike."""
    return [("cold", call(size)), (label, step), ("followed", call(size))]


def lifted(bypassed: Callable[[], object], step: Callable[[], object]) -> list[Step]:
    """What is never stored, twice, and what is."""
    return [("bypassed", bypassed), ("bypassed", bypassed), ("cold", step), ("followed", step)]


def stored() -> dict[str, list[Step]]:
    """Cases of entries that are not there, and of what is not cached."""
    elsewhere, copy, full = tempfile.mkdtemp(), tempfile.mkdtemp(), tempfile.mkdtemp()
    return {
        "other_directory": [
            *around(202, call(202, within=lambda: directory(elsewhere))),
            ("followed", both(copied(copy), call(202, within=lambda: directory(copy)))),
        ],
        "fresh_cache": around(203, call(203, within=torch._inductor.utils.fresh_cache)),
        "deleted": around(204, both(delete, call(204))),
        "damaged": [
            ("cold", call(205)),
            ("changed", both(damage, call(205))),
            ("changed", both(delete, call(205))),
            ("followed", call(205)),
        ],
        "no_backward": [
            ("cold", training(206, backward=False)),
            ("changed", training(206, backward=False)),
            ("changed", training(206, backward=True)),
            ("followed", training(206, backward=True)),
            ("followed", training(206, backward=False)),
        ],
        "not_saved": [
            ("cold", within_full(blocked, full)),
            ("changed", within_full(None, full)),
            ("changed", within_full(unblocked, full)),
            ("followed", within_full(None, full)),
        ],
        "custom_pass": lifted(call(207, within=passing(None)), call(207, within=passing(b"name"))),
        "freezing": lifted(frozen(208, freezing=True), frozen(208, freezing=False)),
        "fx_off": around(209, call(209, within=inductor(fx_graph_cache=False)), "bypassed"),
        "force_disabled": around(210, call(210, within=inductor(force_disable_caches=True)), "bypassed"),
        "guards": [
            ("cold", call(211, rows=5, function=branch, dynamic=True)),
            ("changed", call(211, rows=20, function=branch, dynamic=True)),
            ("followed", call(211, rows=6, function=branch, dynamic=True)),
            ("followed", call(211, rows=30, function=branch, dynamic=True)),
        ],
    }


def counted(step: Callable[[], object]) -> dict[str, int]:
    """What torch counts in one step."""
    torch._dynamo.reset()
    counters.clear()
    try:
        step()
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    aot, fx = counters["aot_autograd"], counters["inductor"]
    return {
        "aot_hit": aot["autograd_cache_hit"],
        "aot_miss": aot["autograd_cache_miss"] + aot["autograd_cache_guard_miss"],
        "aot_bypass": aot["autograd_cache_bypass"],
        "fx_hit": fx["fxgraph_cache_hit"],
        "fx_miss": fx["fxgraph_cache_miss"] + fx["fxgraph_cache_guard_miss"],
        "fx_bypass": fx["fxgraph_cache_bypass"],
    }


if __name__ == "__main__":
    found = []
    wanted = {"fields": fields, "stored": stored, "environment": environment}[sys.argv[2]]()
    for name, steps in wanted.items():
        for label, step in steps:
            found.append({"case": name, "step": label, **counted(step)})
            Path(sys.argv[1]).write_text(json.dumps(found, indent=1))
