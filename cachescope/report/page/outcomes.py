"""Did it hit, and when: rates, outcomes by run and cache, lookups over time, runs by graphs."""

from __future__ import annotations

from collections.abc import Iterator

from cachescope.answers.chosen import Chosen
from cachescope.answers.read import Read
from cachescope.figures.graph_grid import runs_by_graph
from cachescope.figures.over_time import timeline
from cachescope.figures.rates import outcomes
from cachescope.report.blocks import Block, Drawing, Numbers
from cachescope.report.layout import Line
from cachescope.report.rates import rate_numbers, rates_table
from cachescope.report.trend import trend_blocks
from cachescope.terms import HOW_TO_RECORD


def rates_blocks(scope: Read) -> Iterator[Block]:
    """Question 1: did it hit."""
    if not scope.facts.lookups:
        yield Line(f"No lookup was read, so there is no hit rate. To record some: {HOW_TO_RECORD}.")
        return
    yield Numbers(rate_numbers(Chosen(scope)))
    yield from trend_blocks(scope)
    yield Drawing("Outcomes by cache and run", outcomes, (scope.shown.rows, scope.tables.runs.rows))
    yield rates_table(scope)


def time_blocks(scope: Read) -> Iterator[Block]:
    """Where in a job the misses are."""
    drawn = (scope.shown.rows, scope.tables.runs.rows)
    if not scope.facts.lookups:
        yield Line("No lookup was read: nothing to place.")
        return
    yield Drawing("Lookups over time", timeline, drawn)
    yield Drawing("Outcomes, runs by graphs", runs_by_graph, drawn)
