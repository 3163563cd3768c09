"""What a person waits for in the explorer: the first picture, a toggle, a filter.

Aims of the design: first paint on the samples within 1.5 s of the cell's start (after imports; here without the
browser's part), a toggle to a redrawn What-if within 300 ms at 10,000 lookups, a filter within 200 ms at 100,000.
The lookups of the toggle are made as in test_what_if.py; those of the filter are the sample tour, repeated.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.views.explorer import Explorer
from cachescope.views.lookup_rows import LookupRows, lookups_frame
from cachescope.views.table import Table
from cachescope.views.what_if import WhatIfView

LEAK = "inductor_config[aot_inductor.output_path]"
FILTERS = [
    {"text": "epilogue"},
    {"outcome": "full_miss", "cache": "fxgraph"},
    {"run": 73, "text": "ft4g"},
    {},
]


@pytest.mark.benchmark(group="views")
@pytest.mark.parametrize("sample", ["tour", "entry_truncated"])
def test_first_paint(sample: str, benchmark: Any) -> None:
    """Read a sample, make the explorer, and every figure of its first pane."""

    def paint() -> Explorer:
        explorer = cachescope.read(cachescope.sample(sample)).explore()
        overview = explorer.pane("Overview")
        for plot in (
            overview.causes_plot,
            overview.outcomes_plot,
            overview.timeline_plot,
            overview.graphs_plot,
        ):
            plot.dark = False
        return explorer

    assert benchmark(paint).pane("Overview").causes.total > 0


@pytest.fixture(scope="module")
def ten_thousand() -> cachescope.Scope:
    path = Path(__file__).parent / "test_what_if.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "CACHESCOPE_WHAT_IF_RUNS", "100")
        spec = importlib.util.spec_from_file_location("repeated", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    scope: cachescope.Scope = module.Repeated().scope()
    return scope


@pytest.mark.benchmark(group="views")
@pytest.mark.parametrize("without", [LEAK, "inductor_configs", "gm"])
def test_toggle(without: str, ten_thousand: cachescope.Scope, benchmark: Any) -> None:
    """Switch a form or field off and on again in turn: answer, figure, and the list of lookups that change sides."""
    view = WhatIfView(ten_thousand)
    view.rates_plot.dark = False
    states = itertools.cycle([[without], []])

    def toggle() -> None:
        view.tree.off = next(states)

    benchmark(toggle)
    view.tree.off = [without]
    assert view.changed.total > 1000
    benchmark.extra_info["lookups"] = len(ten_thousand.lookups)


@pytest.mark.benchmark(group="views")
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filter(filters: dict[str, Any], benchmark: Any) -> None:
    """Filter 100,000 lookups, sorted by compile time, and fetch the page that is shown."""
    one = lookups_frame(cachescope.read(cachescope.sample("tour")))
    parts = [
        one.assign(run=one["run"] + 6 * part, reason=one["reason"] + f" ({part})") for part in range(2084)
    ]
    rows = LookupRows(pd.concat(parts, ignore_index=True))
    rows.order("time_taken_ns", False)
    table = Table(rows, "lookups")

    def filtered() -> int:
        rows.filter(filters)
        table.refresh()
        return table.total

    assert benchmark(filtered) > 0
    benchmark.extra_info["lookups"] = len(rows.frame)
