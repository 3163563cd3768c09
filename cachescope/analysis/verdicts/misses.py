"""Missed lookups, why they missed, and what they are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cachescope.analysis.differences import FieldChange
from cachescope.frames.answer_rows import MissRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.terms import Evidence
from cachescope.verdict_kinds import Kind, SameCause, Verdict, kind_of, same_cause

Candidate = LookupRow | EntryRow


@dataclass(frozen=True)
class Why:
    """Why a lookup missed; one for all that missed for the same reason.

    `kind` distinguishes causes of one verdict. `evidence` says what the verdict rests on: ``recorded`` (torch or the
    operating system wrote it), ``inferred``, or ``not_known``; `evidence_text` gives the details.
    """

    verdict: Verdict
    reason: str
    evidence: Evidence
    evidence_text: str
    changed: tuple[str, ...] = ()
    kind: str = ""

    @cached_property
    def what(self) -> Kind:
        """What holds for its verdict and kind."""
        return kind_of(self)

    @cached_property
    def same_cause(self) -> SameCause:
        """What misses for the same cause have in common with it."""
        return same_cause(self, self.changed)


@dataclass(slots=True, eq=False)
class Miss:
    """One missed lookup, why it missed, and what it is compared with."""

    index: int  # of the lookup, in time order
    row: LookupRow
    why: Why
    baseline: Candidate | None
    changes: tuple[FieldChange, ...] = ()  # of one of vLLM's own lookups: what changed in its key
    cause: int = -1  # not known at first
    follows: Miss | None = None  # the miss that caused this one

    @property
    def root(self) -> bool:
        """Whether it does not only follow from another miss."""
        return self.follows is None


class VerdictsSoFar:
    """Why each lookup missed, by its index in time order, as far as it is judged; and what it is compared with: the index of a lookup, or an entry."""

    def __init__(self, lookups: int) -> None:
        self.why: list[Why | None] = [None] * lookups
        self.baseline: list[int | EntryRow | None] = [None] * lookups

    def record(self, at: int, why: Why, baseline: int | EntryRow | None = None) -> None:
        """Note why a lookup missed, and what it is compared with."""
        self.why[at] = why
        self.baseline[at] = baseline


def miss_row(miss: Miss) -> MissRow:
    """The row of a miss."""
    why, baseline = miss.why, miss.baseline
    lookup = baseline.lookup if isinstance(baseline, LookupRow) else None
    entry = baseline.entry if isinstance(baseline, EntryRow) else None
    named = None if entry is None else f"entry {entry}"
    # One for each of a hundred thousand.
    return MissRow(
        lookup=miss.row.lookup,
        verdict=why.verdict,
        kind=why.kind,
        baseline=named if lookup is None else f"lookup {lookup}",
        baseline_lookup=lookup,
        baseline_entry=entry,
        changed=why.changed,
        root=miss.root,
        cause=miss.cause,
        reason=why.reason,
        evidence=why.evidence,
        evidence_text=why.evidence_text,
    )
