"""What runs store under their keys: recorded runs, and pre-flights, which predict what a real run would store."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from cachescope.analysis.preflight.would_find import Candidate, Key, Sure
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.readers.logs.preflight_notes import LookupNote
from cachescope.terms import AOTAUTOGRAD, MISSED


class StoredByRuns:
    """Candidates by key, in the order in which they were stored."""

    def __init__(self) -> None:
        self._of_key: dict[Key, list[Candidate]] = defaultdict(list)

    def add(self, key: Key, candidate: Candidate) -> None:
        """Add what was stored under a key."""
        self._of_key[key].append(candidate)

    def under(self, key: Key) -> list[Candidate]:
        """What was stored under a key."""
        return self._of_key.get(key, [])

    @classmethod
    def by_recorded(cls, lookups: Sequence[LookupRow]) -> Self:
        """What recorded runs found or stored, as far as their logs tell; what became of it since is not known."""
        found = cls()
        graphs: dict[int, list[tuple[str, str | None]]] = defaultdict(list)
        for row in lookups:
            if row.aot_lookup is None or row.cache_key is None:
                continue
            if (row.cache_key, None) not in graphs[row.aot_lookup]:
                graphs[row.aot_lookup].append((row.cache_key, None))
        for row in lookups:
            if row.cache_key is None:
                continue
            is_there, why_not = _was_left(row)
            if is_there != "no":
                is_hit = row.outcome == "hit"
                one = Candidate(
                    f"what run {row.run} had {'found' if is_hit else 'stored'}",
                    is_there,
                    why_not,
                    row.guards_expr if is_hit else None,
                    are_guards_known=is_hit,
                    graphs=tuple(graphs.get(row.lookup, ())),
                )
                found.add((row.cache, row.cache_key), one)
        return found


def _was_left(row: LookupRow) -> tuple[Sure, str]:
    if row.outcome == "hit":
        return "yes", ""
    if row.outcome not in MISSED:
        return "no", ""
    if row.save_bypass or row.save_error or row.compile_error:
        return "no", "torch did not store it"
    if row.compile_ended is False:
        return "maybe", "its compile had not ended when the log did"
    return "yes", ""


@dataclass(frozen=True, slots=True)
class Command:
    """The pre-flights of one command: their traces are in one folder."""

    runs: tuple[RunRow, ...]

    @classmethod
    def all_of(cls, runs: Iterable[RunRow]) -> list[Self]:
        """The commands, in the order of their first processes."""
        of_folder: dict[str, list[RunRow]] = defaultdict(list)
        for run in runs:
            if run.is_preflight:
                of_folder[os.path.dirname(run.source)].append(run)
        return [cls(tuple(members)) for members in of_folder.values()]


class SiblingProcesses:
    """What the other processes of a command would store, as one of them sees it."""

    def __init__(self) -> None:
        self._stored: dict[Key, list[tuple[RunRow, LookupNote, Candidate]]] = defaultdict(list)

    def add(self, run: RunRow, note: LookupNote, key: Key, candidate: Candidate) -> None:
        """Note what a process would store after a lookup."""
        self._stored[key].append((run, note, candidate))

    def under(self, run: RunRow, note: LookupNote, key: Key) -> Iterator[Candidate]:
        """What lies under a key for a process, or may by the time it looks."""
        for other, of_other, candidate in self._stored.get(key, ()):
            if other.run == run.run or run.pid in of_other.ended_before:
                continue
            is_shared = note.is_local and of_other.is_local and of_other.cache_dir == note.cache_dir
            if not is_shared and not (note.is_remote and of_other.is_remote):
                continue  # neither finds what the other one stores
            what = f"what run {other.run} of the same command would store"
            if other.pid in note.ended_before:
                yield replace(candidate, what=what)
            else:
                yield replace(
                    candidate,
                    what=what,
                    is_there="maybe",
                    why_not="they run at the same time, and which is first is not known",
                )


def stored_candidate(
    row: LookupRow, note: LookupNote, graphs: Iterable[tuple[str, str | None]], is_there: Sure
) -> Candidate:
    """What a real run would store after a miss."""
    why_not = "" if is_there == "yes" else "whether the run would store it is not known"
    of_aot = tuple(graphs) if row.cache == AOTAUTOGRAD else ()
    return Candidate(
        "stored by this run itself", is_there, why_not, note.stored_guards or None, graphs=of_aot
    )
