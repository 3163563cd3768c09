"""The small programs that record.py runs, one process each, under a real torch.

The programs change nothing in torch but what their flags say. At the end each writes what torch itself counted, so that
the tests can hold cachescope's reading of the logs against torch's own numbers. Run by record.py; needs torch.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# torch writes variables such as TORCHINDUCTOR_CACHE_DIR back to the environment: keep what it was before the import.
ENVIRONMENT_BEFORE_TORCH = dict(os.environ)

import torch  # noqa: E402
import torch._dynamo.utils  # noqa: E402
import torch._functorch.config  # noqa: E402
import torch._inductor.config  # noqa: E402

Tensor = torch.Tensor


# --- functions that are compiled: each takes (x, w), and x alone where w is of no use ---


def matmul_relu(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x @ w)


def matmul_tanh(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x @ w)


def matmul_relu_renamed(batch: Tensor, w: Tensor) -> Tensor:
    return torch.relu(batch @ w)


def add_one(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x @ w) + 1.0


def add_two(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x @ w) + 2.0


def gated_relu(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x) * x - 0.5


def gated_tanh(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x) * x - 0.5


def softmax_rows(x: Tensor, w: Tensor) -> Tensor:
    return torch.softmax(x, dim=1)


def centred(x: Tensor, w: Tensor) -> Tensor:
    return (x - x.mean(dim=1, keepdim=True)) * 3.0


def row_norm(x: Tensor, w: Tensor) -> Tensor:
    return x / (x * x).sum(dim=1, keepdim=True).sqrt()


def captured_low(x: Tensor, w: Tensor) -> Tensor:
    # The tensor becomes an attribute of the graph module: the printed graph names it and does not show its values.
    return x * torch.tensor([0.25, 0.5, 0.75, 1.0]).repeat(4)


def captured_high(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.tensor([1.25, 1.5, 1.75, 2.0]).repeat(4)


def branch_on_size(x: Tensor, w: Tensor) -> Tensor:
    # Both branches are the same graph, so the key is the same and only the guard on the size differs.
    if x.shape[0] > 10:
        return torch.relu(x @ w)
    return torch.relu(x @ w)


FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    function.__name__: function
    for function in (
        matmul_relu, matmul_tanh, matmul_relu_renamed, add_one, add_two, gated_relu, gated_tanh, softmax_rows,
        centred, row_norm, captured_low, captured_high, branch_on_size,
    )
}  # fmt: skip


# --- what torch counted ---


def counters() -> dict[str, dict[str, int]]:
    """Copy torch's counters without creating the groups that are absent (they live in a defaultdict)."""
    found = torch._dynamo.utils.counters
    return {group: dict(found[group]) for group in ("inductor", "aot_autograd") if group in found}


class Calls:
    """Counters before and after each call of a compiled function."""

    def __init__(self, may_fail: bool = False) -> None:
        self.may_fail = may_fail
        self.rows: list[dict[str, Any]] = []

    def add(self, label: str, call: Callable[[], Any]) -> Any:
        before, started = counters(), time.time()
        try:
            result = call()
        except Exception:
            if not self.may_fail:
                raise
            result = None
        self.rows.append(
            {"call": label, "started": started, "ended": time.time(), "before": before, "after": counters()}
        )
        return result


# --- programs ---


def compile_function(name: str, arguments: argparse.Namespace) -> Callable[[Tensor, Tensor], Tensor]:
    # Static shapes unless a dimension is marked: then a changed size is a changed key and not a changed guess.
    dynamic = None if arguments.mark_dynamic else False
    compiled: Callable[[Tensor, Tensor], Tensor] = torch.compile(
        FUNCTIONS[name], dynamic=dynamic, options=dict(arguments.option) or None
    )
    return compiled


def make_inputs(arguments: argparse.Namespace) -> tuple[Tensor, Tensor]:
    dtype = getattr(torch, arguments.dtype)
    batch = arguments.batch + (int(os.environ["RANK"]) if arguments.batch_of_rank else 0)
    if arguments.transposed:
        x = torch.randn(16, batch, dtype=dtype).t()
    else:
        x = torch.randn(batch, 16, dtype=dtype)
    if arguments.mark_dynamic:
        torch._dynamo.mark_dynamic(x, 0)
    return x, torch.randn(16, 16, dtype=dtype)


def run_functions(arguments: argparse.Namespace, calls: Calls) -> None:
    """Compile and call the functions named by --functions, in order."""
    for name in arguments.functions:
        x, w = make_inputs(arguments)
        compiled = compile_function(name, arguments)
        calls.add(name, lambda compiled=compiled, x=x, w=w: compiled(x, w))


def run_sequence(arguments: argparse.Namespace, calls: Calls) -> None:
    """Compile one function four times in one process, with other options, forgetting all in memory in between."""
    x, w = make_inputs(arguments)
    for label, options in (
        ("base", {}),
        ("epilogue_fusion_off", {"epilogue_fusion": False}),
        ("base_again", {}),
        ("shape_padding_off", {"shape_padding": False}),
    ):
        torch._dynamo.reset()
        compiled = torch.compile(matmul_relu, dynamic=False, options=options or None)
        calls.add(label, lambda compiled=compiled: compiled(x, w))


def small_mlp() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))


MODELS: dict[str, Callable[[], torch.nn.Module]] = {"mlp": small_mlp}


def run_training(arguments: argparse.Namespace, calls: Calls) -> None:
    """One forward and backward of a small MLP."""
    model = torch.compile(MODELS[arguments.model](), dynamic=False, options=dict(arguments.option) or None)
    x, _ = make_inputs(arguments)
    loss = calls.add("forward", lambda: model(x).square().mean())
    calls.add("backward", loss.backward)


def run_forward(arguments: argparse.Namespace, calls: Calls) -> None:
    """The same MLP, forward only; its parameters require gradients, unless they are frozen."""
    mlp = MODELS[arguments.model]().requires_grad_(not arguments.frozen)
    model = torch.compile(mlp, dynamic=False, options=dict(arguments.option) or None)
    x, _ = make_inputs(arguments)
    calls.add("forward", lambda: model(x))


def run_linear(arguments: argparse.Namespace, calls: Calls) -> None:
    """One linear layer for inference."""
    model = torch.compile(
        torch.nn.Linear(16, 16).eval(), dynamic=False, options=dict(arguments.option) or None
    )
    x, _ = make_inputs(arguments)
    calls.add("linear", lambda: model(x))


def variants(arguments: argparse.Namespace) -> dict[str, Callable[[], tuple[Tensor, Tensor]]]:
    """Inputs of one function that make Dynamo compile it anew in the same process."""
    x, w = make_inputs(arguments)
    return {
        "base": lambda: (x, w),
        "float64": lambda: (x.double(), w.double()),
        "batch_12": lambda: (torch.randn(12, 16), w),
        "transposed": lambda: (torch.randn(16, arguments.batch).t(), w),
        "requires_grad": lambda: (x.clone().requires_grad_(), w),
        "no_grad": lambda: (x, w),
    }


def run_recompiles(arguments: argparse.Namespace, calls: Calls) -> None:
    """Call one compiled function with the inputs of --variants, in order: it is compiled anew for each."""
    (name,) = arguments.functions
    compiled = torch.compile(FUNCTIONS[name], dynamic=None if arguments.automatic_dynamic else False)
    inputs = variants(arguments)
    for variant in arguments.variants:
        x, w = inputs[variant]()
        with torch.no_grad() if variant == "no_grad" else contextlib.nullcontext():
            result = calls.add(variant, lambda x=x, w=w: compiled(x, w))
        if result.requires_grad:
            calls.add(f"{variant} backward", result.sum().backward)


def run_eager(arguments: argparse.Namespace, calls: Calls) -> None:
    """Compile nothing at all."""
    x, w = make_inputs(arguments)
    calls.add("eager", lambda: matmul_relu(x, w))


PROGRAMS = {
    "functions": run_functions,
    "sequence": run_sequence,
    "training": run_training,
    "forward": run_forward,
    "linear": run_linear,
    "recompiles": run_recompiles,
    "eager": run_eager,
}


# --- settings ---


def custom_pass(kind: str) -> Any:
    """A pass that does nothing: a plain function, or torch's CustomGraphPass with the uuid that `kind` names."""
    if kind == "lambda":
        return lambda graph: None
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class NothingPass(CustomGraphPass):
        def __call__(self, graph: torch.fx.Graph) -> None:
            return None

        def uuid(self) -> Any:
            return None if kind == "none" else f"nothing-pass-{kind}"

    return NothingPass()


def apply_settings(arguments: argparse.Namespace) -> None:
    torch.manual_seed(0)
    for name, value in arguments.config:
        setattr(torch._inductor.config, name, value)
    for name, value in arguments.functorch_config:
        setattr(torch._functorch.config, name, value)
    if arguments.custom_pass:
        torch._inductor.config.post_grad_custom_post_pass = custom_pass(arguments.custom_pass)
    if arguments.deterministic:
        torch.use_deterministic_algorithms(True)
    if arguments.precision:
        torch.set_float32_matmul_precision(arguments.precision)


def write_isolation_context(path: Path) -> None:
    from torch._inductor.runtime.caching.context import _isolation_context

    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(_isolation_context()) + "\n")


def wait_for_others(folder: Path, parties: int) -> None:
    """Meet the other processes at a barrier of files, so that all of them compile at the same moment."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(os.getpid())).touch()
    deadline = time.monotonic() + 120
    while len(list(folder.iterdir())) < parties:
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited 120 s for {parties} processes in {folder}")
        time.sleep(0.005)


@contextlib.contextmanager
def process_group(wanted: bool) -> Iterator[None]:
    """torch names trace files and log lines by rank once a process group exists."""
    if not wanted:
        yield
        return
    import torch.distributed

    torch.distributed.init_process_group("gloo")
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


def setting(text: str) -> tuple[str, Any]:
    """`name=value` with a JSON value; `$RANK` and other variables in it become what the process has."""
    name, _, value = text.partition("=")
    return name, json.loads(os.path.expandvars(value))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=sorted(PROGRAMS))
    parser.add_argument("--report", type=Path, required=True, help="where to write what torch counted")
    parser.add_argument("--functions", type=lambda text: text.split(","), default=["matmul_relu"])
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--batch-of-rank", action="store_true", help="add the rank to the batch")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--transposed", action="store_true")
    parser.add_argument("--mark-dynamic", action="store_true")
    parser.add_argument("--no-grad", action="store_true")
    parser.add_argument("--inference-mode", action="store_true")
    parser.add_argument("--frozen", action="store_true", help="parameters that require no gradients")
    parser.add_argument("--variants", type=lambda text: text.split(","), default=["base"])
    parser.add_argument(
        "--automatic-dynamic", action="store_true", help="dynamic=None, torch's default, for recompiles"
    )
    parser.add_argument(
        "--option", type=setting, action="append", default=[], help="torch.compile(options=…)"
    )
    parser.add_argument("--config", type=setting, action="append", default=[], help="torch._inductor.config")
    parser.add_argument("--functorch-config", type=setting, action="append", default=[])
    parser.add_argument("--custom-pass", choices=["lambda", "none", "1", "2"])
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--precision", choices=["highest", "high", "medium"])
    parser.add_argument(
        "--isolation-context", type=Path, help="where to write torch's isolation context (2.10+)"
    )
    parser.add_argument("--may-fail", action="store_true", help="go on behind a compile that fails")
    parser.add_argument("--barrier", type=Path)
    parser.add_argument("--parties", type=int, default=1)
    parser.add_argument("--distributed", action="store_true")
    return parser.parse_args()


def gradients(arguments: argparse.Namespace) -> contextlib.AbstractContextManager[Any]:
    if arguments.inference_mode:
        return torch.inference_mode()
    return torch.no_grad() if arguments.no_grad else contextlib.nullcontext()


def write_report(path: Path, calls: Sequence[dict[str, Any]] = ()) -> None:
    """What torch has counted by now, and in which process."""
    report = {
        "torch_version": torch.__version__,
        "python_version": platform.python_version(),
        "pid": os.getpid(),
        "rank": int(os.environ["RANK"]) if "RANK" in os.environ else None,
        "argv": sys.argv,
        "environment": ENVIRONMENT_BEFORE_TORCH,
        "counters": counters(),
        "calls": calls,
    }
    path.write_text(json.dumps(report, indent=1) + "\n")


def main(
    functions: Mapping[str, Callable[[Tensor, Tensor], Tensor]] | None = None,
    models: Mapping[str, Callable[[], torch.nn.Module]] | None = None,
) -> None:
    """Run the program that the command line names; `functions` and `models` are those of another file."""
    FUNCTIONS.update(functions or {})
    MODELS.update(models or {})
    arguments = parse_arguments()
    calls = Calls(arguments.may_fail)
    with process_group(arguments.distributed):
        apply_settings(arguments)
        if arguments.barrier:
            wait_for_others(arguments.barrier, arguments.parties)
        with gradients(arguments):
            PROGRAMS[arguments.program](arguments, calls)
    if arguments.isolation_context:
        write_isolation_context(arguments.isolation_context)
    write_report(arguments.report, calls.rows)


if __name__ == "__main__":
    main()
