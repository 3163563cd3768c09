"""What a pre-flight comes to: how many lookups would hit, why the others would not, and what they would cost.

And what to set so that a program finds its entries, found by trying: only what a pre-flight confirmed is a fix.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from cachescope.analysis.fixes import HASH_SEED, HASH_SEED_WAY, VARIABLE, Setting, Way, ways_to_set
from cachescope.analysis.rates import known_sum
from cachescope.analysis.verdicts.change_advice import process_advice
from cachescope.answers.cards import Cards
from cachescope.answers.chosen import Chosen
from cachescope.answers.recording import Recording
from cachescope.components import Detail
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.key_fields import OF_THE_INSTALLATION
from cachescope.keys.paths import is_in_remote_cache
from cachescope.readers.logs.notes import LookupNote
from cachescope.terms import FXGRAPH
from cachescope.verdict_kinds import kind_of

OUTCOMES: Final = ("would_hit", "would_miss", "would_bypass", "disabled", "not_known")

Trial = Callable[[Sequence[Setting]], Recording | None]
"""A pre-flight with some settings; None if the program failed with them."""

_DIRECTORY: Final = "TORCHINDUCTOR_CACHE_DIR"
_MOST_ROUNDS: Final = 5
# A program that fails with so many settings may fail with any.
_MOST_FAILED: Final = 12


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
    meant = dict.fromkeys(note.cache_dir for note in notes_of(rows) if note.cache_dir and note.is_local)
    given = {os.path.realpath(root) for root in roots}
    return tuple(one for one in meant if given and os.path.realpath(one) not in given)


def _cost(read: Recording, row: LookupRow) -> int | None:
    """What compiling took where it was recorded: of the same key, else of what the miss is compared with."""
    facts = read.facts
    same = [other.time_taken_ns for other in facts.lookups.values() if other.cache_key == row.cache_key]
    if known := [ns for ns in same if ns is not None]:
        return known[-1]
    miss = facts.misses.get(row.lookup)
    if miss is None or kind_of(miss).may_be_first:
        return None
    base = facts.baseline_of(miss)
    return None if base is None else base.time_taken_ns


@dataclass(frozen=True, slots=True)
class Remaining:
    """A cause that no setting was found for."""

    summary: str
    misses: int  # the misses that it makes
    advice: str | None  # what can be done about it; it was not tried
    is_final: bool  # whether nothing that can be set helps: another torch, another machine


@dataclass(frozen=True, slots=True)
class Fix:
    """What to set, and what it comes to.

    Attributes
    ----------
    before, after : PreflightAnswer
        The pre-flights without the settings and with all of them.
    settings : tuple of Setting
        What to set; with each one less, fewer lookups would hit, or the program looks into another directory.
    remaining : tuple of Remaining
        Why the others still would not.
    elsewhere : tuple of str
        The directories into which the program looks instead, where that is among the settings.
    trials : int
        How many pre-flights were made.
    failed : tuple of tuple of Setting
        What was tried and the program failed with, so that it was left out.
    advice : tuple of str
        Of values of one process in the keys, such as a rank: what is better than to set them to what was stored. It was not tried.
    """

    before: PreflightAnswer
    after: PreflightAnswer
    settings: tuple[Setting, ...]
    remaining: tuple[Remaining, ...]
    elsewhere: tuple[str, ...]
    trials: int
    failed: tuple[Way, ...] = ()
    advice: tuple[str, ...] = ()

    @classmethod
    def of(cls, trial: Trial, environment: Mapping[str, str], directory: str | None = None) -> Self | None:
        """Look for the smallest settings with which the lookups would hit that would miss; None if the program failed."""
        search = _Search(trial, environment, directory)
        first = search.tried(())
        if first is None:
            return None
        settings, best = search.best(first)
        was_elsewhere = search.is_elsewhere(first) and not search.is_elsewhere(best)
        return cls(
            PreflightAnswer.of(first),
            PreflightAnswer.of(best),
            settings,
            tuple(_remaining(best)),
            tuple(named_directories(first.facts.lookups.values())) if was_elsewhere else (),
            search.trials,
            tuple(search.failed),
            tuple(_on_process_values(first)) if settings else (),
        )


class _Search:
    def __init__(self, trial: Trial, environment: Mapping[str, str], directory: str | None) -> None:
        self._trial = trial
        self._environment = environment
        self._directory = directory
        self._ways: dict[str, Sequence[Way]] = {}
        # Which way of each field is tried; one past the last where none helped.
        self._at: dict[str, int] = {}
        self._found: dict[tuple[Setting, ...], Recording | None] = {}
        self.failed: list[Way] = []
        self.trials = 0

    def tried(self, settings: tuple[Setting, ...]) -> Recording | None:
        """The pre-flight with some settings, made once; None if the program failed with them."""
        if settings not in self._found:
            self.trials += 1
            self._found[settings] = self._trial(settings)
        return self._found[settings]

    def best(self, first: Recording) -> tuple[tuple[Setting, ...], Recording]:
        """Try one way of each field after another, then leave out what is not needed: what is left, and the pre-flight with it."""
        if self._directory is not None and self.is_elsewhere(first):
            # Like the only way of a field.
            way = (Setting(VARIABLE, _DIRECTORY, os.path.abspath(self._directory)),)
            self._ways[_DIRECTORY], self._at[_DIRECTORY] = (way,), 0
        # What was tried with these very settings; nothing else is ever claimed.
        settings: tuple[Setting, ...] = ()
        best = latest = first
        for _ in range(_MOST_ROUNDS):
            self._go_on(latest)
            wanted = self._settings()
            if wanted in self._found:
                break
            found = self.tried(wanted) or self._tried_in_turn()
            latest = found or latest
            if found is not None and self._is_as_good(found, best):
                settings, best = self._settings(), found
        settings, best = self._needed(settings, best)
        return (settings, best) if self._is_steady(settings, best) else ((), first)

    def _tried_in_turn(self) -> Recording | None:
        """The last pre-flight that went well where one way after another is added: what it fails with gives way to the next."""
        wanted = dict(self._at)
        self._at = {field: len(ways) for field, ways in self._ways.items()}
        latest = None
        for field, first in wanted.items():
            ways = self._ways[field]
            for at in range(first, len(ways)):
                if len(self.failed) >= _MOST_FAILED:
                    return latest
                self._at[field] = at
                found = self.tried(self._settings())
                if found is not None:
                    latest = found
                    break
                self.failed.append(ways[at])
                self._at[field] = len(ways)
        return latest

    def _is_steady(self, settings: tuple[Setting, ...], best: Recording) -> bool:
        """Whether another pre-flight gives the same result: if sets have a different order in each process, hits may be luck."""
        names = {setting.name for setting in settings}
        is_seeded = HASH_SEED in names or self._environment.get(HASH_SEED, "random") != "random"
        if not settings or is_seeded or not any(HASH_SEED_WAY in ways for ways in self._ways.values()):
            return True
        self.trials += 1
        again = self._trial(settings)
        return again is not None and self._is_as_good(again, best)

    def _go_on(self, read: Recording) -> None:
        """Take the next way of each field that still differs."""
        for field, sides in _differing(read).items():
            if field in self._at:
                self._at[field] = min(self._at[field] + 1, len(self._ways[field]))
            else:
                details = read.tables.hash_details
                self._ways[field] = () if sides is None else ways_to_set(details, *sides, self._environment)
                self._at[field] = 0

    def _settings(self) -> tuple[Setting, ...]:
        ways = [of[self._at[field]] for field, of in self._ways.items() if self._at[field] < len(of)]
        return tuple(dict.fromkeys(setting for way in ways for setting in way))

    def _needed(
        self, settings: tuple[Setting, ...], best: Recording
    ) -> tuple[tuple[Setting, ...], Recording]:
        """Those without which fewer lookups would hit, and the pre-flight with them alone."""
        for setting in settings:
            fewer = tuple(one for one in settings if one != setting)
            found = self.tried(fewer)
            if found is not None and self._is_as_good(found, best):
                settings, best = fewer, found
        return settings, best

    def _is_as_good(self, one: Recording, other: Recording) -> bool:
        """Whether as many lookups would hit: one that is not known any more is no fix."""
        return self.is_elsewhere(one) <= self.is_elsewhere(other) and _hits(one) >= _hits(other)

    def is_elsewhere(self, read: Recording) -> bool:
        """Whether the program would look into another directory than it should."""
        if self._directory is None:
            return False
        wanted = os.path.realpath(self._directory)
        named = named_directories(read.facts.lookups.values())
        return any(os.path.realpath(name) != wanted for name in named)


def _differing(read: Recording) -> dict[str, tuple[Detail, Detail] | None]:
    """The fields that lookups of the pre-flight differ in; None for one whose stored value is not the same for all."""
    found: dict[str, tuple[Detail, Detail] | None] = {}
    for row in read.facts.lookups.values():
        if row.outcome != "would_miss":
            continue
        for stored, now in read.changed_details(row.lookup):
            if stored is None or now is None:
                continue
            known = found.setdefault(stored.field, (stored, now))
            if known is not None and known[0].detail_hash != stored.detail_hash:
                found[stored.field] = None
    return found


def _on_process_values(read: Recording) -> Iterator[str]:
    """What to do about each value of one process by which lookups differ, once."""
    missed = [row.lookup for row in read.facts.lookups.values() if row.outcome == "would_miss"]
    changes = (change for lookup in missed for change in read.changes(lookup))
    yield from dict.fromkeys(sentence for change in changes for sentence in process_advice(change))


def _hits(read: Recording) -> int:
    return sum(row.outcome == "would_hit" for row in read.facts.lookups.values())


def _remaining(read: Recording) -> list[Remaining]:
    runs = {run.run for run in read.facts.runs.values() if run.is_preflight}
    found = []
    chosen = Chosen.of_runs(read, runs)
    for card in Cards.of(chosen).cards:
        fields = card.row.fields
        is_final = bool(fields) and all(one.startswith(OF_THE_INSTALLATION) for one in fields)
        summary = ", ".join(f"{one.field} {one.summary}" for one in card.changes) or card.row.summary
        found.append(Remaining(summary, card.row.misses, card.advice or card.row.advice, is_final))
    first = sum(cause.misses for cause in chosen.causes if kind_of(cause).is_first)
    if first and not found:
        found.append(Remaining("first lookups: no entry of these graphs is known", first, None, False))
    return found
