"""Rows of lookups of some runs compared with those of others, and of one directory or run compared with another."""

from __future__ import annotations

from cachescope.rows import col, row

# fmt: off


@row("compared_lookups")
class ComparedLookup:
    """One graph looked up by one or both of two sides, once for each time that a run looked it up."""

    change: str = col(
        "regressed: the side before hit more often than the side after; fixed: less often; same; only_before and only_after: the "
        "other side did not look it up, or not as often; not_known: an outcome that was not seen could change the result, or "
        "graphs and places are not recorded by which a lookup could belong to one of the other side")
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


@row("coverage")
class CoverageRow:
    """One key that a run looked up, or one entry of a cache directory, and whether a mega-cache holds it."""

    cache: str = col("for a lookup aotautograd or fxgraph, for an entry its kind")
    cache_key: str | None = col("the key", missing="torch made none, or the kind has none")
    held: str = col("yes, no or unknown; never: torch never puts this kind into a mega-cache")
    reason: str = col("one sentence")
    lookups: int | None = col("number of lookups of the key", missing="it is an entry", default=None)
    lookup: int | None = col("the first of them, an id into lookups", missing="it is an entry", default=None)
    entry: int | None = col("an id into entries", missing="it is a looked-up key", default=None)


@row("built")
class Built:
    """One item that two directories have under the same key, and whether both built it the same way."""

    cache: str = col("fxgraph, best_config (of a Triton kernel) or autotune (of max-autotune)")
    cache_key: str | None = col("the key, with equal guards", missing="max-autotune: its operator, inputs and device are equal")
    name: str | None = col("the operator or kernel", missing="not recorded, or an FX graph")
    result: str = col(
        "same; code, kernels or choice: these differ; times: the choice is the same, only the measured times differ; not_known")
    before: str | None = col("key of the generated code, configuration, or fastest choice", missing="none is named")
    after: str | None = col("the same for the other side", missing="none is named")
    evidence: str = col("what was compared, and how it differs")
    entry_before: int = col("an id into entries")
    entry_after: int = col("an id into entries")


@row("differences")
class DifferenceRow:
    """One field that differs between the paired keys of two sides."""

    group: int = col("number of the difference: keys that differ in the same fields in the same way")
    field: str = col("path of the field")
    kind: str = col("graph, tensor, value, opaque, new or gone")
    summary: str = col("what differs, in one line")
    before: str | None = col("the value as torch printed it, of the first pair", missing="the field is new")
    after: str | None = col("the value as torch printed it, of the first pair", missing="the field is gone")
    pairs: int = col("pairs of keys that differ this way")
