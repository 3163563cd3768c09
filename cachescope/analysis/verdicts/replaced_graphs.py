"""The graph of an earlier run, or of an entry, that a new graph replaced."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Final

from cachescope.analysis.history.entry_times import StoredCandidates
from cachescope.analysis.history.history import History, program_of
from cachescope.analysis.verdicts.graph_alignment import GraphAligner, is_named, replaced_stretches
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.terms import AOTAUTOGRAD

# Runs to search, from the latest back, for a graph that this one may have replaced.
_RUNS_ALIGNED: Final = 16
_GRAPHS_TRIED: Final = 64
_ABOUT_AS_ALIKE: Final = 0.15
# An entry has no place in a run: only its code can show that it is an earlier form of the graph.
_LIKE_ENOUGH: Final = 0.75
# The graph of a function changes when it is trained: torch/_functorch/_aot_autograd/graph_compile.py.
_OTHER_DIRECTION: Final = {"forward": "inference", "inference": "forward"}

_Stream = tuple[int, str, str | None]
"""The lookups of a run in one cache and direction."""
_Runs = dict[tuple[str, str | None, int | None], list[tuple[_Stream, int]]]


class ReplacedGraphs:
    """Finds what a never-seen graph may have replaced; lookups are named by their index in time order."""

    def __init__(self, history: History, stored: StoredCandidates, only_run: int | None) -> None:
        self._history = history
        self._stored = stored
        self._only_run = only_run
        self.aligner = GraphAligner[LookupRow](history.details, history.keys, self._graph_above)
        self._partners: dict[tuple[_Stream, _Stream], dict[int, int]] = {}
        self._graphs_of_stream: dict[_Stream, list[int]] = {}
        # Graphs that stand alone between the same two graphs, each in its run.
        self.in_one_place: set[tuple[int, int]] = set()

    def by(self, at: int) -> int | None:
        """The lookup whose graph the graph of a lookup replaced."""
        if self._history.graph[at] is None:
            return None
        direction = self._history.lookups[at].direction
        found = self._in_runs(self._runs_to_align(direction, at), at)
        if found is None and direction in _OTHER_DIRECTION:
            found = self._in_runs(self._runs_to_align(_OTHER_DIRECTION[direction], at), at)
        return found

    def may_be(self, at: int) -> int | EntryRow | None:
        """The most alike graph that it may be another form of, if the functions of one of them are not named."""
        row = self._history.lookups[at]
        if self._history.graph[at] is None:
            return None
        streams = self._runs_to_align(row.direction, at)
        if row.direction in _OTHER_DIRECTION:
            streams += self._runs_to_align(_OTHER_DIRECTION[row.direction], at)
        if not streams:
            return self._like_entry(row, at)
        # Runs of a fleet have the same graphs in the same places.
        forms: dict[tuple[int | None, str | None], int] = {}
        for stream in [] if is_named(row) else streams:
            of_stream = self._of_stream[stream]
            end = bisect_left(of_stream, at)
            for one in of_stream[max(end - _GRAPHS_TRIED, 0) : end]:
                other = self._history.lookups[one]
                if other.detail_set is not None and self._history.graph[one] != self._history.graph[at]:
                    forms.setdefault((self._history.graph[one], other.compile_id), one)
        lookups, aligner = self._history.lookups, self.aligner
        alike = [one for one in forms.values() if aligner.may_be_alike(lookups[one], row)]
        return max(alike, key=lambda one: aligner.code_likeness(lookups[one], row), default=None)

    def _in_runs(self, streams: Sequence[_Stream], at: int) -> int | None:
        """The lookup of some runs that the graph of a lookup replaced."""
        lookups = self._history.lookups
        row = lookups[at]
        own = _stream_of(row)
        found: list[tuple[float, int]] = []
        for stream in streams:
            if (stream, own) not in self._partners:
                self._partners[stream, own] = self._align(stream, own, at)
            partner = self._partners[stream, own].get(at)
            if partner is not None and not self._history.was_running(partner, at):
                found.append((self.aligner.score(lookups[partner], row), partner))
        if not found:
            return None
        # Runs of another program may lie between. Among those about as alike as the best, take the nearest, then the latest.
        enough = max(score for score, _ in found) - _ABOUT_AS_ALIKE
        alike = [partner for score, partner in found if score >= enough]
        return min(alike, key=lambda partner: self._history.distance(partner, at))

    @cached_property
    def _of_stream(self) -> dict[_Stream, list[int]]:
        lookups = self._history.lookups
        return by_key(((row.run, row.cache, row.direction), at) for at, row in enumerate(lookups))

    @cached_property
    def _runs_of_kind(self) -> tuple[_Runs, _Runs]:
        """For each cache and direction, and for each of these and a rank: its runs, the latest first, and the first lookup of each with hash details."""
        lookups, rank_of = self._history.lookups, self._history.rank_of
        of_kind: _Runs = defaultdict(list)
        of_rank: _Runs = defaultdict(list)
        for stream in sorted(self._of_stream, key=lambda stream: -stream[0]):
            run, cache, direction = stream
            first = next((at for at in self._of_stream[stream] if lookups[at].detail_set is not None), None)
            if first is not None:
                of_kind[cache, direction, None].append((stream, first))
                of_rank[cache, direction, rank_of.get(run)].append((stream, first))
        return of_kind, of_rank

    def _runs_to_align(self, direction: str | None, at: int) -> list[_Stream]:
        """Some earlier runs in a direction, the latest first; those of the same rank before the others."""
        row = self._history.lookups[at]
        of_kind, of_rank = self._runs_of_kind
        same = of_rank.get((row.cache, direction, self._history.rank_of.get(row.run)), ())
        found: dict[_Stream, None] = {}
        for stream, first in chain(same, of_kind.get((row.cache, direction, None), ())):
            if first < at and stream[0] != row.run and self._only_run in (None, stream[0]):
                found[stream] = None
                if len(found) == _RUNS_ALIGNED:
                    break
        return list(found)

    def _align(self, stream: _Stream, own: _Stream, at: int) -> dict[int, int]:
        """By each graph of a run that replaced one of another run: that one."""
        history = self._history
        before = [one for one in self._graphs_of(stream) if one < at]
        after = self._graphs_of(own)
        replaced, share_a_graph = replaced_stretches(
            [history.graph[one] for one in before], [history.graph[one] for one in after]
        )
        if not replaced:
            return {}
        is_one = share_a_graph or self._are_of_one_program(stream[0], own[0])
        found: dict[int, int] = {}
        for old_ones, new_ones in replaced:
            old, new = self._rows_at(before[old_ones]), self._rows_at(after[new_ones])
            pairs = self.aligner.pair_up(old, new, is_one)
            is_between = old_ones.start > 0 and old_ones.stop < len(before) and len(old) == len(new) == 1
            if not pairs and is_between and self.aligner.may_be_alike(old[0], new[0]):
                pairs = [(old[0], new[0])]
                self.in_one_place.add((old[0].lookup, new[0].lookup))
            found |= {history.index_of[b.lookup]: history.index_of[a.lookup] for a, b in pairs}
        return found

    def _graphs_of(self, stream: _Stream) -> list[int]:
        """The graphs of a run; one looked up twice in a row (through its AOTAutograd entry, then again) is kept once."""
        if stream not in self._graphs_of_stream:
            lookups, graph = self._history.lookups, self._history.graph
            found: list[int] = []
            for at in self._of_stream[stream]:
                if graph[at] is not None and not (
                    found and lookups[found[-1]].cache_key == lookups[at].cache_key
                ):
                    found.append(at)
            self._graphs_of_stream[stream] = found
        return self._graphs_of_stream[stream]

    def _rows_at(self, places: Iterable[int]) -> list[LookupRow]:
        return [self._history.lookups[at] for at in places]

    def _are_of_one_program(self, run: int, other: int) -> bool:
        """Whether two runs are known to be of one program: by their commands, or by a graph that both have."""
        program = self._programs.get(run)
        if program is not None and program == self._programs.get(other):
            return True
        graphs = self._graphs_of_programs
        return not graphs.get(run, set()).isdisjoint(graphs.get(other, set()))

    @cached_property
    def _programs(self) -> dict[int, str | None]:
        return {run.run: program_of(run) for run in self._history.runs}

    @cached_property
    def _graphs_of_programs(self) -> dict[int, set[int]]:
        """The graphs that dynamo handed on, by run: they contain the names of one program; many make small FX graphs."""
        found: dict[int, set[int]] = defaultdict(set)
        for row, graph in zip(self._history.lookups, self._history.graph, strict=True):
            if row.cache == AOTAUTOGRAD and graph is not None:
                found[row.run].add(graph)
        return found

    def _graph_above(self, row: LookupRow) -> int | None:
        """The graph that AOTAutograd made the graph of an FX lookup from, if it is known."""
        above = self._history.aot[self._history.index_of[row.lookup]]
        if above is None or self._history.lookups[above].cache != AOTAUTOGRAD:
            return None
        return self._history.graph[above]

    def _like_entry(self, row: LookupRow, at: int) -> EntryRow | None:
        best, best_likeness = None, _LIKE_ENOUGH
        for entry in self._stored.of_kind(at):
            found = self.aligner.code_likeness(entry, row)
            if found >= best_likeness:
                best, best_likeness = entry, found
        return best


def _stream_of(row: LookupRow) -> _Stream:
    return row.run, row.cache, row.direction
