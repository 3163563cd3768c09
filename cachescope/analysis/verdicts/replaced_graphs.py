"""The graph of an earlier run, or of an entry, that a new graph replaced.

A new graph and a changed one both have a `gm` that was never seen. Their positions tell them apart: the graphs of two runs are
aligned as a diff aligns the lines of two files. A changed graph takes the place of another one; a new one stands between others.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Final, Generic, TypeVar

from cachescope.analysis.graphs import graph_words, likeness
from cachescope.analysis.history.entry_times import StoredCandidates
from cachescope.analysis.history.history import History, program_of
from cachescope.analysis.key_distance import KeyDistances
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.kept import kept
from cachescope.notebook_cells import code_file, is_cell, is_no_file
from cachescope.terms import AOTAUTOGRAD

# The score chooses among similar graphs: most of it is the similarity of the code, the rest the compile id and equal
# inputs. These alone prove nothing: every program has a compile 0/0, and many take the same inputs.
_CODE, _PLACE, _INPUTS = 0.6, 0.2, 0.2
# How similar the code of two graphs must be. A user's function may have been rewritten, but many programs call one
# library function.
_ENOUGH_OF_ONE_FUNCTION: Final = 0.2
_ENOUGH: Final = 0.6
# A torch.nn.Sequential and a lambda have no names of their own. Only their caller is known.
_ENOUGH_OF_ONE_CALL: Final = 0.9
_NEVER: Final = 2.0
_LIBRARY: Final = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
# A longer stretch of changed graphs is halved until it is short enough to compare all pairs.
_MOST_COMPARED: Final = 100 * 100


@dataclass(frozen=True, slots=True)
class SeenKey:
    """A key where it was first seen, in a lookup or an entry: what graphs are compared by."""

    cache: str
    cache_key: str
    direction: str | None
    detail_set: int | None
    compile_id: str | None = None
    function: str | None = None
    file: str | None = None
    lookup: int | None = None
    entry: int | None = None
    traced_code: str | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """What tells it from every other key."""
        return self.cache, self.cache_key


_Graph = LookupRow | SeenKey
SomeGraph = TypeVar("SomeGraph", LookupRow, SeenKey)


class GraphAligner(Generic[SomeGraph]):
    """Finds the graphs of another run that the graphs of a run replaced."""

    def __init__(
        self, keys: KeyDistances, graph_above: Callable[[SomeGraph], int | None] | None = None
    ) -> None:
        self._keys = keys
        self._graph_above: Callable[[SomeGraph], int | None] = graph_above or (lambda _: None)
        self._likeness: dict[tuple[int | None, int | None], float] = {}
        # Of pairs that were made for another reason than their code, that reason, by their lookups.
        self.why_paired: dict[tuple[int | None, int | None], str] = {}

    def partners(
        self,
        before: Sequence[SomeGraph],
        after: Sequence[SomeGraph],
        *,
        is_one_program: bool = False,
        goes_by_place: bool = False,
    ) -> list[tuple[SomeGraph, SomeGraph]]:
        """Pair the changed graphs of one cache and one direction; if asked, also two that only their position pairs."""
        old, new = self._distinct(before), self._distinct(after)
        graph = self._keys.graph
        replaced, share_a_graph = replaced_stretches(
            [graph(row.detail_set) for row in old], [graph(row.detail_set) for row in new]
        )
        found: list[tuple[SomeGraph, SomeGraph]] = []
        for some, others in replaced:
            a, b = old[some], new[others]
            pairs = self._paired_by_inputs(a, b, is_one_program or share_a_graph)
            is_between = some.start > 0 and some.stop < len(old) and len(a) == len(b) == 1
            if goes_by_place and not pairs and is_between and self.may_be_alike(a[0], b[0]):
                pairs = [(a[0], b[0])]
                reason = "each stands alone between the same two graphs"
                self.why_paired[a[0].lookup, b[0].lookup] = reason
            found += pairs
        return found

    def score(self, a: SomeGraph, b: SomeGraph) -> float:
        """How likely it is, between 0 and 1, that one of two similar graphs replaced the other."""
        same_place = a.compile_id is not None and a.compile_id == b.compile_id
        same_inputs = self._have_equal_inputs(a, b)
        return _CODE * self.code_likeness(a, b) + _PLACE * same_place + _INPUTS * same_inputs

    def are_alike(self, a: SomeGraph, b: SomeGraph, *, is_one_program: bool = False) -> bool:
        """Whether one graph may be another form of the other.

        Their code and their source functions decide. If functions are not named, as in a text log,
        two graphs of one program may be forms of each other; for two programs nothing can be concluded. The graphs that
        AOTAutograd made from one graph, such as those for training and for inference, are forms of it.
        """
        above = self._graph_above(a)
        if above is not None and above == self._graph_above(b):
            return True
        return self.code_likeness(a, b) >= _enough(a, b, is_one_program)

    def may_be_alike(self, a: SomeGraph, b: SomeGraph) -> bool:
        """Whether one graph may be a form of the other, if a source function is unknown."""
        if is_named(a) and is_named(b):
            return False
        is_in_place = a.compile_id is not None and a.compile_id == b.compile_id
        return self.code_likeness(a, b) >= (_ENOUGH_OF_ONE_FUNCTION if is_in_place else _ENOUGH)

    def code_likeness(self, a: SomeGraph | EntryRow, b: SomeGraph | EntryRow) -> float:
        """How alike the code of two graphs with hash details is."""
        assert a.detail_set is not None and b.detail_set is not None
        # A fleet compares the same graphs again and again, under many keys.
        pair = self._keys.graph(a.detail_set), self._keys.graph(b.detail_set)
        if pair not in self._likeness:
            self._likeness[pair] = likeness(self._words_of(a.detail_set), self._words_of(b.detail_set))
        return self._likeness[pair]

    def _paired_by_inputs(
        self, old: Sequence[SomeGraph], new: Sequence[SomeGraph], is_one_program: bool
    ) -> list[tuple[SomeGraph, SomeGraph]]:
        """The pairs in order. But a function may be compiled for its sizes in another order: equal inputs then pair two graphs."""
        pairs = self.pair_up(old, new, is_one_program)
        of_equal_inputs = [(a, b) for a, b in pairs if self._have_equal_inputs(a, b)]
        if len(of_equal_inputs) == len(pairs):
            return pairs
        left = [one for one in old if all(one is not a for a, _ in of_equal_inputs)]
        moved: list[tuple[SomeGraph, SomeGraph]] = []
        for b in (b for a, b in pairs if not self._have_equal_inputs(a, b)):
            alike = [
                a
                for a in left
                if self._have_equal_inputs(a, b) and self.are_alike(a, b, is_one_program=is_one_program)
            ]
            if alike:
                best = max(alike, key=lambda a: self.code_likeness(a, b))
                left.remove(best)
                moved.append((best, b))
        if not moved:
            return pairs
        settled = of_equal_inputs + moved
        rest = [one for one in new if all(one is not b for _, b in settled)]
        return settled + self.pair_up(left, rest, is_one_program)

    def _have_equal_inputs(self, a: SomeGraph, b: SomeGraph) -> bool:
        assert a.detail_set is not None and b.detail_set is not None
        return self._inputs_of(a.detail_set) == self._inputs_of(b.detail_set)

    def pair_up(
        self, old: Sequence[SomeGraph], new: Sequence[SomeGraph], is_one_program: bool
    ) -> list[tuple[SomeGraph, SomeGraph]]:
        """The pairs, in order, with the greatest total score; graphs that are too different are not paired."""
        if len(old) * len(new) > _MOST_COMPARED:
            i, j = len(old) // 2, len(new) // 2
            first = self.pair_up(old[:i], new[:j], is_one_program)
            return first + self.pair_up(old[i:], new[j:], is_one_program)
        best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
        scores = [
            [self.score(a, b) if self.are_alike(a, b, is_one_program=is_one_program) else 0.0 for b in new]
            for a in old
        ]
        for i in range(len(old) - 1, -1, -1):
            for j in range(len(new) - 1, -1, -1):
                skip = max(best[i + 1][j], best[i][j + 1])
                pair = scores[i][j] + best[i + 1][j + 1] if scores[i][j] else 0.0
                best[i][j] = max(skip, pair)
        pairs: list[tuple[SomeGraph, SomeGraph]] = []
        i = j = 0
        while i < len(old) and j < len(new):
            if scores[i][j] and best[i][j] == scores[i][j] + best[i + 1][j + 1]:
                pairs.append((old[i], new[j]))
                i, j = i + 1, j + 1
            elif best[i][j] == best[i + 1][j]:
                i += 1
            else:
                j += 1
        return pairs

    @kept
    def _words_of(self, detail_set: int) -> Counter[str]:
        return graph_words(self._keys.details.text(detail_set, "gm") or "")

    @kept
    def _inputs_of(self, detail_set: int) -> tuple[int, ...]:
        return self._keys.example_inputs(detail_set)

    def _distinct(self, rows: Sequence[SomeGraph]) -> list[SomeGraph]:
        """Rows with a graph. One that is looked up twice in a row, through its AOTAutograd entry and then again, is kept once."""
        kept: list[SomeGraph] = []
        for row in rows:
            has_graph = self._keys.graph(row.detail_set) is not None
            if has_graph and not (kept and kept[-1].cache_key == row.cache_key):
                kept.append(row)
        return kept


def replaced_stretches(
    before: Sequence[int | None], after: Sequence[int | None]
) -> tuple[list[tuple[slice, slice]], bool]:
    """Stretches of graphs of one run that take the place of graphs of another, as in the diff of two files."""
    steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    stretches = [(slice(i1, i2), slice(j1, j2)) for tag, i1, i2, j1, j2 in steps if tag == "replace"]
    return stretches, any(tag == "equal" for tag, *_ in steps)


def is_named(row: _Graph) -> bool:
    """Whether the source function of a graph is known."""
    return _function_of(row) is not None


def _function_of(row: _Graph) -> tuple[str, str] | None:
    """The name and the file of a graph's source function; None if it has no name."""
    file = code_file(row.file)
    if row.function is None or file is None or row.function.startswith("<"):
        return None
    return row.function, file


def _enough(a: _Graph, b: _Graph, is_one_program: bool) -> float:
    """How similar the code of two graphs must be for one to be a form of the other: not at all, if Dynamo traced the same code of one function."""
    one, other = _function_of(a), _function_of(b)
    if one is None or other is None:
        if is_one_program:
            return _ENOUGH
        is_same = a.file is not None and (code_file(a.file), a.function) == (code_file(b.file), b.function)
        return _ENOUGH_OF_ONE_CALL if is_same else _NEVER
    if one == other and a.traced_code == b.traced_code is not None:
        return 0
    if one == other:
        return _ENOUGH if _LIBRARY.search(one[1]) or is_no_file(one[1]) else _ENOUGH_OF_ONE_FUNCTION
    # A renamed function, or a program that was moved as a whole. An edited cell has another name.
    is_moved = os.path.basename(one[1]) == os.path.basename(other[1])
    is_edited = is_cell(a.file or "") and is_cell(b.file or "")
    is_one = (one[1] == other[1] and not is_no_file(one[1])) or (
        one[0] == other[0] and (is_moved or is_edited)
    )
    return _ENOUGH if is_one else _NEVER


# Runs to search, from the latest back, for a graph that this one may have replaced.
_RUNS_ALIGNED: Final = 16
_GRAPHS_TRIED: Final = 64
_ABOUT_AS_ALIKE: Final = 0.15
# An entry has no position in a run: only its code can show that it is an earlier form of the graph.
_LIKE_ENOUGH: Final = 0.75
# A function has another graph in training: torch/_functorch/_aot_autograd/graph_compile.py.
_DIRECTIONS: Final = {"forward": ("forward", "inference"), "inference": ("inference", "forward")}

_Stream = tuple[int, str, str | None]
"""The lookups of a run in one cache and direction."""


class ReplacedGraphs:
    """Finds what a never-seen graph may have replaced; lookups are named by their index in time order."""

    def __init__(self, history: History, stored: StoredCandidates, only_run: int | None) -> None:
        self._history = history
        self._stored = stored
        self._only_run = only_run
        self.aligner = GraphAligner[LookupRow](history.keys, self._graph_above)
        self._partners: dict[tuple[_Stream, _Stream], dict[int, int]] = {}

    def by(self, at: int) -> int | None:
        """The lookup whose graph the graph of a lookup replaced."""
        if self._history.graph[at] is None:
            return None
        found = (self._in_runs(streams, at) for streams in self._runs_to_align(at))
        return next((one for one in found if one is not None), None)

    def may_be(self, at: int) -> int | EntryRow | None:
        """The most similar graph that it may be another form of, if the functions of one of them are not named."""
        row = self._history.lookups[at]
        if self._history.graph[at] is None:
            return None
        streams = [*chain.from_iterable(self._runs_to_align(at))]
        if not streams:
            return self._like_entry(row, at)
        # Runs of a fleet have the same graphs in the same places.
        forms: dict[tuple[int | None, str | None], int] = {}
        own = self._graphs_of(_stream_of(row))
        for stream in [] if is_named(row) else streams:
            of_stream, before = self._of_stream[stream], self._graphs_of(stream)
            end = bisect_left(of_stream, at)
            for one in of_stream[max(end - _GRAPHS_TRIED, 0) : end]:
                other = self._history.lookups[one]
                graph = self._history.graph[one]
                # A run did not replace a graph that it looked up as often.
                is_kept = graph == self._history.graph[at] or own[graph] >= before[graph]
                if other.detail_set is not None and not is_kept:
                    forms.setdefault((graph, other.compile_id), one)
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
        # Runs of another program may lie between. Among graphs about as similar as the best, take the nearest, then one of
        # the same rank, then the most similar (the run before may have had a number of its own), then the latest.
        enough = max(score for score, _ in found) - _ABOUT_AS_ALIKE
        rank_of = self._history.rank_of

        def order(one: tuple[float, int]) -> tuple[tuple[int, int], bool, float]:
            score, partner = one
            is_other_rank = rank_of.get(lookups[partner].run) != rank_of.get(row.run)
            return self._history.distance(partner, at), is_other_rank, -score

        return min((one for one in found if one[0] >= enough), key=order)[1]

    @cached_property
    def _of_stream(self) -> dict[_Stream, list[int]]:
        lookups = self._history.lookups
        return by_key(((row.run, row.cache, row.direction), at) for at, row in enumerate(lookups))

    @kept
    def _graphs_of(self, stream: _Stream) -> Counter[int | None]:
        return Counter(self._history.graph[at] for at in self._of_stream[stream])

    @cached_property
    def _runs_of_kind(self) -> dict[tuple[object, ...], list[tuple[_Stream, int]]]:
        """By cache and direction, also with each rank: the runs, the latest first, each with its first lookup that has hash details."""
        lookups, rank_of = self._history.lookups, self._history.rank_of
        firsts = {
            stream: next((at for at in of_stream if lookups[at].detail_set is not None), None)
            for stream, of_stream in self._of_stream.items()
        }
        described = [(stream, at) for stream, at in firsts.items() if at is not None]
        return by_key(
            (kind, (stream, first))
            for stream, first in sorted(described, key=lambda one: -one[0][0])
            for kind in (stream[1:], (*stream[1:], rank_of.get(stream[0])))
        )

    def _runs_to_align(self, at: int) -> Iterator[list[_Stream]]:
        """Some earlier runs, first in the direction of a lookup and then in the other. Those of the same rank come first, and the latest of them."""
        row = self._history.lookups[at]
        for direction in _DIRECTIONS.get(row.direction or "", (row.direction,)):
            kind = row.cache, direction
            same = self._runs_of_kind.get((*kind, self._history.rank_of.get(row.run)), ())
            runs = chain(same, self._runs_of_kind.get(kind, ()))
            found: dict[_Stream, None] = {}
            mates = 0
            for stream, first in runs:
                if first < at and stream[0] != row.run and self._only_run in (None, stream[0]):
                    if self._only_run is None and self._is_mate(stream[0], row.run):
                        mates += 1
                    else:
                        found[stream] = None
                    if len(found) == _RUNS_ALIGNED or mates == _GRAPHS_TRIED:
                        break
            yield list(found)

    def _is_mate(self, run: int, own: int) -> bool:
        """Whether two runs are of ranks that ran at the same time: what one has and the other has not is no edit."""
        one, other = (self._history.run_of.get(each) for each in (run, own))
        if one is None or other is None or None in (one.rank, other.rank) or one.rank == other.rank:
            return False
        began = [each.start_time for each in (one, other) if each.start_time is not None]
        ended = [each.end_time for each in (one, other) if each.end_time is not None]
        return len(began) == len(ended) == 2 and max(began) < min(ended)

    def _align(self, stream: _Stream, own: _Stream, at: int) -> dict[int, int]:
        """For each graph of a run that replaced one of another run, the one it replaced."""
        lookups, index_of = self._history.lookups, self._history.index_of
        pairs = self.aligner.partners(
            [lookups[one] for one in self._of_stream[stream] if one < at],
            [lookups[one] for one in self._of_stream[own]],
            is_one_program=self._are_of_one_program(stream[0], own[0]),
            goes_by_place=True,
        )
        return {index_of[new.lookup]: index_of[old.lookup] for old, new in pairs}

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
    def _graphs_of_programs(self) -> dict[int, set[int | None]]:
        """The graphs that Dynamo traced, by run. They contain the names of one program, while many programs share small FX graphs."""
        graphs = zip(self._history.lookups, self._history.graph, strict=True)
        found = ((row.run, graph) for row, graph in graphs if row.cache == AOTAUTOGRAD)
        return {run: {*graphs} - {None} for run, graphs in by_key(found).items()}

    def _graph_above(self, row: LookupRow) -> int | None:
        """The graph from which AOTAutograd made that of an FX lookup, if known."""
        above = self._history.aot[self._history.index_of[row.lookup]]
        if above is None or self._history.lookups[above].cache != AOTAUTOGRAD:
            return None
        return self._history.graph[above]

    def _like_entry(self, row: LookupRow, at: int) -> EntryRow | None:
        """The entry whose code is the most like that of a lookup, the last among equals."""
        latest_first = reversed(self._stored.of_kind(at))
        found = ((self.aligner.code_likeness(one, row), one) for one in latest_first)
        share, best = max(found, key=itemgetter(0), default=(0.0, None))
        return best if share >= _LIKE_ENOUGH else None


def _stream_of(row: LookupRow) -> _Stream:
    return row.run, row.cache, row.direction
