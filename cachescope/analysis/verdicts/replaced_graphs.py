"""The graph of an earlier run, or of an entry, that a new graph replaced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

import numpy as np

from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import Flags, Lookups
from cachescope.analysis.history.places_by_group import NONE, Grouped, Numbers, paired
from cachescope.analysis.history.rows import EntryRow, LookupRow
from cachescope.analysis.verdicts.graph_alignment import Code, GraphAligner, is_named, replaced_stretches
from cachescope.analysis.verdicts.nearness import Nearness
from cachescope.analysis.verdicts.running_compiles import RunningCompiles
from cachescope.analysis.verdicts.stored_candidates import StoredCandidates
from cachescope.details import HashDetails

# Runs to search, from the latest back, for a graph that this one may have replaced.
_RUNS_ALIGNED: Final = 16
_LANES_AT_HAND: Final = 64
_GRAPHS_AT_HAND: Final = 1 << 13
_GRAPHS_TRIED: Final = 64
_ABOUT_AS_ALIKE: Final = 0.15
# An entry has no place in a run: only its code can show that it is an earlier form of the graph.
_LIKE_ENOUGH: Final = 0.75
# The graph of a function changes when it is trained: torch/_functorch/_aot_autograd/graph_compile.py.
_OTHER_DIRECTION: Final = {"forward": "inference", "inference": "forward"}

_Kind = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class LookedUp:
    """The graph of a lookup: as much of it as is compared with other graphs."""

    place: int
    cache_key: int
    compile_id: str | None
    function: str | None
    file: str | None
    detail_set: int | None
    gm: int | None


class ReplacedGraphs:
    """Finds what a never-seen graph may have replaced; lookups are named by their place in time order."""

    def __init__(
        self,
        history: History,
        details: HashDetails,
        stored: StoredCandidates,
        only_run: int | None,
        running: RunningCompiles,
    ) -> None:
        self._rows = lookups = history.lookups
        self._stored = stored
        self._only_run = only_run
        self._running = running
        self._nearness = Nearness(details)
        self._rank_of_place = history.rank
        # Many programs make small FX graphs; the graph that dynamo hands on contains the names of one program.
        has_program = lookups.is_aot & (lookups.gm != NONE)
        self._of_run = Grouped(np.where(has_program, lookups.run, NONE))
        self._programs = {run.run: run.program for run in history.runs}
        self._aligner = GraphAligner(details, partial(_graph_above, lookups, has_program))
        caches = paired(lookups.run_number, lookups.cache.codes.astype(np.int64))
        self._lane = paired(caches, lookups.direction.codes.astype(np.int64))
        self._of_lane = Grouped(self._lane)
        self._runs_of_kind = self._first_places()
        self._partners: dict[tuple[int, int], dict[int, LookedUp]] = {}
        self._graph = lru_cache(_GRAPHS_AT_HAND)(partial(_graph, lookups))
        # A run is aligned with several before it, and then those after it with it.
        self._graphs_of_lane = lru_cache(_LANES_AT_HAND)(partial(_graphs_of_lane, lookups, self._of_lane))

    def by(self, at: int) -> int:
        """The place of the lookup whose graph the graph of a lookup replaced; -1 if there is none."""
        if self._rows.gm[at] == NONE:
            return NONE
        direction = self._rows.direction[at]
        found = self._in_runs(self._runs_to_align(direction, at), at)
        if found is None and direction in _OTHER_DIRECTION:
            found = self._in_runs(self._runs_to_align(_OTHER_DIRECTION[direction], at), at)
        return NONE if found is None else found.place

    def may_be(self, at: int) -> LookupRow | EntryRow | None:
        """A graph that it may be another form of, if the functions of one of them are not named."""
        row = self._rows[at]
        if row.gm is None:
            return None
        lanes = self._runs_to_align(row.direction, at)[:_RUNS_ALIGNED]
        if row.direction in _OTHER_DIRECTION:
            lanes += self._runs_to_align(_OTHER_DIRECTION[row.direction], at)[:_RUNS_ALIGNED]
        if not lanes:
            return self._like_entry(row, at)
        graph = self._graph(at)
        for lane in [] if is_named(row) else lanes:
            for place in self._of_lane.before(lane, at)[-_GRAPHS_TRIED:].tolist():
                other = self._graph(place)
                if other.detail_set is not None and self._aligner.may_be_alike(other, graph):
                    found: LookupRow = self._rows[place]
                    return found
        return None

    def code_likeness(self, a: Code, b: Code) -> float:
        """How alike the code of two graphs with hash details is."""
        return self._aligner.code_likeness(a, b)

    def _in_runs(self, runs: Sequence[int], at: int) -> LookedUp | None:
        """The lookup of some runs that the graph of a lookup replaced."""
        found: list[tuple[float, LookedUp]] = []
        own, graph = int(self._lane[at]), self._graph(at)
        for lane in runs[:_RUNS_ALIGNED]:
            pairs = self._partners.get((lane, own))
            if pairs is None:
                pairs = self._partners[lane, own] = self._align(lane, own, at)
            partner = pairs.get(at)
            if partner is not None and not self._running.was_running(partner.place, at):
                found.append((self._aligner.score(partner, graph), partner))
        if not found:
            return None
        # Runs of another program may lie between. Among those about as alike as the best, take the nearest, then the latest.
        enough = max(score for score, _ in found) - _ABOUT_AS_ALIKE
        alike = [partner for score, partner in found if score >= enough]
        return min(alike, key=lambda partner: self._nearness.between(partner, graph))

    def _first_places(self) -> dict[_Kind, tuple[Numbers, Numbers]]:
        """For each kind: its runs, the latest first, and the first place of each with hash details."""
        lookups = self._rows
        lanes = np.where(lookups.detail_set == NONE, NONE, self._lane)
        _, first = np.unique(lanes, return_index=True)
        first = first[lanes[first] != NONE]
        first = first[np.argsort(-lookups.run[first], kind="stable")]
        kinds = [(lookups.cache_of(at), lookups.direction[at]) for at in first.tolist()]
        places: dict[_Kind, list[int]] = defaultdict(list)
        for kind, at in zip(kinds, first.tolist(), strict=True):
            places[kind].append(at)
        return {kind: (lookups.run[mine], np.array(mine)) for kind, mine in places.items()}

    def _runs_to_align(self, direction: str | None, at: int) -> list[int]:
        """The lanes of earlier runs in a direction, the latest first; those of the same rank before the others."""
        kind = self._rows.cache_of(at), direction
        if kind not in self._runs_of_kind:
            return []
        runs, places = self._runs_of_kind[kind]
        chosen = (places < at) & (runs != self._rows.run[at])
        if self._only_run is not None:
            chosen &= runs == self._only_run
        places = places[chosen]
        is_other = self._rank_of_place[places] != self._rank_of_place[at]
        ordered: list[int] = self._lane[places[np.argsort(is_other, kind="stable")]].tolist()
        return ordered

    def _align(self, lane: int, own: int, at: int) -> dict[int, LookedUp]:
        before, after = self._graphs_of_lane(lane), self._graphs_of_lane(own)
        before = before[: before.searchsorted(at)]
        gm, run = self._rows.gm, self._rows.run
        replaced, share_a_graph = replaced_stretches(gm[before].tolist(), gm[after].tolist())
        if not replaced:
            return {}
        is_one = share_a_graph or self._are_of_one_program(int(run[before[0]]), int(run[after[0]]))
        return {
            new.place: old
            for old_ones, new_ones in replaced
            for old, new in self._aligner.pair_up(
                self._graphs_at(before[old_ones]), self._graphs_at(after[new_ones]), is_one
            )
        }

    def _are_of_one_program(self, run: int, other: int) -> bool:
        """Whether two runs are known to be of one program: by their commands, or by a graph that both have."""
        program = self._programs.get(run)
        if program is not None and program == self._programs.get(other):
            return True
        one, another = (self._rows.gm[self._of_run.of(number)] for number in (run, other))
        return len(np.intersect1d(one, another)) > 0

    def _graphs_at(self, places: Numbers) -> list[LookedUp]:
        return [self._graph(place) for place in places.tolist()]

    def _like_entry(self, row: LookupRow, at: int) -> EntryRow | None:
        best, best_likeness = None, _LIKE_ENOUGH
        for number in self._stored.of_kind(at):
            entry = self._stored.rows[number]
            found = self._aligner.code_likeness(entry, row)
            if found >= best_likeness:
                best, best_likeness = entry, found
        return best


# Functions rather than methods: whatever refers to its own methods lives on until the garbage collector runs.


def _graph_above(lookups: Lookups, has_program: Flags, graph: LookedUp) -> int | None:
    """The graph that AOTAutograd made the graph of an FX lookup from, if it is known."""
    above = int(lookups.aot[graph.place])
    return int(lookups.gm[above]) if above != NONE and has_program[above] else None


def _graphs_of_lane(lookups: Lookups, of_lane: Grouped, lane: int) -> Numbers:
    """The places of the graphs of a lane; one looked up twice in a row (through its AOTAutograd entry, then again) is kept once."""
    places = of_lane.of(lane)
    places = places[lookups.gm[places] != NONE]
    keys = lookups.cache_key.codes[places]
    found: Numbers = places[np.diff(keys, prepend=NONE - 1) != 0]
    return found


def _graph(lookups: Lookups, at: int) -> LookedUp:
    detail_set, gm = int(lookups.detail_set[at]), int(lookups.gm[at])
    return LookedUp(
        at,
        int(lookups.cache_key.codes[at]),
        lookups.compile_id[at],
        lookups.function[at],
        lookups.file[at],
        None if detail_set == NONE else detail_set,
        None if gm == NONE else gm,
    )
