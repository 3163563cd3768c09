"""Instead of generating code, each graph is executed op by op; all before that is torch's own.

torch lowers the graph and takes the strides of its outputs from that, on which the key of a backward graph depends;
what follows the lowering is left out.
"""

from __future__ import annotations

import contextvars
import copy
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

from cachescope.capture.preflight import notes
from cachescope.capture.preflight.without_weights import is_fake

_to_run: contextvars.ContextVar[Any] = contextvars.ContextVar("cachescope_preflight_graph")


def patch_compile_fx(module: Any, replace: Any) -> None:
    """Keep a copy of each graph before it is lowered (torch/_inductor/compile_fx.py, `_InProcessFxCompile`)."""
    compiled_by_torch = module._InProcessFxCompile.codegen_and_compile

    def codegen_and_compile(self: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
        notes.note_process()
        token = _to_run.set(_copied(gm))
        try:
            compiled = compiled_by_torch(self, gm, *args, **kwargs)
        finally:
            _to_run.reset(token)
        compiled.source_code = getattr(compiled, "source_code", "")
        return compiled

    replace(module._InProcessFxCompile, "codegen_and_compile", codegen_and_compile)
    # Another process would compile for real.
    replace(module, "fx_compile_mode", module.FxCompileMode.NORMAL)
    for name in ("fx_compile_async", "fx_compile_progressive"):
        if hasattr(module, name):
            replace(module, name, False)


def patch_graph(module: Any, replace: Any) -> None:
    """Stop after the lowering (torch/_inductor/graph.py, `GraphLowering.compile_to_module`)."""

    def compile_to_module(self: Any) -> Any:
        self.scheduler = SimpleNamespace(nodes=[])
        return SimpleNamespace(call=_Executed(_to_run.get(), self.graph_outputs), __file__=None)

    replace(module.GraphLowering, "compile_to_module", compile_to_module)


def patch_select_algorithm(module: Any, replace: Any) -> None:
    """Measure nothing: of several choices take one of ATen's (torch/_inductor/select_algorithm.py)."""
    chosen_by_torch = module.AlgorithmSelectorCache.__call__

    def chosen(self: Any, name: str, choices: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        aten = [choice for choice in choices if isinstance(choice, module.ExternKernelCaller)]
        return chosen_by_torch(self, name, (aten or list(choices))[:1], *args, **kwargs)

    replace(module.AlgorithmSelectorCache, "__call__", chosen)


def _copied(gm: Any) -> Any:
    """A graph and its subgraphs, which passes change in place; what they hold besides is shared."""
    from torch import fx

    copied = fx.GraphModule(gm, copy.deepcopy(gm.graph))
    for name, inner in gm.named_children():
        if isinstance(inner, fx.GraphModule):
            setattr(copied, name, _copied(inner))
    return copied


class _Executed:
    """A graph that is executed op by op, called as torch calls generated code: with a list that it empties."""

    def __init__(self, graph: Any, outputs: Sequence[Any]) -> None:
        self._interpreter = _interpreter(graph)
        self._strides = [_strides_of(output) for output in outputs or ()]
        self._symbols = [_symbol_of(node) for node in graph.graph.nodes if node.op == "placeholder"]

    def __call__(self, inputs: list[Any]) -> Any:
        import torch

        pairs = zip(self._symbols, inputs, strict=False)
        # A size of a jagged tensor has no value.
        sizes = {one: value for one, value in pairs if one is not None and isinstance(value, (int, float))}
        with torch.no_grad(), torch._C._DisableAutocast():
            outputs = self._interpreter.boxed_run(inputs)
            if len(outputs) != len(self._strides):
                return outputs
            wanted = [None if of is None else of(sizes) for of in self._strides]
            return type(outputs)(map(_restrided, outputs, wanted))


def _interpreter(graph: Any) -> Any:
    import torch

    class Interpreter(torch.fx.Interpreter):  # type: ignore[misc]
        """Executes a graph with the errors and the random stream of generated code."""

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target is torch.ops.aten.view.default:
                target = torch.ops.aten.reshape.default  # operators give other strides than generated code
            draw = _DRAWN.get(getattr(target, "__name__", "").partition(".")[0])
            try:
                return super().call_function(target if draw is None or is_fake() else draw, args, kwargs)
            except IndexError as error:
                if getattr(target, "namespace", None) != "aten":
                    raise
                # Generated code checks indices itself.
                raise RuntimeError(*error.args) from error

    return Interpreter(graph)


# Generated code takes seeds from the stream of the device, and draws from them (torch/_inductor/inductor_prims.py). Executed as an
# operator, each of these would draw from the stream, and twice.
def _seeds(count: int, device: Any) -> Any:
    import torch

    return torch.randint(-(2**63), 2**63 - 1, [count], device=device)


def _random(size: Sequence[int], seed: Any, mode: str, **kwargs: Any) -> Any:
    import torch

    return getattr(torch, mode)(size, **_stream(seed), dtype=torch.float32)


def _randint(low: int, high: int, size: Sequence[int], seed: Any) -> Any:
    import torch

    return torch.randint(low, high, size, **_stream(seed))


def _stream(seed: Any) -> dict[str, Any]:
    import torch

    return {"device": seed.device, "generator": torch.Generator(seed.device).manual_seed(int(seed))}


_DRAWN: Final[dict[str, Callable[..., Any]]] = {
    "inductor_seeds": _seeds,
    "inductor_random": _random,
    "inductor_randint": _randint,
}


def _strides_of(output: Any) -> Callable[[dict[Any, Any]], tuple[int, ...] | None] | None:
    """The strides that generated code would give an output, as a function of the sizes; None if it has none."""
    from torch._inductor import ir

    if not isinstance(output, ir.IRNode) or not output.has_tensor_output():
        return None
    strides = output.get_layout().stride

    def evaluated(sizes: dict[Any, Any]) -> tuple[int, ...] | None:
        try:
            return tuple(int(stride.subs(sizes) if hasattr(stride, "subs") else stride) for stride in strides)
        except TypeError:  # a size that is known only when it runs
            return None

    return evaluated


def _symbol_of(placeholder: Any) -> Any:
    return getattr(getattr(placeholder.meta.get("val"), "node", None), "expr", None)


def _restrided(one: Any, strides: tuple[int, ...] | None) -> Any:
    import torch

    own = one.stride() if isinstance(one, torch.Tensor) else ()
    if not strides or len(own) != len(strides) or own == strides:
        return one
    return torch.empty_strided(one.shape, strides, dtype=one.dtype, device=one.device).copy_(one)
