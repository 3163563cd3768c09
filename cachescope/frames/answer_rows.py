"""Rows of results: misses and their causes, changed fields, hit rates, predictions, differences."""

from __future__ import annotations

from cachescope.rows import col, row
from cachescope.verdict_kinds import VERDICTS

# fmt: off


@row("misses")
class MissRow:
    """One lookup that did not hit."""

    lookup: int = col("an id into lookups")
    verdict: str = col("why it missed: " + ", ".join(VERDICTS))
    kind: str = col(
        "distinguishes causes with the same verdict: for entry_unavailable the reason, such as deleted or load error; for "
        "bypassed torch's reason; for guard_failed the key; for key_changed how the graph or torch changed; empty if the fields "
        "are enough")
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


@row("predictions")
class PredictionRow:
    """One FX or AOTAutograd entry, and whether a process would find it."""

    entry: int = col("an id into entries")
    cache: str = col("aotautograd or fxgraph")
    cache_key: str = col("its key")
    will_hit: str = col("yes, no or unknown, under the assumptions in the last column")
    is_unsafe: bool | None = col(
        "whether its code was made for a different CPU, which no key contains: numbers may be wrong, or the process may crash",
        missing="not known, or it would not be found")
    fields: tuple[str, ...] = col("fields in which the process differs from the one that made the entry")
    reason: str = col("one sentence")
    unsafe_reason: str | None = col(
        "why it is unsafe, or why that is not known", missing="it is safe as far as is known, or would not be found")
    assuming: tuple[str, ...] = col("what was assumed; empty if the process looked the key up")


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
