"""Rows of results: misses and their causes, changed fields, hit rates, how starts went, differences between ranks."""

from __future__ import annotations

from cachescope.frames.recorded_rows import RunRow
from cachescope.rows import Time, col, row, same_as
from cachescope.verdict_kinds import VERDICTS

# fmt: off


@row("misses", frozen=False)
class MissRow:
    """One lookup that did not hit."""

    lookup: int = col("an id into lookups")
    verdict: str = col("why it missed: " + ", ".join(VERDICTS))
    kind: str = col(
        "distinguishes causes with the same verdict: for entry_unavailable the reason, such as deleted or load error; for "
        "bypassed torch's reason; for guard_failed the key; for key_changed how the graph or torch changed, or which guard failed "
        "if it was compiled again in one process; empty if the fields are enough")
    baseline: str | None = col("what it is compared with, as ``lookup 3`` or ``entry 5``", missing="nothing")
    baseline_lookup: int | None = col("the earlier lookup it is compared with", missing="an entry, or none")
    baseline_entry: int | None = col("the entry it is compared with", missing="a lookup, or none")
    changed: tuple[str, ...] = col(
        "fields whose hash differs, is new or is gone; for vLLM its factors, as in vllm_changes, and env_hash if only the hash "
        "of the environment is known; empty unless key_changed")
    root: bool = col("False if it only follows from another miss, as an FX miss follows from the AOTAutograd miss of its graph")
    cause: int = col("an id into causes")
    reason: str = col("one sentence")
    evidence: str = col("the kind of evidence for the verdict: recorded, inferred or not_known")
    evidence_text: str = col("the evidence, in one sentence")


@row("causes")
class CauseRow:
    """One distinct reason; first lookups are also a cause, with the verdict first_lookup."""

    cause: int = col("number of the cause, in order of time lost, then of misses")
    verdict: str = col("verdict of its root misses")
    kind: str = col(
        "distinguishes causes with the same verdict and fields: why an entry was unavailable, how the code of a graph changed (a "
        "digest), from which torch to which")
    fields: tuple[str, ...] = col("the changed fields of its root misses")
    misses: int = col("misses with this cause, including consequences")
    roots: int = col("misses that do not follow from another one")
    runs: tuple[int, ...] = col("ids of the runs")
    ranks: tuple[int, ...] = col("ranks, where known")
    time_lost_ns: int | None = col(
        "Inductor's compile time after its FX misses; AOTAutograd misses add nothing, so no time is counted twice; for vLLM what "
        "its log says, unless compile times of torch were read",
        unit="ns", missing="not recorded")
    summary: str = col("the cause in a few words")
    advice: str | None = col("what sets the field and how to keep it equal", missing="nothing certain to say")


@row("changes")
class ChangeRow:
    """One field of a key that differs from the baseline: the frame of an explanation."""

    field: str = col("path of the field")
    kind: str = col("graph, tensor, value, opaque, new or gone")
    summary: str = col("what changed, in one line")
    before: str | None = col("the value as torch printed it", missing="the field is new")
    after: str | None = col("the value as torch printed it", missing="the field is gone")
    differs_by: tuple[str, ...] = col(
        "the process-specific values in which it differs: rank, host, path, port, time, address, pid, random number; empty if "
        "none is recognised")
    is_certain: bool | None = col(
        "whether the logs show that these are values of both processes, or nothing else has this form; False if only their name "
        "or their look suggests it",
        missing="none is recognised")


@row("hit_rates")
class RateRow:
    """One group of lookups; the columns that it is grouped by come first."""

    lookups: int = col("lookups")
    hits: int = col("lookups that hit")
    misses: int = col("full misses and guard misses")
    bypasses: int = col("lookups bypassed or with caching switched off")
    unknown: int = col("lookups whose outcome was not seen: the log ends before it, or its line is missing")
    hit_rate: float | None = col(
        "hits / lookups with a known outcome; bypassed and disabled ones count, and lower it", missing="there are none")
    time_saved_ns: int | None = col("compile time saved by FX hits", unit="ns", missing="not recorded")
    time_lost_ns: int | None = col(
        "compile time after FX lookups that did not hit; if no time of torch was read, that of vLLM's own", unit="ns",
        missing="not recorded")
    time_hit_rate: float | None = col(
        "time saved / (time saved + time lost)", missing="the times of the hits, or those of the others, are not recorded")


@row("trend")
class TrendRow:
    """One start: a process, or all ranks of a job, with how its lookups went."""

    run: int = col("the process, of a job its first rank; an id into runs")
    start_time: Time | None = col("when the first of its processes began", unit="UTC", missing="the log has no times")
    label: str | None = same_as(RunRow, "label")
    commit: str | None = same_as(RunRow, "commit")
    starts: int = col("1; where rows are added up, how many there are")
    lookups: int = same_as(RateRow, "lookups")
    hits: int = same_as(RateRow, "hits")
    unknown: int = same_as(RateRow, "unknown")
    hit_rate: float | None = same_as(RateRow, "hit_rate")
    time_lost_ns: int | None = same_as(RateRow, "time_lost_ns")
    avoidable_ns: int | None = col(
        "how much of what its slowest rank compiled after misses is known to have been avoidable: compiled before within what was read, "
        "or caused by a setting, a folder or an order of starts", unit="ns", missing="no time of its misses is recorded")


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
