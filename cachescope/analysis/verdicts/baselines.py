"""What a missed lookup is compared with: an earlier lookup, or an entry, of the same cache and direction.

Prefer the same graph, then the same compile id in the run before, then the fewest changed fields, then the
latest (design: the nearest key alone misleads, since most new graphs differ from an old one in `gm` only). But a
key of the same graph that differs in fewer fields than the run before is preferred to it: the cache could have
used that key.
A key that was still being compiled at the lookup could not be used, so it is no baseline.
Lookups are named by their place in time order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cachescope.analysis.fields import is_input
from cachescope.analysis.history.entry_times import LONG_AGO, NEVER, EntryTimes
from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import MISSING
from cachescope.analysis.history.places_by_group import NONE, Grouped, Numbers, numbered, paired
from cachescope.analysis.history.rows import EntryRow, LookupRow, RunRow
from cachescope.analysis.verdicts.candidate_sets import CandidateSets
from cachescope.analysis.verdicts.nearness import Nearness
from cachescope.analysis.verdicts.rank_fields import RankFields
from cachescope.analysis.verdicts.recompiles import Recompiles
from cachescope.analysis.verdicts.replaced_graphs import ReplacedGraphs
from cachescope.analysis.verdicts.stored_candidates import StoredCandidates
from cachescope.details import HashDetails

_NEARER_TRIED: Final = 32
# Lookups of one graph that are processed together.
_AT_ONCE: Final = 4096
_NOT_ASKED: Final = -2

Candidate = LookupRow | EntryRow


@dataclass(frozen=True, slots=True)
class Nearer:
    """A lookup that is nearer than a baseline, and in how many fields the baseline differs."""

    row: LookupRow
    apart: int


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user asked to compare with: ``auto``, ``nearest``, a run, or a key."""

    mode: str = "auto"
    run: int | None = None
    cache_key: str | None = None


class Baselines:
    """Finds the baseline of a lookup among all earlier lookups and the entries that existed."""

    def __init__(
        self,
        history: History,
        details: HashDetails,
        choice: Choice,
    ) -> None:
        runs = history.runs
        self._rows = lookups = list(history.lookups)
        self._details = details
        self._choice = choice
        self._run: Numbers = np.array([row.run for row in lookups], dtype=np.int64)
        self._frame = numbered([_frame_of(row) for row in lookups])
        has_details = numbered([None if row.detail_set is None else row.cache for row in lookups])
        gm = [NONE if row.gm is None else row.gm for row in lookups]
        kind = paired(has_details, numbered([row.direction for row in lookups]))
        self._graph = paired(kind, np.array(gm, dtype=np.int64))
        self._of_kind = Grouped(kind)
        self._of_graph = Grouped(self._graph)
        compiles = numbered([row.compile_id for row in lookups])
        self._place, self._place_before = self._places(runs, compiles)
        self._in_place = Grouped(self._place)
        in_place = self._in_place.how_many_before(self._place_before)
        self._how_many_in_place = in_place.tolist()
        self._only_in_place = np.full(len(lookups), NONE, dtype=np.int64)
        is_one = in_place == 1
        self._only_in_place[is_one] = self._in_place.first(self._place_before[is_one])
        self._nearer: Numbers = np.full(len(lookups), _NOT_ASKED, dtype=np.int64)
        self._apart: Numbers = np.zeros(len(lookups), dtype=np.int64)
        time = history.lookups.time
        self._time: Numbers = np.where(time == MISSING, NEVER, time)
        self._end: Numbers = np.where(history.lookups.is_miss, history.end, LONG_AGO)
        self._place_of = {row.lookup: at for at, row in enumerate(lookups)}
        self._ranks = {run.run: run.rank for run in runs}
        self._rank_fields = RankFields(details)
        self._nearness = Nearness(details)
        self._stored = StoredCandidates(history.entries, lookups, EntryTimes(history))
        self._replaced = ReplacedGraphs(
            lookups, runs, details, self._stored, choice.run, self._are_concurrent
        )
        self._recompiles = Recompiles(lookups, self._nearness)
        self._sets: dict[tuple[object, ...], CandidateSets] = {}

    def find(self, at: int) -> Candidate | None:
        """The baseline of a missed lookup with known details; None if the graph is new."""
        row = self._rows[at]
        match self._choice.mode:
            case "key":
                return self._with_key(at)
            case "nearest":
                every = self._of_kind.before(self._of_kind.group[at], at)
                return self._nearest(at, self._sets_of_kind(at), every, self._stored.of_kind(row, at))
        in_place = self._in_the_run_before(at)
        if len(in_place) == 1:
            found: Candidate | None = self._rows[int(in_place[0])]
        else:
            candidates = (in_place, []) if len(in_place) else self._of_same_graph(at)
            found = self._nearest(at, self._sets_of_graph(at), *candidates)
        if isinstance(found, LookupRow) and self._are_concurrent(found, row):
            if self._holds_a_rank(found, row):
                return found
            lookups, entries = self._of_same_graph(at)
            found = self._nearest(at, self._sets_of_graph(at), self._ended(at, lookups), entries)
        if found is None:
            found = self._replaced.by(at)
        if found is None and self._choice.mode == "auto":
            found = self._recompiles.before(at)
        return found

    def nearer(self, at: int, found: Candidate) -> Nearer | None:
        """A key of the same graph that differs in fewer fields than the baseline; None if there is none.

        People think of the run before; the cache could have used the nearest key. A key whose
        changes are a subset of those against the run before is preferred.
        """
        if not self._may_have_nearer(at, found):
            return None
        if isinstance(found, LookupRow) and self._place_of[found.lookup] == self._only_in_place[at]:
            if self._nearer[at] == _NOT_ASKED:
                self._find_nearer_in_graph(int(self._graph[at]))
            nearer, apart = int(self._nearer[at]), int(self._apart[at])
        else:
            assert found.detail_set is not None
            places, fields = self._nearer_than([at], [found.detail_set])
            nearer, apart = int(places[0]), int(fields[0])
        return None if nearer == NONE else Nearer(self._rows[nearer], apart)

    def nearer_in_parts(self, at: int, found: Candidate, changed: Sequence[str]) -> LookupRow | None:
        """A key whose inputs differ in a proper subset of the parts: in the dtype, but not also in the shape."""
        if not self._may_have_nearer(at, found) or not all(map(is_input, changed)):
            return None
        tried = self._of_graph.before(int(self._graph[at]), at)[-_NEARER_TRIED:]
        tried = self._ended(at, self._without_other_calls(at, tried))
        return self._with_fewer_parts(self._rows[at], found, tried)

    def may_be_stored(self, at: int) -> bool:
        """Whether an entry of the same graph may have existed, and nothing shows whether it did."""
        return self._stored.may_be_of_graph(self._rows[at], at)

    def may_replace(self, at: int) -> Candidate | None:
        """A graph that a new one may be another form of, if nothing shows whether it is."""
        return self._replaced.may_be(at)

    def are_alike_by(self, found: Candidate, row: LookupRow) -> str:
        """A clause on why one graph is taken for another form of the other."""
        assert found.detail_set is not None and row.detail_set is not None
        share = self._replaced.code_likeness(found.detail_set, row.detail_set)
        text = f"{share * 100:.0f} % of their code is alike"
        if isinstance(found, LookupRow) and found.function is not None:
            is_one = (found.function, found.file) == (row.function, row.file)
            return f"both are of the function {row.function} of one file, and {text}" if is_one else text
        return text

    def are_of_one_process(self, found: Candidate, row: LookupRow) -> bool:
        """Whether the baseline is an earlier compile of the same function in the same process."""
        return (
            isinstance(found, LookupRow) and found.run == row.run and self._recompiles.is_before(found, row)
        )

    def are_concurrent(self, found: Candidate, row: LookupRow) -> bool:
        """Whether the baseline was still being compiled by another process when the lookup was made."""
        return isinstance(found, LookupRow) and self._are_concurrent(found, row)

    def _are_concurrent(self, found: LookupRow, row: LookupRow) -> bool:
        if found.run == row.run or row.time is None:
            return False
        return bool(self._end[self._place_of[found.lookup]] > row.time)

    def _ended(self, at: int, places: Numbers) -> Numbers:
        """The places without those still being compiled by another process."""
        has_ended = (self._end[places] <= self._time[at]) | (self._run[places] == self._run[at])
        kept: Numbers = places[has_ended]
        return kept

    def _holds_a_rank(self, found: LookupRow, row: LookupRow) -> bool:
        assert found.detail_set is not None and row.detail_set is not None
        ranks = self._ranks.get(found.run), self._ranks.get(row.run)
        return self._rank_fields.all_hold_a_rank(found.detail_set, row.detail_set, ranks)

    def _may_have_nearer(self, at: int, found: Candidate) -> bool:
        """Whether a lookup is compared with a key of the same graph, and not with one that the user chose."""
        row = self._rows[at]
        return (
            self._choice.mode == "auto"
            and row.gm is not None
            and found.gm == row.gm
            and found.direction == row.direction
        )

    def _find_nearer_in_graph(self, graph: int) -> None:
        """Find the nearer keys for all lookups of a graph that match one lookup of the run before."""
        lookups = self._of_graph.of(graph)
        lookups = lookups[self._only_in_place[lookups] != NONE]
        for start in range(0, len(lookups), _AT_ONCE):
            some = lookups[start : start + _AT_ONCE]
            sets = [self._rows[place].detail_set or 0 for place in self._only_in_place[some].tolist()]
            self._nearer[some], self._apart[some] = self._nearer_than(some, sets)

    def _nearer_than(self, at: Sequence[int] | Numbers, baselines: Sequence[int]) -> tuple[Numbers, Numbers]:
        """For some lookups of one graph, the place of a nearer one (-1 if none), and the distance to their baselines."""
        lookups = np.asarray(at)
        sets = self._sets_of_graph(int(lookups[0]))
        before = sets.before(lookups, _NEARER_TRIED)
        is_of_run = self._run[before] == self._run[lookups, None]
        has_ended = (self._end[before] <= self._time[lookups, None]) | is_of_run
        frame, own = self._frame[before], self._frame[lookups, None]
        is_elsewhere = is_of_run & (frame != own) & (frame != NONE) & (own != NONE)
        return sets.nearer(lookups, baselines, has_ended, is_elsewhere)

    def _with_fewer_parts(self, row: LookupRow, found: Candidate, tried: Numbers) -> LookupRow | None:
        assert found.detail_set is not None and row.detail_set is not None
        best, fewest = None, self._nearness.parts(found.detail_set, row.detail_set)
        if len(fewest) < 2:
            return None
        within = self._details.changed_fields(found.detail_set, row.detail_set)
        for place in tried[::-1].tolist():
            before = self._rows[place]
            assert before.detail_set is not None
            fields = self._details.changed_fields(before.detail_set, row.detail_set)
            if fields and set(fields) <= set(within):
                parts = self._nearness.parts(before.detail_set, row.detail_set)
                if parts < fewest:
                    best, fewest = before, parts
        return best

    def _with_key(self, at: int) -> Candidate | None:
        row, key = self._rows[at], self._choice.cache_key
        stored = [e for e in self._stored.with_kind(row) if self._stored.rows[e].cache_key == key]
        if stored:
            return self._stored.rows[stored[-1]]
        earlier = self._of_kind.before(self._of_kind.group[at], at)[::-1]
        return next((self._rows[p] for p in earlier.tolist() if self._rows[p].cache_key == key), None)

    def _in_the_run_before(self, at: int) -> Numbers:
        """Lookups of the same graph under the same compile id in the latest other run, one of the same rank if any."""
        return self._in_place.of(int(self._place_before[at]))[: self._how_many_in_place[at]]

    def _of_same_graph(self, at: int) -> tuple[Numbers, list[int]]:
        """Lookups of the same graph, except for other calls of it, and entries."""
        row = self._rows[at]
        is_of_run = self._choice.mode == "run"
        entries = [] if is_of_run else self._stored.of_graph(row, at)
        if row.gm is None:
            return np.zeros(0, dtype=np.int64), entries
        earlier = self._of_graph.before(self._graph[at], at)
        if is_of_run:
            earlier = earlier[self._run[earlier] == self._choice.run]
        return self._without_other_calls(at, earlier), entries

    def _without_other_calls(self, at: int, earlier: Numbers) -> Numbers:
        """Leave out an equal graph elsewhere in the same run on other inputs: it is another call, and neither has changed."""
        if self._frame[at] == NONE:
            return earlier
        frame = self._frame[earlier]
        elsewhere = (self._run[earlier] == self._run[at]) & (frame != self._frame[at]) & (frame != NONE)
        if not elsewhere.any():
            return earlier
        other_inputs = self._sets_of_graph(at).only_inputs_differ(at, earlier)
        kept: Numbers = earlier[~(elsewhere & other_inputs)]
        return kept

    def _nearest(
        self, at: int, sets: CandidateSets, lookups: Numbers, entries: Sequence[int]
    ) -> Candidate | None:
        """The candidate with the fewest changed fields; among equals the latest, a lookup before an entry."""
        lookup, entry = sets.nearest(at, lookups, entries)
        if entry is not None:
            return self._stored.rows[entry]
        return None if lookup is None else self._rows[lookup]

    def _sets_of_graph(self, at: int) -> CandidateSets:
        row = self._rows[at]
        return self._sets_of("graph", self._of_graph, at, self._stored.with_graph(row))

    def _sets_of_kind(self, at: int) -> CandidateSets:
        return self._sets_of("kind", self._of_kind, at, self._stored.with_kind(self._rows[at]))

    def _sets_of(self, name: str, grouped: Grouped, at: int, entries: Sequence[int]) -> CandidateSets:
        key = name, int(grouped.group[at])
        if key not in self._sets:
            places = grouped.of(key[1])
            lookups = {int(p): self._rows[p].detail_set or 0 for p in places.tolist()}
            stored = {e: self._stored.rows[e].detail_set or 0 for e in entries}
            self._sets[key] = CandidateSets(self._details, lookups, stored)
        return self._sets[key]

    def _places(self, runs: Sequence[RunRow], compiles: Numbers) -> tuple[Numbers, Numbers]:
        """For each lookup, a number for its graph, run and compile id, and the number of the same place in the run before."""
        before = self._runs_before(runs)
        is_known = (compiles != NONE) & np.array([row.gm is not None for row in self._rows], dtype=bool)
        graph = np.where(is_known, self._graph, NONE)
        # Numbered together, so that equal places get equal numbers.
        run = np.concatenate([self._run, before])
        places = paired(np.tile(graph, 2), run)
        places = np.where(run == NONE, NONE, paired(places, np.tile(compiles, 2)))
        return places[: len(self._run)], places[len(self._run) :]

    def _runs_before(self, runs: Sequence[RunRow]) -> Numbers:
        """For each lookup, the latest other run that had looked up its graph, one of the same rank if there is one."""
        if self._choice.mode == "run":
            chosen = NONE if self._choice.run is None else self._choice.run
            return np.where(self._run == chosen, NONE, chosen)
        rank_of_run = {run.run: run.rank for run in runs}
        rank = numbered([rank_of_run.get(row.run) for row in self._rows])
        of_rank = Grouped(paired(self._graph, rank)).greatest_other_before(self._run)
        return np.where(of_rank == NONE, self._of_graph.greatest_other_before(self._run), of_rank)


def _frame_of(row: LookupRow) -> str | None:
    return None if row.compile_id is None else row.compile_id.split("/")[0]
