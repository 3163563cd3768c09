"""What a pre-flight comes to: how many lookups would hit, why the others would not, and what they would cost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

from cachescope.analysis.rates import known_sum
from cachescope.answers.recording import Recording
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.paths import is_in_remote_cache
from cachescope.readers.logs.notes import LookupNote
from cachescope.terms import FXGRAPH
from cachescope.verdict_kinds import kind_of

OUTCOMES: Final = ("would_hit", "would_miss", "would_bypass", "disabled", "not_known")


@dataclass(frozen=True, slots=True, eq=False)
class PreflightAnswer:
    """What the lookups would come to that a real run would make."""

    counts: dict[str, int]  # how many lookups would end how
    processes: int  # how many processes would make them
    held_against: tuple[str, ...]  # the directories that they were checked against; otherwise the recordings
    # Why some lookups cannot be predicted, with their number; the most frequent reason first.
    not_known: tuple[tuple[str, int], ...]
    saved_ns: int | None  # the compile time that the hits would save; None if no entry says
    # The compile time that misses would cost, as recorded of the same key or of what they are compared with.
    cost_ns: int | None
    without_cost: int  # of how many missed FX graphs nothing says what they would cost
    read: Recording  # what it is of
    # The directories that the program itself would look in, if they are none of those that its lookups were checked against.
    elsewhere: tuple[str, ...] = ()

    @property
    def lookups(self) -> int:
        """How many lookups a real run would make."""
        return sum(self.counts.values())

    @property
    def hit_rate(self) -> float | None:
        """The share of lookups that would hit; those that cannot be predicted do not count as hits. None without lookups."""
        return self.counts["would_hit"] / self.lookups if self.lookups else None

    @classmethod
    def of(cls, read: Recording) -> Self:
        """Of the pre-flights in what was read."""
        facts = read.facts
        runs = {run.run for run in facts.runs.values() if run.is_preflight}
        rows = [row for row in facts.lookups.values() if row.run in runs]
        counts = Counter(row.outcome for row in rows)
        open_ = Counter(row.prediction or "" for row in rows if row.outcome == "not_known")
        missed = [row for row in rows if row.cache == FXGRAPH and row.outcome == "would_miss"]
        costs = [_cost(read, row) for row in missed]
        recorded = tuple(run.source for run in facts.runs.values() if not run.is_preflight)
        return cls(
            {outcome: counts.get(outcome, 0) for outcome in OUTCOMES},
            len({row.run for row in rows}),
            read.tables.cache_roots or recorded,
            tuple(open_.most_common()),
            known_sum(row.time_saved_ns for row in rows if row.cache == FXGRAPH),
            known_sum(costs),
            costs.count(None),
            read,
            _elsewhere(read, rows),
        )


def notes_of(rows: Iterable[LookupRow]) -> Iterator[LookupNote]:
    """What a pre-flight noted of some lookups."""
    return (LookupNote.of_json(row.preflight_note) for row in rows if row.preflight_note is not None)


def named_directories(rows: Iterable[LookupRow]) -> list[str]:
    """The directories that lookups of pre-flights would use, in the order of the first of each."""
    return list(dict.fromkeys(note.cache_dir for note in notes_of(rows) if note.cache_dir is not None))


def _elsewhere(read: Recording, rows: Iterable[LookupRow]) -> tuple[str, ...]:
    """Directories of the program that nothing was checked against, where it was against directories."""
    # A mega-cache and a lock are files, and a remote cache is asked besides.
    roots = [one for one in read.tables.cache_roots if not (is_in_remote_cache(one) or os.path.isfile(one))]
    meant = dict.fromkeys(
        note.cache_dir for note in notes_of(rows) if note.cache_dir is not None and note.is_local
    )
    given = {os.path.realpath(root) for root in roots}
    return tuple(one for one in meant if given and os.path.realpath(one) not in given)


def _cost(read: Recording, row: LookupRow) -> int | None:
    """What compiling took where it was recorded: of the same key, else of what the miss is compared with."""
    facts = read.facts
    same = [
        other.time_taken_ns
        for other in facts.lookups.values()
        if other.cache_key == row.cache_key and other.time_taken_ns is not None
    ]
    if same:
        return same[-1]
    miss = facts.misses.get(row.lookup)
    if miss is None or kind_of(miss).may_be_first:
        return None
    if miss.baseline_lookup is not None:
        return facts.lookups[miss.baseline_lookup].time_taken_ns
    return None if miss.baseline_entry is None else facts.entries[miss.baseline_entry].time_taken_ns
