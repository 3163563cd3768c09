"""The causes of misses, each where it struck: in all that was read, or in some of its lookups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from cachescope.analysis.differences import FieldChange
from cachescope.answers.chosen import Chosen
from cachescope.answers.explanation import Explanation, guard_miss
from cachescope.answers.names import baseline_name, lookup_in_run, lookup_name
from cachescope.answers.recording import Recording
from cachescope.frames.answer_rows import CauseRow, MissRow
from cachescope.terms import VLLM
from cachescope.verdict_kinds import kind_of

if TYPE_CHECKING:
    from cachescope.answers.guard_miss import GuardMiss

# A cause is one set of fields; the values in them may differ from miss to miss.
_ROOTS_TRIED: Final = 20
_OTHER_VALUES: Final = 3
# Traces that are read once more for a list of causes: some tenths of a second. One that is asked for alone is read whatever its size.
_MOST_BYTES: Final = 100_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """A root miss, and the lookups that missed because of it."""

    name: str
    followers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Struck:
    """One cause where it struck."""

    row: CauseRow  # counted there
    # How many misses it made there, in how many runs, and how many of them follow from no other.
    misses: int
    runs: int
    roots: int
    time_lost_ns: int | None  # what those misses cost
    first: MissRow  # the first root miss
    baseline: str | None  # what that one was compared with
    changes: tuple[FieldChange, ...]  # what changed for that one
    # The same field changed otherwise, where one field alone made the cause.
    other_values: tuple[tuple[int, str], ...]
    places: tuple[Place, ...]  # the first root misses
    # Of guard misses, the size and the line of the first root, where traces tell that are quickly read.
    guards: GuardMiss | None = None
    is_of_vllm: bool = False  # whether the misses are of vLLM's own lookups

    @property
    def advice(self) -> str | None:
        """What can be done; of guard misses for the first root, where its size is known."""
        return self.row.advice if self.guards is None else self.guards.advice

    @classmethod
    def of(cls, chosen: Chosen, cause: CauseRow, places: int) -> Self:
        """The cause where it struck the chosen lookups; the first so many places."""
        read, facts = chosen.read, chosen.read.facts
        # May be the misses of a fleet: they are not gone through.
        roots = chosen.roots_of(cause.cause) or chosen.misses_of(cause.cause)
        told = roots[0]
        if kind_of(cause).is_recompile:
            # An AOTAutograd lookup without hash details is told by the graphs below.
            told = next((miss for miss in chosen.misses_of(cause.cause) if miss.changed), told)
        changes = read.changes(told.lookup)
        return cls(
            row=cause,
            misses=cause.misses,
            runs=len(cause.runs),
            roots=len(roots),
            time_lost_ns=cause.time_lost_ns,
            first=told,
            baseline=baseline_name(facts, told),
            changes=changes,
            other_values=tuple(_other_values(read, roots, changes[0])) if len(changes) == 1 else (),
            places=tuple(_place(read, root) for root in roots[:places]),
            guards=guard_miss(read, roots[0], _MOST_BYTES),
            is_of_vllm=facts.lookups[roots[0].lookup].cache == VLLM,
        )


@dataclass(frozen=True, slots=True)
class Causes:
    """The causes but for first lookups, in which there is nothing to explain: the costliest first."""

    struck: tuple[Struck, ...]  # the first of them
    # How many further ones there are, and how many misses they made.
    more: int
    more_misses: int

    @classmethod
    def of(cls, read: Recording, chosen: Chosen | None = None, most: int = 10, places: int = 2) -> Self:
        """The causes that struck some lookups, or any.

        Parameters
        ----------
        read : Recording
        chosen : Chosen, optional
            Only causes that struck these lookups, and of them only where they did.
        most, places : int
            How many causes are looked into, and how many places of each.
        """
        among = Chosen(read) if chosen is None else chosen
        every = [cause for cause in among.causes if not kind_of(cause).is_first]
        rest = every[most:]
        return cls(
            tuple(Struck.of(among, cause, places) for cause in every[:most]),
            len(rest),
            sum(cause.misses for cause in rest),
        )


def ways(read: Recording, cause: int, most: int) -> list[Explanation]:
    """The explanation of the costliest root of a cause, and of others whose values changed otherwise."""
    facts = read.facts
    roots = [miss.lookup for miss in facts.misses_of(cause) if miss.root]
    roots.sort(key=lambda lookup: -(facts.lookups[lookup].time_taken_ns or 0))
    found: dict[object, int] = {}
    for root in roots[:_ROOTS_TRIED]:
        # Graphs differ from one another anyway: that they all changed is one way.
        way = tuple("" if change.diff else change.summary for change in read.changes(root))
        found.setdefault(way or facts.misses[root].reason, root)
    return [Explanation.of(read, root) for root in list(found.values())[:most]]


def _other_values(read: Recording, roots: Sequence[MissRow], first: FieldChange) -> Iterator[tuple[int, str]]:
    # Graphs differ from one another anyway.
    if first.field == "gm":
        return
    seen = {first.summary}
    pairs = {(first.before, first.after)}
    for root in roots[1:_ROOTS_TRIED]:
        if len(seen) > _OTHER_VALUES:
            return
        for change in read.changes(root.lookup):
            is_reversed = (change.after, change.before) in pairs
            # Ranks that begin at once are compared with each other.
            if change.summary not in seen and not (is_reversed and change.process_values):
                seen.add(change.summary)
                pairs.add((change.before, change.after))
                yield read.facts.lookups[root.lookup].run, change.summary


def _place(read: Recording, root: MissRow) -> Place:
    facts = read.facts
    row = facts.lookups[root.lookup]
    return Place(lookup_in_run(facts, row), tuple(lookup_name(other) for other in facts.followers_of(root)))
