"""Did it hit, and when: rates, outcomes by run and cache, lookups over time, runs by graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cachescope.analysis.rates import grouped, rates
from cachescope.answers.chosen import Chosen
from cachescope.answers.read import Read
from cachescope.answers.summary import compile_time, predicted_lookups, seen_text
from cachescope.figures.graph_grid import runs_by_graph
from cachescope.figures.over_time import timeline
from cachescope.figures.rates import outcomes
from cachescope.figures.texts import run_labels
from cachescope.report.blocks import Block, Drawing, Numbers, Section, Table, table
from cachescope.report.layout import Line
from cachescope.report.tables import Column, shared, timed
from cachescope.terms import HOW_TO_RECORD
from cachescope.wording import percent

if TYPE_CHECKING:
    import pandas as pd


# The columns that figures of lookups read: the others need not be redacted.
_DRAWN: Final = [
    "lookup", "run", "order", "time", "end_time", "cache", "cache_key", "outcome", "compile_id", "direction",
    "function", "file", "line", "time_taken_ns",
]  # fmt: skip


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
        drawing = Drawing("Outcomes by cache and run", outcomes, drawn_lookups(scope))
        parts += [Numbers(rate_numbers(Chosen(scope))), drawing, _rates(scope)]
    return Section("hits", "Did it hit?", sentence, tuple(parts))


def time_section(scope: Read) -> Section:
    """Where in a job the misses are."""
    sentence = (
        "Every lookup at its time, with the compile that followed where it did not hit; then each run beside each graph,"
        " which shows whether one graph misses everywhere or one run misses everything."
    )
    drawn = drawn_lookups(scope)
    parts: tuple[Block, ...] = (Line("No lookup was read: nothing to place."),)
    if scope.facts.lookups:
        grid = Drawing("Outcomes, runs by graphs", runs_by_graph, drawn)
        parts = (Drawing("Lookups over time", timeline, drawn), grid)
    return Section("time", "When and where did it miss?", sentence, parts)


def drawn_lookups(scope: Read) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The frames that figures of lookups are drawn from."""
    return scope.lookups[_DRAWN], scope.runs[["run", "rank", "start_time", "end_time"]]


def rate_numbers(chosen: Chosen) -> tuple[tuple[str, str, str], ...]:
    """The hit rate in four ways, each with what it is of."""
    rate, facts = chosen.rate, chosen.read.facts
    runs = [rates(rows) for rows in grouped(chosen.rows, lambda row: (row.run,)).values()]
    all_hit = sum(row.hits == row.lookups for row in runs)
    caches = {cache: rates(rows) for (cache,), rows in grouped(chosen.rows, lambda row: (row.cache,)).items()}
    predicted = predicted_lookups(facts, chosen.rows)
    also = (
        ""
        if not predicted
        else ", predicted"
        if predicted == len(chosen)
        else f", {predicted:,} of them predicted"
    )
    return (
        ("Hit rate by count", percent(rate.hit_rate, "–"), f"{rate.hits:,} of {seen_text(rate)}{also}"),
        ("By compile time", percent(rate.time_hit_rate, "–"), compile_time(rate)),
        ("By run", f"{all_hit:,} of {len(runs):,}", "runs in which every lookup hit"),
        ("By cache", " · ".join(percent(row.hit_rate, "–") for row in caches.values()), " · ".join(caches)),
    )


def _rates(scope: Read) -> Table:
    labels = run_labels(scope.runs)
    groups = grouped(scope.facts.lookups.values(), lambda row: (row.run, row.cache))
    rows = [(labels[run], cache, rates(lookups)) for (run, cache), lookups in groups.items()]
    is_any_unknown = any(rate.unknown for *_, rate in rows)
    columns = (
        Column("Run", "word", lambda row: row[0]),
        Column("Cache", "word", lambda row: row[1]),
        Column("Lookups", "number", lambda row: row[2].lookups),
        Column("Hits", "number", lambda row: row[2].hits),
        Column("Unknown", "number", lambda row: row[2].unknown if is_any_unknown else None, is_optional=True),
        Column("Hit rate", "number", lambda row: shared(row[2].hit_rate)),
        Column("By compile time", "number", lambda row: shared(row[2].time_hit_rate)),
        Column("Time lost", "number", lambda row: timed(row[2].time_lost_ns)),
    )
    source = 'scope.hit_rates(by=["run", "cache"])'
    return table("Hit rates by run and cache", columns, rows, "runs and caches", source)
