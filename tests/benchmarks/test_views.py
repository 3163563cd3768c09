"""What a person waits for in the explorer: the first picture, a toggle, a filter.

Aims of the design: first paint on the samples within 1.5 s of the cell's start (after imports; here without the
browser's part); a toggle to a redrawn What-if, a brush, a filter and a sort of Lookups within 100 ms at 10,000 and 300 ms
at 100,000. Where others use the machine, ``--benchmark-timer=time.process_time`` measures processor time. The lookups are made as in made_lookups.py.
"""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from benchmarks.made_lookups import LEAK, made_scope

import cachescope
from cachescope import figures
from cachescope.views.explorer import Explorer
from cachescope.views.lookups import LookupRows, listed_lookups
from cachescope.views.table import Table
from cachescope.views.what_if import WhatIfView

pytestmark = pytest.mark.benchmark(group="views")
FILTERS = [
    {"text": "epilogue"}, {"outcome": "full_miss", "cache": "fxgraph"}, {"run": 73, "cache": "fxgraph"}, {},
]  # fmt: skip


@pytest.mark.parametrize("sample", ["tour", "entry_truncated"])
def test_first_paint(sample: str, benchmark: Any) -> None:
    """Read a sample, make the explorer, and every figure of its first pane."""

    def paint() -> Explorer:
        explorer = cachescope.read(cachescope.sample(sample)).explore()
        overview = explorer.pane("Overview")
        for plot in (overview.outcomes.plot, overview.over_time.plot, overview.graphs.plot):
            plot.seen = True
        return explorer

    assert benchmark(paint).pane("Overview").cards.value


def test_sizes_of_many_entries(benchmark: Any) -> None:
    """The figure of a directory of 100,000 files."""
    some = cachescope.read(cachescope.sample("entry_truncated")).tables.entries.rows
    entries = [
        replace(some[at % len(some)], entry=at, path=f"/cache/{at % 5000:04x}/{at}", root="/cache")
        for at in range(100_000)
    ]
    figure = benchmark(figures.entry_sizes, entries)
    assert figure.data[0].values[0] == sum(row.size_bytes for row in entries)


@pytest.fixture(scope="module")
def ten_thousand() -> cachescope.Scope:
    return made_scope("varied", 10_000)


@pytest.fixture(scope="module", params=[10_000, 100_000])
def varied(request: pytest.FixtureRequest, ten_thousand: cachescope.Scope) -> cachescope.Scope:
    return ten_thousand if request.param == 10_000 else made_scope("varied", request.param)


@pytest.mark.parametrize("without", [LEAK, "inductor_configs", "gm"])
def test_toggle(without: str, varied: cachescope.Scope, benchmark: Any) -> None:
    """Switch a form or field off and on again in turn: answer, figure, and the list of lookups that change sides."""
    view = WhatIfView(varied)
    view.rates.plot.seen = True
    states = itertools.cycle([[without], []])

    def toggle() -> None:
        view.tree.off = next(states)

    benchmark(toggle)
    view.tree.off = [without]
    assert view.changed.total > 1000
    benchmark.extra_info["lookups"] = len(varied.lookups)


@pytest.fixture(scope="module", params=[10_000, 100_000])
def lookup_table(request: pytest.FixtureRequest) -> tuple[LookupRows, Table]:
    rows = LookupRows(list(listed_lookups(made_scope("mixed", request.param))))
    return rows, Table(rows, "lookups")


def test_compare(ten_thousand: cachescope.Scope, benchmark: Any) -> None:
    """Put the two sides of Compare the other way round: 100 lookups each, aligned, with their fields."""
    pane = ten_thousand.compare_view(0, 1)
    sides = itertools.cycle([((1,), (0,)), ((0,), (1,))])

    def pick() -> None:
        pane.picker.picked = ["A", list(next(sides)[0]), False, 0]

    benchmark(pick)
    assert pane.table.total == 100


@pytest.fixture(scope="module", params=[10_000, 100_000])
def explored(request: pytest.FixtureRequest) -> Explorer:
    explorer = made_scope("mixed", request.param).explore()
    overview = explorer.pane("Overview")
    for plot in (overview.outcomes.plot, overview.graphs.plot):
        plot.seen = True
    return explorer


@pytest.mark.parametrize("pane", ["Overview", "Lookups", "Why", "Compare", "Machines"])
def test_brush(pane: str, explored: Explorer, benchmark: Any) -> None:
    """Drag over a tenth of the time, here and there in turn: what is seen of the pane is counted and drawn again."""
    scope, explored.state.pane = explored.scope, pane
    times = scope.lookups["time"].sort_values().astype("int64").to_numpy()
    tenth = len(times) // 10
    tenths = [(int(times[n * tenth]), int(times[(n + 1) * tenth - 1])) for n in range(1, 9)]
    spans = itertools.cycle(tenths)

    def brush() -> None:
        explored.state.span = next(spans)

    benchmark(brush)
    assert explored.state.error == "" and f"{len(scope.lookups):,} lookups" in explored.span.said.value
    explored.state.span = None
    benchmark.extra_info["lookups"] = len(scope.lookups)


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filter(filters: dict[str, Any], lookup_table: tuple[LookupRows, Table], benchmark: Any) -> None:
    """Filter lookups, sorted by compile time, fold them, sum up their columns, and fetch the page that is shown."""
    rows, table = lookup_table
    rows.order("time_taken_ns", False)

    def filtered() -> int:
        rows.filter(filters)
        table.refresh()
        return table.total

    assert benchmark(filtered) > 0
    benchmark.extra_info["lookups"] = len(rows.rows)


@pytest.mark.parametrize("column", ["time_taken_ns", "reason", "cache_key"])
def test_sort(column: str, lookup_table: tuple[LookupRows, Table], benchmark: Any) -> None:
    """Sort lookups up and down in turn, and fetch the page that is shown."""
    rows, table = lookup_table
    rows.filter({})
    ways = itertools.cycle([[column, True], [column, False]])

    def sort() -> None:
        table.sort = next(ways)

    benchmark(sort)
    assert table.sort[0] == column and len(table.rows) == 50
    benchmark.extra_info["lookups"] = len(rows.rows)
