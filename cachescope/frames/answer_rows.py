"""Rows of the frames of results, as objects. The columns are described where the frames are declared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MissRow:
    """A row of the frame ``misses``."""

    lookup: int
    verdict: str
    kind: str
    baseline: str | None
    baseline_lookup: int | None
    baseline_entry: int | None
    changed: tuple[str, ...]
    root: bool
    cause: int
    reason: str
    evidence: str
    evidence_text: str


@dataclass(frozen=True, slots=True)
class CauseRow:
    """A row of the frame ``causes``."""

    cause: int
    verdict: str
    kind: str
    fields: tuple[str, ...]
    misses: int
    roots: int
    runs: tuple[int, ...]
    ranks: tuple[int, ...]
    time_lost_ns: int | None
    summary: str
    advice: str | None


@dataclass(frozen=True, slots=True)
class RateRow:
    """A row of the frame ``hit_rates``."""

    lookups: int
    hits: int
    misses: int
    bypasses: int
    unknown: int
    hit_rate: float | None
    time_saved_ns: int | None
    time_lost_ns: int | None
    time_hit_rate: float | None


@dataclass(frozen=True, slots=True)
class PredictionRow:
    """A row of the frame ``predictions``."""

    entry: int
    cache: str
    cache_key: str
    will_hit: str
    is_unsafe: bool | None
    fields: tuple[str, ...]
    reason: str
    unsafe_reason: str | None
    assuming: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """A row of the frame ``coverage``."""

    cache: str
    cache_key: str | None
    held: str
    reason: str
    lookups: int | None = None
    lookup: int | None = None
    entry: int | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """A row of the frame ``built``."""

    cache: str
    cache_key: str | None
    name: str | None
    result: str
    before: str | None
    after: str | None
    evidence: str
    entry_before: int
    entry_after: int


@dataclass(frozen=True, slots=True)
class RankDifference:
    """A row of the frame ``rank_differences``."""

    field: str
    ranks: tuple[int, ...]
    has_majority: bool
    ranks_compared: int
    values: int
    graphs: int
    misses: int
    majority_value: str | None
    other_value: str | None


@dataclass(frozen=True, slots=True)
class FalseHit:
    """A row of the frame ``false_hits``."""

    kind: str
    cache: str
    cache_key: str | None
    evidence: str
    fields: tuple[str, ...]
    entries: tuple[int, ...]
    lookups: tuple[int, ...]
    runs: tuple[int, ...]
    hits: int


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row of the frame ``audit``."""

    level: str
    rule: str
    path: str
    offset: int | None
    cache: str | None
    named: str | None
    message: str
    advice: str
