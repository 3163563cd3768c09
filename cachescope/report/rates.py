"""Hit rates, as numbers, as a table, and over time where starts are a day or a commit apart."""

from __future__ import annotations

from cachescope.analysis.rates import grouped, rates
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import day_of, is_spread, trend_rows
from cachescope.answers.recording import Recording
from cachescope.answers.summary import compile_time, predicted_lookups, seen_text
from cachescope.figures.folding import folded_runs
from cachescope.figures.rates import trend
from cachescope.report.blocks import MOST_ROWS, Block, Column, Drawing, Table, shared, table, timed
from cachescope.wording import percent


def rate_numbers(chosen: Chosen) -> tuple[tuple[str, str, str], ...]:
    """The hit rate in four ways, each with what it is of."""
    rate = rates(chosen.rows)
    runs = [rates(rows) for rows in grouped(chosen.rows, lambda row: (row.run,)).values()]
    all_hit = sum(row.hits == row.lookups for row in runs)
    caches = {cache: rates(rows) for (cache,), rows in grouped(chosen.rows, lambda row: (row.cache,)).items()}
    predicted = predicted_lookups(chosen.read.facts, chosen.rows)
    of_them = f"{predicted:,} of them " if predicted < len(chosen) else ""
    also = f", {of_them}predicted" if predicted else ""
    return (
        ("Hit rate by count", percent(rate.hit_rate, "–"), f"{rate.hits:,} of {seen_text(rate)}{also}"),
        ("By compile time", percent(rate.time_hit_rate, "–"), compile_time(rate)),
        ("By run", f"{all_hit:,} of {len(runs):,}", "runs in which every lookup hit"),
        ("By cache", " · ".join(percent(row.hit_rate, "–") for row in caches.values()), " · ".join(caches)),
    )


def rates_table(scope: Recording) -> Table:
    """The rates of each run and cache; of many runs, of those that went alike, the most time lost first."""
    lookups = scope.facts.lookups.values()
    folded = folded_runs(((row.run, (row.cache, row.outcome)) for row in lookups), scope.facts.runs.values())
    groups = grouped(lookups, lambda row: (folded.row_of[row.run], row.cache))
    rows = [(folded.names[at], cache, rates(some)) for (at, cache), some in groups.items()]
    if folded.folded:
        rows.sort(key=lambda row: -(row[2].time_lost_ns or 0))
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


def trend_blocks(read: Recording, most: int = MOST_ROWS) -> list[Block]:
    """How it went day by day and commit by commit; nothing where all is of one day."""
    columns = (
        Column("Day", "word", day_of),
        Column("Commit", "word", "commit", is_optional=True),
        Column("Starts", "number", "starts"),
        Column("Hit rate", "number", lambda row: shared(row.hit_rate)),
        Column("Compiled after misses", "number", lambda row: timed(row.time_lost_ns)),
        Column("Known avoidable", "number", lambda row: timed(row.avoidable_ns), is_optional=True),
    )
    if not is_spread(read):
        return []
    rows, name = trend_rows(read, by_day=True), "Over time, the newest first"
    listed = table(name, columns, rows[::-1], "days and commits", "scope.trend", most)
    return [Drawing("Day by day and commit by commit", trend, (rows,)), listed]
