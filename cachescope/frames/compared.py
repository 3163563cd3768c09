"""Rows of lookups of some runs compared with those of others."""

from __future__ import annotations

from cachescope.rows import col, row

# fmt: off


@row("compared_lookups")
class ComparedLookup:
    """One graph looked up by one or both of two sides, once for each time that a run looked it up."""

    change: str = col(
        "regressed: the side before hit more often than the side after; fixed: less often; same; only_before and only_after: the "
        "other side did not look it up, or not as often; not_known: an outcome that was not seen could change the result, or "
        "neither graph nor place is known")
    by: str | None = col(
        "how the sides were aligned: key; graph: an equal graph under a different key, or one in the place of another; place: "
        "the compile of the function, if a side has no key or its details were not recorded",
        missing="nothing does")
    cache: str = col("aotautograd or fxgraph")
    direction: str | None = col("as in lookups", missing="not recorded")
    compile_id: str | None = col("as in lookups, of the side after if it has one", missing="not recorded")
    function: str | None = col("as in lookups, of the same side", missing="not recorded")
    before: tuple[int, ...] = col("ids into lookups; one for each run of the side before that looked it up")
    after: tuple[int, ...] = col("ids into lookups; one for each run of the side after that looked it up")
    hits_before: int = col("how many of the lookups before hit")
    hits_after: int = col("how many of the lookups after hit")
    fields: tuple[str, ...] | None = col(
        "fields of the keys whose hash differs, is new or is gone; empty if the keys are equal",
        missing="the details of one side were not recorded, or one side has no key, or did not look it up")
