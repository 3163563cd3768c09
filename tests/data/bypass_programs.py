"""Programs that torch's caches bypass, each as it is and with what the catalogue of bypasses says lifts it.

``python bypass_programs.py NAME bypassed|lifted`` compiles one, prints torch's counters of bypasses and of all lookups as JSON. The
messages reach the log of the caches.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch._functorch.config
import torch._inductor.config
import torch.utils.checkpoint
from torch._dynamo.utils import counters

PROGRAMS: dict[str, Callable[[bool], None]] = {}


def program(function: Callable[[bool], None]) -> Callable[[bool], None]:
    """Register a program; its argument says whether the bypass is lifted."""
    PROGRAMS[function.__name__] = function
    return function


def double(x: torch.Tensor) -> torch.Tensor:
    """What most of them compile."""
    return torch.relu(x) * 2


def compiled(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Compile a function and call it once."""
    return torch.compile(function, **options)(*arguments)


X = torch.ones(4, 4)


def nothing(graph: Any) -> Any:
    """A pass that changes nothing."""
    return graph


def graph_pass(is_lifted: bool) -> Any:
    """A custom pass over the graph: a plain function, or one that names its state."""
    if not is_lifted:
        return nothing
    from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

    class Pass(CustomGraphPass):
        def __call__(self, graph: torch.fx.Graph) -> None:
            pass

        def uuid(self) -> Any:
            return get_hash_for_files((__file__,))

    return Pass()


def scheduler_pass(is_lifted: bool) -> Any:
    """A custom pass over the scheduler's nodes; its class is named in the module, as torch pickles it."""
    if not is_lifted:
        return nothing
    from torch._inductor.custom_graph_pass import CustomSchedulerPass

    def uuid(self: Any) -> Any:
        return "1"

    def call(self: Any, nodes: Any) -> Any:
        return nodes

    made = type(
        "SchedulerPass", (CustomSchedulerPass,), {"__call__": call, "uuid": uuid, "__module__": __name__}
    )
    globals()["SchedulerPass"] = made
    return made()


# An option of Inductor, and its value where the bypass is lifted or not.
OPTIONS: dict[str, tuple[str, Callable[[bool], Any]]] = {
    "post_grad_pass": ("post_grad_custom_post_pass", graph_pass),
    "joint_pass": ("joint_custom_post_pass", graph_pass),
    "pre_fusion_pass": ("_pre_fusion_custom_pass", scheduler_pass),
    "post_fusion_pass": ("_post_fusion_custom_pass", scheduler_pass),
    "ddp_pass": ("_fuse_ddp_communication_passes", lambda is_lifted: [graph_pass(is_lifted)]),
    "fx_cache_off": ("fx_graph_cache", lambda is_lifted: is_lifted),
    "runtime_constant_folding": (
        "aot_inductor.use_runtime_constant_folding",
        lambda is_lifted: not is_lifted,
    ),
    "unpicklable_option": ("external_matmul", lambda is_lifted: [] if is_lifted else [lambda graph: graph]),
}


def with_option(name: str, is_lifted: bool) -> None:
    """Compile under an option of Inductor."""
    option, value = OPTIONS[name]
    with torch._inductor.config.patch({option: value(is_lifted)}):
        compiled(double, X)


PROGRAMS |= {name: partial(with_option, name) for name in OPTIONS}


@program
def freezing(is_lifted: bool) -> None:
    layer = torch.nn.Linear(4, 4).eval()
    with torch.no_grad(), torch._inductor.config.patch(freezing=not is_lifted):
        compiled(layer, X)


@program
def freezing_without_prepacking(is_lifted: bool) -> None:
    """The FX graph cache alone: AOTAutograd's never takes a frozen graph."""
    torch._functorch.config.enable_autograd_cache = False
    layer = torch.nn.Linear(4, 4).eval()
    options = {"freezing": True, "cpp.weight_prepack": not is_lifted}
    with torch.no_grad(), torch._inductor.config.patch(options):
        compiled(layer, X)


@program
def own_function(is_lifted: bool) -> None:
    """A function that Dynamo leaves in the graph as it is."""
    torch.compiler.allow_in_graph(double)
    if is_lifted:
        name = f"{double.__module__}.{double.__name__}"
        torch._inductor.config.unsafe_marked_cacheable_functions = {name: "1"}
    compiled(lambda x: double(x) + 1, X)


@program
def own_function_as_an_operator(is_lifted: bool) -> None:
    if is_lifted:
        operator = torch.library.custom_op("demo::double", double, mutates_args=())
        operator.register_fake(torch.empty_like)
        compiled(lambda x: operator(x) + 1, X)
    else:
        own_function(False)


@program
def higher_order_operator(is_lifted: bool) -> None:
    if is_lifted:
        torch._inductor.config.unsafe_marked_cacheable_functions = {"torch.ops.higher_order.cond": "1"}
    compiled(lambda x: torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,)), X)


@program
def custom_autograd(is_lifted: bool) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * 2

    if is_lifted:
        torch._functorch.config.autograd_cache_allow_custom_autograd_functions = True
    compiled(lambda x: Double.apply(x).sum(), X.clone().requires_grad_()).backward()


def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
    """What selective checkpointing keeps: nothing."""
    return torch.utils.checkpoint.CheckpointPolicy.PREFER_RECOMPUTE


@program
def selective_checkpoint(is_lifted: bool) -> None:
    contexts = partial(torch.utils.checkpoint.create_selective_checkpoint_contexts, policy)
    if is_lifted:
        contexts.cache_hash = "1"  # type: ignore[attr-defined]

    def step(x: torch.Tensor) -> torch.Tensor:
        return torch.utils.checkpoint.checkpoint(double, x, use_reentrant=False, context_fn=contexts).sum()

    compiled(step, X.clone().requires_grad_()).backward()


def with_budget(option: str, kind: str, plain: Callable[..., Any], is_lifted: bool) -> None:
    """Train under an option of the memory budget: a plain function, or one that names itself."""
    value: Any = plain
    if is_lifted:
        from torch._inductor import custom_graph_pass

        class Named(getattr(custom_graph_pass, kind)):  # type: ignore[misc]
            def __call__(self, *args: Any) -> Any:
                return plain(*args)

            def uuid(self) -> Any:
                return "1"

        value = Named()
    with torch._functorch.config.patch({option: value}):
        compiled(lambda x: double(x).sum(), X.clone().requires_grad_()).backward()


def solver(memory: Any, joint: Any, limit: Any, runtimes: Any, recomputable: Any) -> Any:
    return 0.0, [], list(range(len(memory)))


def estimate(node: Any) -> float:
    return 1.0


@program
def knapsack_solver(is_lifted: bool) -> None:
    with_budget("activation_memory_budget_solver", "CustomKnapsackSolver", solver, is_lifted)


@program
def runtime_estimator(is_lifted: bool) -> None:
    option = "activation_memory_budget_runtime_estimator"
    with_budget(option, "CustomRuntimeEstimator", estimate, is_lifted)


@program
def no_shape_env(is_lifted: bool) -> None:
    if is_lifted:
        compiled(double, X)
        return
    from torch.fx.experimental.proxy_tensor import make_fx

    torch._inductor.compile(make_fx(double)(X), [X])


@program
def bisector(is_lifted: bool) -> None:
    from torch._inductor.compiler_bisector import CompilerBisector

    CompilerBisector.bisection_enabled = not is_lifted
    compiled(double, X)


@program
def hook_with_compiled_autograd(is_lifted: bool) -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.register_hook(lambda grad: grad + 1)
        return y.sum()

    x = X.clone().requires_grad_()
    with torch._dynamo.config.patch(compiled_autograd=not is_lifted):
        loss = compiled(step, x)
    if is_lifted:
        loss.backward()


def main() -> None:
    """Compile what is named on the command line and print torch's counters."""
    name, way = sys.argv[1:]
    counters.clear()
    PROGRAMS[name](way == "lifted")
    told = {**counters["inductor"], **counters["aot_autograd"]}
    print(json.dumps({k: v for k, v in told.items() if "cache" in k}))


if __name__ == "__main__":
    main()
