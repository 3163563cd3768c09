"""Rows of the frames of a replay under other keys, as objects. The columns are described where the frames are declared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WhatIfRate:
    """A row of the frame ``what_if_rates``."""

    when: str
    lookups: int
    hits: int
    misses: int
    bypasses: int
    unknown: int
    hit_rate: float | None
    time_saved_ns: int | None
    time_lost_ns: int | None
    time_hit_rate: float | None
    undecided: int


@dataclass(frozen=True, slots=True)
class WhatIfCause:
    """A row of the frame ``what_if_causes``."""

    cause: int
    verdict: str
    summary: str
    misses: int
    hits_after: int
    unknown: int
    time_won_ns: int | None
    why: str | None


@dataclass(frozen=True, slots=True)
class CauseSaving:
    """A row of the frame ``cause_savings``."""

    cause: int
    verdict: str
    summary: str
    fields: tuple[str, ...]
    misses: int
    time_lost_ns: int | None
    hits_after: int
    time_won_ns: int | None
    unknown: int
    staggered: int
    staggered_time_ns: int | None
    why: str | None


@dataclass(frozen=True, slots=True)
class WhatIfRun:
    """A row of the frame ``what_if_runs``."""

    run: int
    lookups: int
    hits: int
    hits_after: int
    unknown: int
    hit_rate: float | None
    hit_rate_after: float | None
    time_won_ns: int | None


@dataclass(frozen=True, slots=True)
class WhatIfDifference:
    """A row of the frame ``what_if_differences``."""

    lookup: int
    run: int
    outcome: str
    expected: str
    reason: str


@dataclass(frozen=True, slots=True)
class WhatIfWarning:
    """A row of the frame ``what_if_warnings``."""

    what_if_key: str
    what: str
    entry: int
    other_entry: int
    cache_key: str
    other_key: str
    code_key: str
    other_code_key: str


@dataclass(frozen=True, slots=True)
class SensitivityRow:
    """A row of the frame ``sensitivity``."""

    fields: tuple[str, ...]
    misses_alone: int
    time_alone_ns: int | None
    misses_together: int
    staggered: int
    staggered_time_ns: int | None
    needs_all: bool
    unknown: int
    example_lookup: int
    affects: str
    same_code: int
    different_code: int
    safety: str
    advice: str
