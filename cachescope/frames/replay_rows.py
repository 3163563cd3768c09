"""Rows of a replay under other keys: lookups that would have hit, and fields that would help."""

from __future__ import annotations

from cachescope.frames.answer_rows import RateRow
from cachescope.rows import col, row, same_as

# fmt: off


@row("what_if")
class WhatIfRow:
    """One lookup, before and after."""

    lookup: int = col("an id into lookups")
    run: int = col("the process, an id into runs")
    cache: str = col("aotautograd or fxgraph")
    cache_key: str | None = col("torch's key", missing="bypassed before there was a key")
    what_if_key: str | None = col(
        "cachescope's own key over the remaining hash details, never one of torch's", missing="there is no key")
    outcome: str = col("as recorded")
    outcome_after: str | None = col("what it would have been", missing="cannot be known: no details, or guards")
    changed_side: bool | None = col(
        "whether a miss would have hit", missing="cannot be known, for example because its outcome was not seen")
    time_won_ns: int | None = col(
        "compile time that the hit would have saved", unit="ns",
        missing="it would not have hit, or not recorded (AOTAutograd: counted at its FX graphs)")
    note: str | None = col("a note on the result", missing="nothing to note")


@row("what_if_rates")
class WhatIfRate:
    """All lookups, before or after."""

    when: str = col("before (as recorded) or after")
    lookups: int = same_as(RateRow, "lookups")
    hits: int = same_as(RateRow, "hits")
    misses: int = same_as(RateRow, "misses")
    bypasses: int = same_as(RateRow, "bypasses")
    unknown: int = same_as(RateRow, "unknown")
    hit_rate: float | None = same_as(RateRow, "hit_rate")
    time_saved_ns: int | None = same_as(RateRow, "time_saved_ns")
    time_lost_ns: int | None = same_as(RateRow, "time_lost_ns")
    time_hit_rate: float | None = same_as(RateRow, "time_hit_rate")
    undecided: int = col("misses for which it cannot be known whether they would have hit; counted as misses")


@row("what_if_causes")
class WhatIfCause:
    """One cause of misses."""

    cause: int = col("an id into causes")
    verdict: str = col("verdict of its root misses")
    summary: str = col("what it is, in a few words")
    misses: int = col("misses that have this cause")
    hits_after: int = col("how many of them would have hit")
    unknown: int = col("how many of them cannot be decided")
    time_won_ns: int | None = col("compile time saved", unit="ns", missing="none, or not recorded")
    why: str | None = col(
        "why some of its misses remain, or may remain, although all its changed fields are left out",
        missing="none remains, or its fields still count")


@row("cause_savings")
class CauseSaving:
    """One cause of misses other than first lookups, and the effect of leaving out its own changed fields."""

    cause: int = col("an id into causes")
    verdict: str = col("verdict of its root misses")
    summary: str = col("what it is, in a few words")
    fields: tuple[str, ...] = col("its changed fields; empty for other verdicts than key_changed")
    misses: int = col("misses that have this cause")
    time_lost_ns: int | None = col("compile time of those misses", unit="ns", missing="not recorded")
    hits_after: int = col("how many of them hit if these fields do not count")
    time_won_ns: int | None = col("compile time of those", unit="ns", missing="none, or not recorded")
    unknown: int = col("how many of its misses cannot be decided")
    staggered: int = col(
        "how many of the remaining misses would hit if the first compile of each key had ended before the others began")
    staggered_time_ns: int | None = col("compile time of those", unit="ns", missing="none, or not recorded")
    why: str | None = col("why some of its misses remain or may remain", missing="none remains")


@row("what_if_runs")
class WhatIfRun:
    """One run."""

    run: int = col("an id into runs")
    lookups: int = col("its lookups")
    hits: int = col("lookups that hit")
    hits_after: int = col("lookups that would have hit")
    unknown: int = col("misses for which it cannot be known whether they would have hit")
    hit_rate: float | None = col("hits / lookups whose outcome was seen", missing="there are none")
    hit_rate_after: float | None = col("the same for hits_after; what cannot be known counts as missed", missing="there are none")
    time_won_ns: int | None = col("compile time saved", unit="ns", missing="none, or not recorded")


@row("what_if_differences")
class WhatIfDifference:
    """One recorded outcome that differs from what the stored entries imply."""

    lookup: int = col("an id into lookups")
    run: int = col("the process, an id into runs")
    outcome: str = col("as recorded")
    expected: str = col("the outcome implied by the earlier lookups and entries")
    reason: str = col("why it was different, as far as is known; every replay treats it as an event")


@row("what_if_warnings")
class WhatIfWarning:
    """Two entries that would share a key but have different generated code, or different kernels compiled from
    it.
    """

    what_if_key: str = col("the key they would share")
    what: str = col("what differs: generated code or compiled kernels")
    entry: int = col("an id into entries")
    other_entry: int = col("an id into entries")
    cache_key: str = col("torch's key of the one")
    other_key: str = col("torch's key of the other")
    code_key: str = col("generated code of the one")
    other_code_key: str = col("generated code of the other")


@row("sensitivity")
class SensitivityRow:
    """One field, or one small set of fields."""

    fields: tuple[str, ...] = col("the fields that would not count")
    misses_alone: int = col("misses that hit if exactly these do not count")
    time_alone_ns: int | None = col("compile time of those misses", unit="ns", missing="not recorded")
    misses_together: int = col("how many of them no subset of these fields turns into hits")
    staggered: int = col(
        "further misses that would hit if the first compile of each key had ended before the others began: their runs compiled "
        "at the same time")
    staggered_time_ns: int | None = col("compile time of those", unit="ns", missing="none, or not recorded")
    needs_all: bool = col("an interaction: no subset of these fields turns any of them into a hit")
    unknown: int = col("misses whose outcome would not be known")
    example_lookup: int = col("the costliest of those misses")
    affects: str = col(
        "what torch's source shows about the fields, the strongest effect among them: graph, inputs, generated code, unknown or "
        "host; see cachescope.fields()")
    same_code: int = col("pairs of entries that differ only in these fields and have the same code")
    different_code: int = col("pairs of entries that differ only in these fields and have different code")
    safety: str = col("whether they may be left out, judged by both: safe, unknown, unsafe, or program (what is compiled)")
    advice: str = col("the same in words")


@row("evidence")
class EvidenceRow:
    """One set of fields that are the only difference between entries of one graph."""

    fields: tuple[str, ...] = col("the fields")
    pairs: int = col("pairs of FX entries that differ only in these fields")
    same_code: int = col("how many of them have the same generated code, and no compiled kernel known to differ")
    same_binaries: int = col("how many of those have compiled kernels that are known to be equal")
    different_code: int = col("pairs with different generated code or different compiled kernels")
    entry: int = col("an example, with different code if there is one")
    other_entry: int = col("the other entry of the example")
