"""The frame of lookups of some runs compared with those of others."""

from __future__ import annotations

from typing import Final

from cachescope.columns import TEXT, TUPLE, WHOLE, Column, Frame

COMPARED_LOOKUPS: Final = Frame(
    "compared_lookups",
    "one graph looked up by one or both of two sides, once for each time that a run looked it up",
    (
        Column("change", TEXT, "regressed: the side before hit more often than the side after; fixed: less often; same; only_before "
               "and only_after: the other side did not look it up, or not as often; not_known: an outcome that was not seen could "
               "change the result, or neither graph nor place is known"),
        Column("by", TEXT, "how the sides were aligned: key; graph: an equal graph under a different key, or one in the place of "
               "another; place: the compile of the function, if a side has no key or its details were not recorded",
               missing="nothing does"),
        Column("cache", TEXT, "aotautograd or fxgraph"),
        Column("direction", TEXT, "as in lookups", missing="not recorded"),
        Column("compile_id", TEXT, "as in lookups, of the side after if it has one", missing="not recorded"),
        Column("function", TEXT, "as in lookups, of the same side", missing="not recorded"),
        Column("before", TUPLE, "ids into lookups; one for each run of the side before that looked it up"),
        Column("after", TUPLE, "ids into lookups; one for each run of the side after that looked it up"),
        Column("hits_before", WHOLE, "how many of the lookups before hit"),
        Column("hits_after", WHOLE, "how many of the lookups after hit"),
        Column("fields", TUPLE, "fields of the keys whose hash differs, is new or is gone; empty if the keys are equal",
               missing="the details of one side were not recorded, or one side has no key, or did not look it up"),
    ),
)  # fmt: skip
