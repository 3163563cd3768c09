"""Rows of differences between the ranks of a job."""

from __future__ import annotations

from cachescope.rows import col, row

# fmt: off


@row("rank_differences")
class RankDifference:
    """One field in which some ranks of a job differ from the majority, and those ranks."""

    field: str = col("path of the field")
    ranks: tuple[int, ...] = col("the ranks that differ; all of them if there is no majority")
    has_majority: bool = col("whether more than half of the ranks have the same value")
    ranks_compared: int = col("ranks that looked up the same graph at the same place")
    values: int = col("different values among them")
    graphs: int = col("places of the program where they differ: a compile, a cache, a direction")
    misses: int = col("lookups of these ranks at these places that did not hit")
    majority_value: str | None = col(
        "the value of the majority, as torch printed it", missing="no majority, or the majority lacks the field")
    other_value: str | None = col("the value of the first rank that differs", missing="it has no such field")
