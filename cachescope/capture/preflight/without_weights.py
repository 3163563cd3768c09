"""A pre-flight without weights: the program runs under torch's `FakeTensorMode`, in which tensors have no values.

Keys hold none but those of constants in a graph, and of them it is noted that the key is not sure. Where the program asks
a tensor for a value it ends, and what it asked for is told to whoever started it.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from types import SimpleNamespace, TracebackType
from typing import Any, Final

from cachescope.capture.preflight.cache_folder import ours
from cachescope.capture.preflight.refusals import REFUSED, place_of, tell

FAKE: Final = "CACHESCOPE_PREFLIGHT_FAKE"
"""The variable that switches it on."""
# torch/_subclasses/fake_tensor.py, 2.10 to 2.15.
_NO_VALUES: Final = (
    "UnsupportedFakeTensorException", "DynamicOutputShapeException", "DataDependentOutputException",
    "UnsupportedOperatorException", "UnsupportedMutationAliasingException",
)  # fmt: skip
# What torch says where a tensor has no memory: `numpy()`, `data_ptr()` and what C++ asks for.
_WORDS: Final = ("FakeTensor", "fake tensor", "not supported for tensor subclasses")

_modes: Final[list[Any]] = []
# Tensors of such a mode that are hashed into the key that is being made.
_met: Final[list[bool]] = []
keys_without_values: Final[set[str]] = set()
"""Keys of graphs with a constant that has no values here: a real run makes others."""


def is_fake() -> bool:
    """Whether this pre-flight is one without weights."""
    return FAKE in ours


def patch_torch(module: Any, replace: Any) -> None:
    """Let tensors have no values from here on."""
    if not is_fake():
        return
    from torch._subclasses import fake_tensor as fake

    # What the program reads from elsewhere, from numpy for example, may come in.
    mode = fake.FakeTensorMode(allow_non_fake_inputs=True)
    dispatched_by_torch = mode.dispatch

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        try:
            return dispatched_by_torch(*args, **kwargs)
        except Exception as error:
            # Told at once: whoever catches this goes another way than with weights.
            if isinstance(error, _classes(fake)):
                _report(error, traceback.extract_stack())
            raise

    mode.dispatch = dispatch
    _modes.append(mode.__enter__())
    # Swapping is how modules are converted (`Module.to`), and torch refuses where its own mode holds a weak reference.
    from torch import utils

    replace(utils, "weakref", SimpleNamespace(getweakrefs=lambda tensor: ()))
    before = sys.excepthook

    def report_error(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        cause = _cause(fake, error)
        if cause is None:
            before(kind, error, where)
        else:
            _report(cause, traceback.extract_tb(where))

    sys.excepthook = report_error


def patch_output_graph(module: Any, replace: Any) -> None:
    """Call the inputs of a graph what they are with weights (torch/_dynamo/output_graph.py, `create_graph_input`).

    AOTAutograd's key is of the text of the graph, in which their types stand.
    """
    if not is_fake():
        return
    import torch
    from torch._subclasses import fake_tensor as fake

    made_by_torch = module.SubgraphTracer.create_graph_input

    def create_graph_input(
        self: Any, name: str, type_expr: Any, example_value: Any, *args: Any, **kwargs: Any
    ) -> Any:
        # In graphs within the graph torch itself calls them so.
        if type_expr is fake.FakeTensor and self.parent is None:
            is_parameter = isinstance(example_value, torch.nn.Parameter)
            type_expr = torch.nn.Parameter if is_parameter else torch.Tensor
        return made_by_torch(self, name, type_expr, example_value, *args, **kwargs)

    replace(module.SubgraphTracer, "create_graph_input", create_graph_input)


def patch_codecache(module: Any, replace: Any) -> None:
    """Know which FX keys are not sure (torch/_inductor/codecache.py, `FxGraphCachePickler`, `compiled_fx_graph_hash`)."""
    if not is_fake():
        return
    reduced_by_torch = module.FxGraphCachePickler._reduce_fake_tensor

    def reduce_fake_tensor(self: Any, tensor: Any) -> Any:
        # Those of Dynamo's own mode have no values in a real run either.
        if tensor.fake_mode in _modes:
            _met.append(True)
        return reduced_by_torch(self, tensor)

    replace(module.FxGraphCachePickler, "_reduce_fake_tensor", reduce_fake_tensor)
    _keep_unsure(module, "compiled_fx_graph_hash", replace)


def patch_autograd_cache(module: Any, replace: Any) -> None:
    """Know which AOTAutograd keys are not (torch/_functorch/_aot_autograd/autograd_cache.py, `autograd_cache_key`)."""
    if is_fake():
        _keep_unsure(module, "autograd_cache_key", replace)


def _keep_unsure(module: Any, name: str, replace: Callable[[Any, str, Any], None]) -> None:
    made_by_torch = getattr(module, name)

    def made(*args: Any, **kwargs: Any) -> Any:
        _met.clear()
        found = made_by_torch(*args, **kwargs)
        if _met:
            keys_without_values.add(found[0])
        return found

    replace(module, name, made)


def _classes(fake: Any) -> tuple[type[BaseException], ...]:
    return tuple(getattr(fake, name) for name in _NO_VALUES if hasattr(fake, name))


def _cause(fake: Any, error: BaseException) -> BaseException | None:
    """What an exception comes of, if that is a value that is not there."""
    one: BaseException | None = error
    while one is not None:
        if isinstance(one, _classes(fake)) or any(word in str(one) for word in _WORDS):
            return one
        one = one.__cause__ or one.__context__
    return None


def _report(error: BaseException, frames: traceback.StackSummary) -> None:
    text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    tell(REFUSED, f"the program cannot be run without weights: {text}{place_of(frames)}")
