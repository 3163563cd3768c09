"""How it went over time, as a figure and a table, where starts are a day or a commit apart."""

from __future__ import annotations

from cachescope.answers.recording import Recording
from cachescope.answers.trend import day_of, is_spread, trend_rows
from cachescope.figures.rates import trend as figure
from cachescope.report.blocks import MOST_ROWS, Block, Drawing, table
from cachescope.report.tables import Column, shared, timed


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
    return [Drawing("Day by day and commit by commit", figure, (rows,)), listed]
