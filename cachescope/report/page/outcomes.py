"""Did it hit, and when: rates, outcomes by run and cache, lookups over time, runs by graphs."""

from __future__ import annotations

from cachescope.answers.chosen import Chosen
from cachescope.answers.read import Read
from cachescope.figures.graph_grid import runs_by_graph
from cachescope.figures.over_time import timeline
from cachescope.figures.rates import outcomes
from cachescope.report.blocks import Block, Drawing, Numbers, Section
from cachescope.report.layout import Line
from cachescope.report.rates import rate_numbers, rates_table
from cachescope.report.trend import trend_blocks
from cachescope.terms import HOW_TO_RECORD


def outcomes_section(scope: Read) -> Section:
    """Question 1: did it hit."""
    sentence = (
        "A lookup is one attempt of torch.compile to find one key in one cache. The hit rate is given by count, and by"
        " compile time: the share of it that hits saved."
    )
    parts: list[Block] = []
    if not scope.facts.lookups:
        parts.append(Line(f"No lookup was read, so there is no hit rate. To record some: {HOW_TO_RECORD}."))
    else:
        drawing = Drawing("Outcomes by cache and run", outcomes, (scope.shown.rows, scope.tables.runs.rows))
        parts += [Numbers(rate_numbers(Chosen(scope))), *trend_blocks(scope), drawing, rates_table(scope)]
    return Section("hits", "Did it hit?", sentence, tuple(parts))


def time_section(scope: Read) -> Section:
    """Where in a job the misses are."""
    sentence = (
        "Every lookup at its time, with the compile that followed where it did not hit; then each run beside each graph,"
        " which shows whether one graph misses everywhere or one run misses everything."
    )
    drawn = (scope.shown.rows, scope.tables.runs.rows)
    parts: tuple[Block, ...] = (Line("No lookup was read: nothing to place."),)
    if scope.facts.lookups:
        grid = Drawing("Outcomes, runs by graphs", runs_by_graph, drawn)
        parts = (Drawing("Lookups over time", timeline, drawn), grid)
    return Section("time", "When and where did it miss?", sentence, parts)
