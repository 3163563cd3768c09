"""Rows of checks: the bars of a check, keys that seem to stand for more than one thing, the findings of an audit."""

from __future__ import annotations

from cachescope.rows import col, row

# fmt: off


@row("checks")
class Bar:
    """One bar of a check."""

    bar: str = col("min_hit_rate or max_time_lost; against a base no_new_cause, base_hit_rate or base_avoidable")
    wanted: float | None = col(
        "at least this hit rate, at most this time, at most this many new causes", missing="nothing in the base shows it")
    found: float | None = col("the value found", missing="nothing that was recorded shows it")
    unit: str = col("of wanted and found: share, ns or causes")
    passed: bool = col("whether the bar is met; a value that is not known does not meet it")
    reason: str = col("one sentence")
    causes: tuple[int, ...] = col("the causes of the failure, ids into causes; empty if the bar is met", default=())


@row("false_hits", frozen=False)
class FalseHit:
    """One key that seems to stand for more than one thing: a warning with its evidence, never a certainty."""

    kind: str = col(
        "different_code, different_graphs, different_devices, different_details, different_versions, different_settings or "
        "missing_field")
    cache: str = col("aotautograd or fxgraph")
    cache_key: str | None = col("the key", missing="it concerns all keys of an older torch, which lack the field")
    evidence: str = col("what was seen, in one sentence")
    fields: tuple[str, ...] = col("what differs, or what the key lacks: fields, columns of runs or contexts, settings")
    entries: tuple[int, ...] = col("the entries that differ, ids into entries", default=())
    lookups: tuple[int, ...] = col("the lookups of the key, ids into lookups", default=())
    runs: tuple[int, ...] = col("the runs that made them, ids into runs", default=())
    hits: int = col("how many of these lookups hit: only a hit can be a false one", default=0)


@row("audit")
class AuditRow:
    """One finding in a cache, before it is loaded."""

    level: str = col(
        "danger (made to run code, or everybody can write), warning (not as torch writes it), unproven (runs code that nothing "
        "vouches for) or note")
    rule: str = col('what was looked for: ``describe("audit_rules")``')
    path: str = col("the file or folder, as reached from the source given")
    offset: int | None = col(
        "where in the file it begins", unit="bytes", missing="it concerns the whole file, or is in compressed data")
    cache: str | None = col(
        'what the file is: ``describe("entry_kinds")``; for any other pickle, versioned, torch_save or pickle',
        missing="it does not concern the content")
    named: str | None = col("the function or class that a pickle names", missing="it names none")
    message: str = col("what was found, in one sentence")
    sha256: str | None = col("the digest of a file with code that nothing vouches for", missing="it is of another level")
    advice: str = col("what to do about it")
