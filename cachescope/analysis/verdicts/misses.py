"""Missed lookups and why, held as columns: a fleet misses by the million, and for a few distinct reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from cachescope.analysis.history.lookups import Flags, Lookups
from cachescope.analysis.history.places_by_group import NONE, Numbers
from cachescope.analysis.history.rows import EntryRow, LookupRow
from cachescope.analysis.verdicts.baselines import Candidate
from cachescope.terms import Evidence
from cachescope.verdict_kinds import Verdict


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Miss:
    """One missed lookup, why it missed, and what it is compared with."""

    row: LookupRow
    why: Why
    baseline: Candidate | None
    root: bool
    cause: int
    follows: LookupRow | None
    """The lookup that missed first and caused this miss."""


class Misses(Sequence[Miss]):
    """All misses, in the order of the lookups: a sequence of rows, and the columns that they are made of.

    Attributes
    ----------
    lookups : Lookups
    at : array of int
        The place of each lookup that missed.
    whys : list of Why
        The distinct reasons.
    why : array of int
        The number of its reason.
    entries : sequence of EntryRow
        Those that misses are compared with.
    baseline, baseline_entry : array of int
        What it is compared with: the place of a lookup, or the number of one of `entries`; -1 otherwise.
    follows : array of int
        The number of the miss that it follows from; -1 for a root.
    is_root : array of bool
        Whether it does not only follow from another miss.
    cause : array of int
        The number of its cause; -1 before causes are known.
    """

    def __init__(
        self,
        lookups: Lookups,
        at: Numbers,
        whys: list[Why],
        why: Numbers,
        entries: Sequence[EntryRow],
        baseline: Numbers,
        baseline_entry: Numbers,
    ) -> None:
        self.lookups = lookups
        self.at = at
        self.whys = whys
        self.why = why
        self.entries = entries
        self.baseline = baseline
        self.baseline_entry = baseline_entry
        self.follows: Numbers = np.full(len(at), NONE, dtype=np.int64)
        self.is_root: Flags = np.ones(len(at), dtype=bool)
        self.cause: Numbers = np.full(len(at), NONE, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.at)

    @overload
    def __getitem__(self, number: int) -> Miss: ...
    @overload
    def __getitem__(self, number: slice) -> list[Miss]: ...
    def __getitem__(self, number: int | slice) -> Miss | list[Miss]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        follows = int(self.follows[number])
        return Miss(
            self.lookups[int(self.at[number])],
            self.why_of(number),
            self.baseline_of(number),
            bool(self.is_root[number]),
            int(self.cause[number]),
            None if follows == NONE else self.lookups[int(self.at[follows])],
        )

    def __iter__(self) -> Iterator[Miss]:
        return map(self.__getitem__, range(len(self)))

    def why_of(self, number: int) -> Why:
        """Why one of them missed."""
        return self.whys[int(self.why[number])]

    def baseline_of(self, number: int) -> Candidate | None:
        """What one of them is compared with."""
        if (entry := int(self.baseline_entry[number])) != NONE:
            return self.entries[entry]
        place = int(self.baseline[number])
        return None if place == NONE else self.lookups[place]

    def of_lookup(self, lookup: int) -> Miss | None:
        """The miss of a lookup, by its id; None if it did not miss."""
        place = self.lookups.place_of(lookup)
        if place is None:
            return None
        order, places = self._by_place
        number = int(np.searchsorted(places, place))
        is_there = number < len(places) and places[number] == place
        return self[int(order[number])] if is_there else None

    @cached_property
    def _by_place(self) -> tuple[Numbers, Numbers]:
        """The misses in the order of their places, and these."""
        order = np.argsort(self.at, kind="stable")
        return order, self.at[order]
