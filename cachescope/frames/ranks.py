"""The frame of differences between the ranks of a job."""

from __future__ import annotations

from typing import Final

from cachescope.columns import FLAG, TEXT, TUPLE, WHOLE, Column, Frame

RANK_DIFFERENCES: Final = Frame(
    "rank_differences",
    "one field in which some ranks of a job differ from the majority, and those ranks",
    (
        Column("field", TEXT, "path of the field"),
        Column("ranks", TUPLE, "the ranks that differ; all of them if there is no majority"),
        Column("has_majority", FLAG, "whether more than half of the ranks have the same value"),
        Column("ranks_compared", WHOLE, "ranks that looked up the same graph at the same place"),
        Column("values", WHOLE, "different values among them"),
        Column("graphs", WHOLE, "places of the program where they differ: a compile, a cache, a direction"),
        Column("misses", WHOLE, "lookups of these ranks at these places that did not hit"),
        Column("majority_value", TEXT, "the value of the majority, as torch printed it",
               missing="no majority, or the majority lacks the field"),
        Column("other_value", TEXT, "the value of the first rank that differs", missing="it has no such field"),
    ),
)  # fmt: skip
