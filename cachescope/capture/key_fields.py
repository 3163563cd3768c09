"""The hash details of this process that do not depend on a graph or an input, as torch itself hashes them.

An entry's stored hash details can be compared with them before anything is compiled. Torch makes them
here for a graph that does nothing, and what belongs to that graph is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from cachescope.components import parse_component
from cachescope.keys.key_fields import OF_THE_PROGRAM
from cachescope.terms import WOULD_BYPASS

# Attributes of FxGraphHashDetails and AOTAutogradCacheDetails that follow from the graph, its inputs or the
# call (2.6 to 2.15). Attributes added by a later torch count as the process's own until they are named here.
OF_THE_GRAPH: Final = OF_THE_PROGRAM | frozenset(
    "aot_config act_input_paths triton_kernel_source_codes saved_tensors_hooks_fx_wrap_cache_hashes "  # noqa: SIM905
    "sac_context_fn_hashes region_activation_memory_budget region_activation_memory_budget_annotations".split()
)

Fields = dict[str, str]


def key_fields() -> tuple[Fields | None, str | None]:
    """The process's own hash details of FX graph keys (field -> torch's hash), or why there are none."""
    # `cpp_runtime_thread_count` has the value for a graph on the CPU, `default_cuda_device_index` (with an accelerator) that for a graph
    # without tensor inputs. Mirrors `compiled_fx_graph_hash` (torch/_inductor/codecache.py, 2.6 to 2.15): `FxGraphHashDetails` and
    # `FxGraphCachePickler.debug_lines`.
    return _fields_or_reason(_fx_fields)


def aot_key_fields() -> tuple[Fields | None, str | None]:
    """As `key_fields`, of AOTAutograd keys, without those that FX keys also have."""
    # Mirrors `autograd_cache_key` (torch/_functorch/_aot_autograd/autograd_cache.py, 2.6 to 2.15).
    return _fields_or_reason(_aot_fields)


def functorch_config() -> Fields:
    """The options that AOTAutograd hashes as one field, ``autograd_config``, as Python writes them; of an object its type alone."""
    # Mirrors `save_config` (torch/utils/_config_module.py, 2.6 to 2.15), the bytes that are hashed.
    from torch._functorch import config

    with _configured_for_a_compile():
        options = config.get_config_copy()
    ignored = getattr(config, "_save_config_ignore", ())
    return {name: _in_python(value) for name, value in options.items() if name not in ignored}


def _in_python(value: object) -> str:
    text = repr(value)
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        # It may hold the address of an object.
        return f"<{type(value).__name__}>"
    return text


def _fields_or_reason(read_fields: Callable[[Any], Fields]) -> tuple[Fields | None, str | None]:
    from torch._functorch._aot_autograd import autograd_cache
    from torch._inductor import codecache

    bypasses = (codecache.BypassFxGraphCache, autograd_cache.BypassAOTAutogradCache)
    try:
        return read_fields(codecache), None
    except bypasses as bypass:
        return None, f"{WOULD_BYPASS}: {bypass or bypass.__cause__}"
    except (AttributeError, TypeError, AssertionError, RuntimeError) as error:
        # Private classes of torch, called with the arguments of 2.6 to 2.15.
        return None, f"this torch makes its keys differently: {type(error).__name__}: {error}"


def _fx_fields(codecache: Any) -> Fields:
    import torch

    graph = _empty_graph()
    with _as_in_a_compile():
        # The checks of `prepare_key` before it makes a key: a pass without uuid, or a backend that cannot be cached.
        codecache.FxGraphCache._check_can_cache(graph)
    fields: Fields = {}
    # Without tensor inputs the current device counts; with one on the CPU, the number of threads.
    for inputs in ([], [torch.empty(1, device="cpu")]):
        details = codecache.FxGraphHashDetails(graph, inputs, {}, [])
        fields |= _fields_of(details, codecache.FxGraphCachePickler(graph))
    return fields


def _aot_fields(codecache: Any) -> Fields:
    from torch._functorch._aot_autograd import autograd_cache

    graph = _empty_graph()
    with _as_in_a_compile(), _configured_for_a_compile():
        details = autograd_cache.AOTAutogradCacheDetails(graph, [], None, {})
        for name in vars(codecache.FxGraphHashDetails(graph, [], {}, [])).keys() & vars(details).keys():
            delattr(details, name)
        return _fields_of(details, autograd_cache.AOTAutogradCachePickler(graph))


def _as_in_a_compile() -> Any:
    """Make torch believe that it is within a compile: it refuses if there is no shape environment."""
    from torch import _guards as guards
    from torch._subclasses import fake_tensor
    from torch.fx.experimental import symbolic_shapes

    mode = fake_tensor.FakeTensorMode(shape_env=symbolic_shapes.ShapeEnv())
    return guards.tracing(guards.TracingContext(mode))


def _configured_for_a_compile() -> Any:
    """Set what ``compile_fx`` (torch/_inductor/compile_fx.py) sets around AOTAutograd; it is in ``autograd_config``."""
    from torch._functorch import config as functorch
    from torch._inductor import config as inductor

    changes = {"unlift_effect_tokens": True}
    if hasattr(inductor, "selective_decompose"):  # 2.10 and later
        changes["selective_decompose"] = inductor.selective_decompose
    return functorch.patch(changes)


def _empty_graph() -> Any:
    from torch import fx

    graph = fx.Graph()
    graph.output((graph.placeholder("x"),))
    return fx.GraphModule({}, graph)


def _fields_of(details: Any, pickler: Any) -> Fields:
    for name in OF_THE_GRAPH & vars(details).keys():
        delattr(details, name)
    found = (parse_component(line) for line in pickler.debug_lines(details))
    return {detail.field: detail.detail_hash for detail in found if detail is not None}
