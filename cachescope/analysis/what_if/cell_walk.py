"""Walks the lookups of one key in one directory in time order: which entries there were, and what nothing explains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Literal, NamedTuple

from cachescope.analysis.what_if.recorded import NEVER


@dataclass(slots=True)
class Stored:
    """One entry under a key in a directory, from the position at which it was stored until it was gone."""

    since: int
    source: int
    """Position of the miss that stored it; -1 if it existed before, or came from elsewhere."""
    gone: int = NEVER
    guards: str | None = None
    has_known_guards: bool = False


class Step(NamedTuple):
    """One lookup, as far as it says what was stored."""

    at: int
    is_hit: bool
    is_guard_miss: bool
    guards: str | None
    is_without_guards: bool
    """Whether it would show the guards of the entry that it found: then there are none."""
    since: int
    """From which position its result exists; `NEVER` if it stored nothing."""


class Difference(NamedTuple):
    """A recorded outcome that does not follow from what was stored: something outside the recording happened."""

    position: int
    kind: Literal["gone", "came"]


class CellWalk:
    """The walk through one cell.

    Attributes
    ----------
    entries : list of Stored
        All of them, in the end.
    has_guards, was_removed : bool
        Whether some lookup shows guards, and whether entries came or went from outside.
    differences : list of Difference
    """

    def __init__(self, entries: Iterable[Stored], guards_of: Mapping[int, str | None]) -> None:
        self.entries = list(entries)
        self.has_guards = False
        self.was_removed = False
        self.differences: list[Difference] = []
        self._guards_of = guards_of
        self._first = NEVER
        self._there = _StoredNow()
        self._coming = [(entry.since, number, entry) for number, entry in enumerate(self.entries)]
        heapify(self._coming)

    def walk(self, steps: Iterable[Step]) -> None:
        """Follow the lookups in time order, and record what does not follow from what was stored."""
        for step in steps:
            self._first = min(self._first, step.at)
            while self._coming and self._coming[0][0] <= step.at:
                self._there.add(heappop(self._coming)[2])
            before = self._there
            if not step.is_hit:
                self._miss(step)
            elif not before.entries:
                before.add(self._found_nevertheless(step.at))
            self.has_guards |= bool(step.guards)
            before.learn_guards(step)

    def _miss(self, step: Step) -> None:
        if step.is_guard_miss:
            self.has_guards = True
            if not self.entries:
                self._there.add(self._add(Stored(0, -1)))
        elif self._there.entries:
            self.differences.append(Difference(step.at, "gone"))
            self.was_removed = True
            for entry in self._there.entries:
                entry.gone = step.at
            self._there = _StoredNow()
        if step.since < NEVER:
            is_known = step.at in self._guards_of
            entry = Stored(step.since, step.at, NEVER, self._guards_of.get(step.at), is_known)
            heappush(self._coming, (step.since, len(self.entries), self._add(entry)))

    def _found_nevertheless(self, at: int) -> Stored:
        """The entry of a recorded hit for which no stored entry is known."""
        if self._coming and self._coming[0][2].source >= 0:
            # It was stored sooner than the records show.
            first = heappop(self._coming)[2]
            first.since = at
            return first
        if self._first == at:
            # It existed before the recording; a copied directory has the times of the copy.
            entry = heappop(self._coming)[2] if self._coming else self._add(Stored(0, -1))
            entry.since = 0
            return entry
        self.differences.append(Difference(at, "came"))
        self.was_removed = True
        return self._add(Stored(at, -1))

    def _add(self, entry: Stored) -> Stored:
        self.entries.append(entry)
        return entry


class _StoredNow:
    """The entries that exist at one time, and what is known of their guards: they come one by one and go together."""

    def __init__(self) -> None:
        self.entries: list[Stored] = []
        self._known: set[str | None] = set()
        self._unknown: list[Stored] = []

    def add(self, entry: Stored) -> None:
        self.entries.append(entry)
        if entry.has_known_guards:
            self._known.add(entry.guards)
        else:
            self._unknown.append(entry)

    def learn_guards(self, step: Step) -> None:
        """Record the guards that a lookup shows, if only one candidate's are unknown."""
        if len(self._unknown) != 1 or step.guards in self._known:
            return
        # For a miss, torch prints the guards of a candidate; for a hit without guards, nothing (2.8 and later).
        if step.guards or step.is_without_guards:
            entry = self._unknown.pop()
            entry.guards, entry.has_known_guards = step.guards or None, True
            self._known.add(entry.guards)
