"""What a missed lookup is compared with: an earlier lookup, or an entry, of the same cache and direction.

Prefer the same graph, then the same compile id in the run before, then the fewest changed fields, then the
latest (design: the nearest key alone misleads, since most new graphs differ from an old one in `gm` only).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cachescope.analysis.align import GraphAligner
from cachescope.analysis.fields import is_input
from cachescope.analysis.history import EntryRow, LookupRow, RunRow
from cachescope.analysis.timeline import is_older
from cachescope.details import HashDetails

# Runs that are tried, from the latest back, for a graph that this one may have replaced.
_RUNS_ALIGNED: Final = 16
_NEARER_TRIED: Final = 32
_ABOUT_AS_ALIKE: Final = 0.15
# An entry has no place in a run: only the code can tell that it is an earlier form of the graph.
_LIKE_ENOUGH: Final = 0.75

Candidate = LookupRow | EntryRow
_Kind = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user asked to compare with: ``auto``, ``nearest``, a run, or a key."""

    mode: str = "auto"
    run: int | None = None
    cache_key: str | None = None


class Baselines:
    """Grows with the history: `add` a lookup once it has been judged, `find` a baseline for the next."""

    def __init__(
        self, details: HashDetails, runs: Sequence[RunRow], entries: Sequence[EntryRow], choice: Choice
    ) -> None:
        self._details = details
        self._choice = choice
        self._rank = {run.run: run.rank for run in runs}
        self._aligner = GraphAligner(details)
        self._same_graph: dict[tuple[str, str | None, int], list[LookupRow]] = defaultdict(list)
        self._all: dict[_Kind, list[LookupRow]] = defaultdict(list)
        self._of_run: dict[tuple[int, str, str | None], list[LookupRow]] = defaultdict(list)
        self._entries: dict[_Kind, list[EntryRow]] = defaultdict(list)
        for entry in entries:
            if entry.detail_set is not None:
                self._entries[entry.cache, entry.direction].append(entry)
        self._keys_seen: set[str] = set()
        self._partners: dict[tuple[int, int, str, str | None], dict[int, LookupRow]] = {}
        self._rows_of_run: dict[tuple[int, str, str | None], list[LookupRow]] = defaultdict(list)

    def announce(self, rows: Iterable[LookupRow]) -> None:
        """All lookups there will be: aligning two runs needs the later graphs as well."""
        for row in rows:
            self._rows_of_run[row.run, row.cache, row.direction].append(row)

    def add(self, row: LookupRow) -> None:
        """Make a lookup a candidate for those after it."""
        if row.cache_key is not None:
            self._keys_seen.add(row.cache_key)
        if row.detail_set is None:
            return
        self._all[row.cache, row.direction].append(row)
        self._of_run[row.run, row.cache, row.direction].append(row)
        if row.gm is not None:
            self._same_graph[row.cache, row.direction, row.gm].append(row)

    def find(self, row: LookupRow) -> Candidate | None:
        """The baseline of a missed lookup whose details are known; None where the graph is new."""
        choice = self._choice
        if choice.mode == "key":
            return self._with_key(row)
        if choice.mode == "nearest":
            return self._nearest(row, [*self._all[row.cache, row.direction], *self._older_entries(row)])
        same: list[Candidate] = [
            *self._same_graph[row.cache, row.direction, row.gm if row.gm is not None else -1],
            *(e for e in self._older_entries(row) if e.gm == row.gm),
        ]
        if choice.mode == "run":
            same = [c for c in same if isinstance(c, LookupRow) and c.run == choice.run]
        same = [c for c in same if not self._is_another_call(row, c)]
        if same:
            return self._prefer(row, same)
        return self._replaced(row)

    def nearer(self, row: LookupRow, baseline: Candidate) -> tuple[Candidate, tuple[str, ...]] | None:
        """A key of the same graph that differs in some of the fields only; None where there is none.

        The run before is what a person thinks of; the nearest key is what the cache could have used.
        """
        changed = set(self._changed(baseline, row))
        best: tuple[Candidate, tuple[str, ...]] | None = None
        for candidate in self._same_graph[row.cache, row.direction, row.gm if row.gm is not None else -1][
            -_NEARER_TRIED:
        ]:
            fields = self._changed(candidate, row)
            if 0 < len(fields) < (len(best[1]) if best else len(changed)) and changed.issuperset(fields):
                best = candidate, fields
        return best

    def _with_key(self, row: LookupRow) -> Candidate | None:
        candidates: list[Candidate] = [
            *self._all[row.cache, row.direction],
            *self._entries[row.cache, row.direction],
        ]
        return next((c for c in reversed(candidates) if c.cache_key == self._choice.cache_key), None)

    def _older_entries(self, row: LookupRow) -> list[EntryRow]:
        """Entries that were there when the lookup was made, and that no recorded lookup stands for."""
        return [
            e
            for e in self._entries[row.cache, row.direction]
            if is_older(e, row) and e.cache_key not in self._keys_seen
        ]

    def _is_another_call(self, row: LookupRow, candidate: Candidate) -> bool:
        """An equal graph elsewhere in the same run, on other inputs: two calls of it, and none has changed."""
        if not isinstance(candidate, LookupRow) or candidate.run != row.run:
            return False
        if row.compile_id is None or candidate.compile_id is None:
            return False
        if row.compile_id.split("/")[0] == candidate.compile_id.split("/")[0]:
            return False
        changed = self._changed(candidate, row)
        return bool(changed) and all(is_input(field) for field in changed)

    def _changed(self, candidate: Candidate, row: LookupRow) -> tuple[str, ...]:
        assert candidate.detail_set is not None and row.detail_set is not None
        return self._details.changed_fields(candidate.detail_set, row.detail_set)

    def _prefer(self, row: LookupRow, same_graph: list[Candidate]) -> Candidate:
        lookups = [c for c in same_graph if isinstance(c, LookupRow)]
        before = self._run_before(row, [c.run for c in lookups if c.run != row.run])
        at_same_place = [
            c
            for c in lookups
            if c.run == before and c.compile_id == row.compile_id and c.compile_id is not None
        ]
        return self._nearest(row, at_same_place or same_graph)  # type: ignore[return-value]

    def _run_before(self, row: LookupRow, runs: list[int]) -> int | None:
        """The latest of some runs, one of the same rank if there is one."""
        same_rank = [run for run in runs if self._rank.get(run) == self._rank.get(row.run)]
        return max(same_rank or runs, default=None)

    def _nearest(self, row: LookupRow, candidates: Sequence[Candidate]) -> Candidate | None:
        """The candidate with the fewest changed fields; of equals the latest, a lookup before an entry."""
        best: Candidate | None = None
        best_rank: tuple[int, bool, int] | None = None
        counts: dict[int, int] = {}
        for at, candidate in enumerate(candidates):
            assert candidate.detail_set is not None
            if candidate.detail_set not in counts:
                counts[candidate.detail_set] = len(self._changed(candidate, row))
            rank = (-counts[candidate.detail_set], isinstance(candidate, LookupRow), at)
            if best_rank is None or rank > best_rank:
                best, best_rank = candidate, rank
        return best

    def _replaced(self, row: LookupRow) -> Candidate | None:
        """The graph of an earlier run, or of an entry, in whose place this one stands."""
        if row.gm is None:
            return None
        kind = (row.cache, row.direction)
        runs = sorted({c.run for c in self._all[kind] if c.run != row.run}, reverse=True)
        if self._choice.mode == "run":
            runs = [run for run in runs if run == self._choice.run]
        runs.sort(key=lambda run: self._rank.get(run) != self._rank.get(row.run))
        found: list[tuple[float, LookupRow]] = []
        for run in runs[:_RUNS_ALIGNED]:
            pairs = self._partners.get((run, row.run, *kind))
            if pairs is None:
                before, after = self._of_run[run, *kind], self._rows_of_run[row.run, *kind]
                pairs = self._partners[run, row.run, *kind] = self._aligner.partners(before, after)
            if (partner := pairs.get(row.lookup)) is not None:
                found.append((self._aligner.score(partner, row), partner))
        if found:
            # Runs of another program may lie between: the latest that is about as alike as the most alike.
            enough = max(score for score, _ in found) - _ABOUT_AS_ALIKE
            return next(partner for score, partner in found if score >= enough)
        return None if runs else self._like_entry(row)

    def _like_entry(self, row: LookupRow) -> EntryRow | None:
        assert row.detail_set is not None
        best, best_likeness = None, _LIKE_ENOUGH
        for entry in self._older_entries(row):
            assert entry.detail_set is not None
            found = self._aligner.code_likeness(entry.detail_set, row.detail_set)
            if found >= best_likeness:
                best, best_likeness = entry, found
        return best
