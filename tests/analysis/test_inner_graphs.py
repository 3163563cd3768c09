"""Graphs within graphs, whose code torch hashes and does not print."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cachescope.analysis.differences import field_changes
from cachescope.details import HashDetails
from tests.analysis.key_advice import changes_advice

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def details_of(factor: float) -> list[str]:
    """What torch writes of a graph that calls another one, as flex attention calls its score_mod."""
    import torch
    from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCachePickler

    inner = torch.fx.symbolic_trace(lambda x: x * factor)
    graph = torch.fx.Graph()
    graph.output(graph.call_module("score_mod_0", (graph.placeholder("x"),)))
    module = torch.fx.GraphModule({"score_mod_0": inner}, graph)
    key: Any = SimpleNamespace(gm=module)
    lines: list[str] = AOTAutogradCachePickler(module).debug_lines(key)
    return lines


def test_a_graph_within_is_named_where_the_printed_code_is_equal() -> None:
    pytest.importorskip("torch")
    details = HashDetails()
    before, after = (details.add(details_of(factor))[0] for factor in (0.5, 0.25))
    assert before is not None and after is not None
    (change,) = field_changes(details, before, after)
    assert (change.field, change.before, change.diff) == ("gm", change.after, "")
    assert change.summary.startswith(
        "the printed code is equal: the code within score_mod_0, a captured tensor"
    )
    assert "the graphs within it" in (changes_advice([change]) or "")
