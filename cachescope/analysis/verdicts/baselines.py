"""What a missed lookup is compared with: an earlier lookup, or an entry, of the same cache and direction.

Prefer the same graph, then the same compile id in the run before, then the fewest changed fields, then the
latest (design: the nearest key alone misleads, since most new graphs differ from an old one in `gm` only). But a
key of the same graph that differs in fewer fields than the run before is preferred to it: the cache could have
used that key.
A key that was still being compiled at the lookup could not be used, so it is no baseline.
Lookups are named by their index in time order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

from cachescope.analysis.fields import is_input
from cachescope.analysis.history.entry_times import EntryTimes
from cachescope.analysis.history.history import History
from cachescope.analysis.key_distance import EarlierKeys
from cachescope.analysis.verdicts.misses import Candidate
from cachescope.analysis.verdicts.rank_fields import RankFields
from cachescope.analysis.verdicts.recompiles import Recompiles
from cachescope.analysis.verdicts.replaced_graphs import ReplacedGraphs
from cachescope.analysis.verdicts.running_compiles import was_running
from cachescope.analysis.verdicts.stored_candidates import StoredCandidates
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.notebook_cells import code_file
from cachescope.wording import percent

_NEARER_TRIED: Final = 32

Baseline = int | EntryRow
"""The index of a lookup, or an entry."""
_Kind = tuple[str, str | None]
"""A cache and a direction."""
_Graph = tuple[str, str | None, int]
"""A cache, a direction, and the hash code of a graph."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user asked to compare with: ``auto``, ``nearest``, a run, or a key."""

    mode: str = "auto"
    run: int | None = None
    cache_key: str | None = None


class Baselines:
    """Finds the baselines of lookups among all earlier lookups and the entries that existed.

    Parameters
    ----------
    history : History
    choice : Choice
    """

    def __init__(self, history: History, choice: Choice) -> None:
        self._history = history
        self._lookups = history.lookups
        self._choice = choice
        self._rank_fields = RankFields(history.details)
        self._stored = StoredCandidates(history, EntryTimes(history))
        self._replaced = ReplacedGraphs(history, self._stored, choice.run)
        self._recompiles = Recompiles(history)
        self._earlier: dict[_Kind | _Graph, EarlierKeys] = {}

    def find(self, at: int) -> Baseline | None:
        """The baseline of a missed lookup with known details."""
        match self._choice.mode:
            case "key":
                return self._with_key(at)
            case "nearest":
                kind = _kind_of(self._lookups[at])
                found_before = self._nearest_of(kind, self._of_kind[kind], at)
                return self._or_entry(at, *found_before, self._stored.of_kind(at))
        if in_place := self._in_the_run_before(at):
            found: Baseline | None = self._nearest(at, reversed(in_place))[0]
        else:
            found = self._nearest_of_same_graph(at)
        if isinstance(found, int) and was_running(self._history, found, at):
            if self._hold_a_rank(found, at):
                return found
            found = self._nearest_of_same_graph(at, is_finished=True)
        return self._of_another_graph(at) if found is None else found

    def _of_another_graph(self, at: int) -> int | None:
        """An earlier form of the graph of a lookup."""
        found = self._replaced.by(at)
        return self._recompiles.before(at) if found is None and self._choice.mode == "auto" else found

    def nearer(self, at: int, found: Baseline) -> tuple[int, int] | None:
        """A key of the same graph that differs in fewer fields than the baseline, and in how many that differs.

        People think of the run before; the cache could have used the nearest key. A key whose
        changes are a subset of those against the run before is preferred.
        """
        row, graph = self._lookups[at], self._graph[at]
        # An entry is a baseline only if it is nearer than every lookup of the graph.
        if (
            self._choice.mode != "auto"
            or graph is None
            or not isinstance(found, int)
            or self._graph[found] != graph
        ):
            return None
        keys, own, baseline = self._history.keys, _set_of(row), _set_of(self._lookups[found])
        apart = keys.fields(baseline, own)
        if apart < 2:
            return None
        _, inputs, rest = keys.blocks(own)
        fewer = []
        for one in self._right_before(at, graph):
            _, other_inputs, other_rest = keys.blocks(_set_of(self._lookups[one]))
            fields = keys.apart(other_inputs, inputs) + keys.apart(other_rest, rest)
            if 0 < fields < apart:
                fewer.append((fields, one))
        if not fewer:
            return None
        fewer = [
            (fields, one)
            for fields, one in fewer
            if not was_running(self._history, one, at) and not self._is_another_call(one, at)
        ]
        # The first with the fewest among those whose changes are all changes of the baseline.
        changed = keys.changed(baseline, own)
        for _, one in sorted(fewer):
            if keys.changed(_set_of(self._lookups[one]), own) <= changed:
                return one, apart
        # What another call of the same run has otherwise is no change since the run before.
        others = [(fields, -one) for fields, one in fewer if self._lookups[one].run != row.run]
        return (-min(others)[1], apart) if others else None

    def nearer_in_parts(self, at: int, found: Candidate, changed: Sequence[str]) -> int | None:
        """A key whose inputs differ in a proper subset of the parts: in the dtype, but not also in the shape."""
        row, graph, keys = self._lookups[at], self._graph[at], self._history.keys
        if self._choice.mode != "auto" or graph is None or not all(map(is_input, changed)):
            return None
        if not self.are_of_one_graph(at, found) or self._direction_of(found) != row.direction:
            return None
        own = _set_of(row)
        best, fewest = None, keys.parts(_set_of(found), own)
        if len(fewest) < 2:
            return None
        within = keys.changed(_set_of(found), own)
        for one in reversed(self._right_before(at, graph)):
            before = _set_of(self._lookups[one])
            fields = keys.changed(before, own)
            if not fields or not fields <= within or was_running(self._history, one, at):
                continue
            parts = keys.parts(before, own)
            if parts < fewest and not self._is_another_call(one, at):
                best, fewest = one, parts
        return best

    def concurrent_lookup(self, at: int) -> int | None:
        """The latest lookup of the same graph and frame whose compile another process had not finished."""
        graph, frame = self._graph[at], _frame_of(self._lookups[at])
        if graph is None:
            return None
        of_graph = self._of_graph[graph]
        earlier = (of_graph[number] for number in range(bisect_left(of_graph, at) - 1, -1, -1))
        of_frame = (one for one in earlier if _frame_of(self._lookups[one]) == frame)
        tried = islice(of_frame, _NEARER_TRIED)
        return next((one for one in tried if was_running(self._history, one, at)), None)

    def may_be_stored(self, at: int) -> bool:
        """Whether an entry of the same graph may have existed, and nothing shows whether it did."""
        return self._stored.may_be_of_graph(at)

    def may_replace(self, at: int) -> Candidate | None:
        """A graph that a new one may be another form of, if nothing shows whether it is."""
        return self._replaced.may_be(at)

    def are_alike_by(self, found: Candidate, row: LookupRow) -> str:
        """A clause on why one graph is taken for another form of the other."""
        share = self._replaced.code_likeness(found, row)
        text = f"{percent(share)} of their code is alike"
        if isinstance(found, LookupRow) and found.function is not None:
            is_one = (found.function, code_file(found.file)) == (row.function, code_file(row.file))
            return f"both are of the function {row.function} of one file, and {text}" if is_one else text
        return text

    def are_of_one_graph(self, at: int, found: Candidate) -> bool:
        """Whether a lookup and its baseline have an equal graph."""
        return self._history.keys.graph(found.detail_set) == self._history.graph[at]

    def _direction_of(self, found: Candidate) -> str | None:
        return (
            found.direction
            if isinstance(found, LookupRow)
            else self._history.details.direction(_set_of(found))
        )

    def _hold_a_rank(self, before: int, after: int) -> bool:
        """Whether the sets of two lookups differ, and only in fields that contain the rank."""
        one, other = self._lookups[before], self._lookups[after]
        ranks = self._history.rank_of.get(one.run), self._history.rank_of.get(other.run)
        return self._rank_fields.all_hold_a_rank(_set_of(one), _set_of(other), ranks)

    def _with_key(self, at: int) -> Baseline | None:
        key, row = self._choice.cache_key, self._lookups[at]
        stored = [entry for entry in self._stored.with_kind(at) if entry.cache_key == key]
        if stored:
            return stored[-1]
        earlier = [one for one in self._of_chosen_key if one < at]
        return next((one for one in reversed(earlier) if _kind_of(self._lookups[one]) == _kind_of(row)), None)

    @cached_property
    def _of_chosen_key(self) -> list[int]:
        """The lookups with hash details of the key that the user asked to compare with."""
        key = self._choice.cache_key
        return [
            at for at, row in enumerate(self._lookups) if row.cache_key == key and row.detail_set is not None
        ]

    # Lookups of the same graph.

    @cached_property
    def _of_kind(self) -> dict[_Kind, list[int]]:
        """The lookups with hash details by cache and direction."""
        found: dict[_Kind, list[int]] = defaultdict(list)
        for at, row in enumerate(self._lookups):
            if row.detail_set is not None:
                found[_kind_of(row)].append(at)
        return found

    @cached_property
    def _graph(self) -> list[_Graph | None]:
        """The cache, the direction and the graph of each lookup that has one; equal ones are one object."""
        known: dict[_Graph, _Graph] = {}
        found: list[_Graph | None] = []
        for row, graph in zip(self._lookups, self._history.graph, strict=True):
            one = None if graph is None else (row.cache, row.direction, graph)
            found.append(None if one is None else known.setdefault(one, one))
        return found

    @cached_property
    def _of_graph(self) -> dict[_Graph, list[int]]:
        found: dict[_Graph, list[int]] = defaultdict(list)
        for at, graph in enumerate(self._graph):
            if graph is not None:
                found[graph].append(at)
        return found

    @cached_property
    def _of_graph_and_run(self) -> dict[tuple[_Graph, int], list[int]]:
        found: dict[tuple[_Graph, int], list[int]] = defaultdict(list)
        for at, graph in enumerate(self._graph):
            if graph is not None:
                found[graph, self._lookups[at].run].append(at)
        return found

    def _right_before(self, at: int, graph: _Graph) -> list[int]:
        """The lookups of a graph right before another one."""
        of_graph = self._of_graph[graph]
        end = bisect_left(of_graph, at)
        return of_graph[max(end - _NEARER_TRIED, 0) : end]

    def _in_the_run_before(self, at: int) -> list[int]:
        """Lookups of the same graph under the same compile id in the latest other run, one of the same rank if any."""
        graph, compile_id, run = self._graph[at], self._lookups[at].compile_id, self._run_before(at)
        if graph is None or compile_id is None or run is None:
            return []
        of_run = self._of_graph_and_run.get((graph, run), ())
        return [one for one in of_run if one < at and self._lookups[one].compile_id == compile_id]

    def _run_before(self, at: int) -> int | None:
        if self._choice.mode == "run":
            return None if self._lookups[at].run == self._choice.run else self._choice.run
        return self._runs_before[at]

    @cached_property
    def _runs_before(self) -> list[int | None]:
        """For each lookup, the latest other run that had looked up its graph, one of the same rank if there is one."""
        rank_of = self._history.rank_of
        of_graph: dict[_Graph, _TwoGreatest] = defaultdict(_TwoGreatest)
        of_rank: dict[tuple[_Graph, int | None], _TwoGreatest] = defaultdict(_TwoGreatest)
        found: list[int | None] = []
        for row, graph in zip(self._lookups, self._graph, strict=True):
            if graph is None:
                found.append(None)
                continue
            runs, runs_of_rank = of_graph[graph], of_rank[graph, rank_of.get(row.run)]
            of_same_rank = runs_of_rank.other_than(row.run)
            found.append(runs.other_than(row.run) if of_same_rank is None else of_same_rank)
            runs.add(row.run)
            runs_of_rank.add(row.run)
        return found

    def _other_calls(self, at: int, graph: _Graph) -> set[int]:
        """Earlier lookups of an equal graph elsewhere in the same run on other inputs: other calls, and none has changed."""
        earlier = self._of_graph_and_run[graph, self._lookups[at].run]
        return {one for one in earlier if one < at and self._is_another_call(one, at)}

    def _is_another_call(self, one: int, at: int) -> bool:
        other, row = self._lookups[one], self._lookups[at]
        if other.run != row.run or other.compile_id == row.compile_id:
            return False
        frame, own = _frame_of(other), _frame_of(row)
        is_elsewhere = frame is not None and own is not None and frame != own
        return is_elsewhere and self._history.keys.only_inputs(_set_of(other), _set_of(row))

    def _nearest_of_same_graph(self, at: int, *, is_finished: bool = False) -> Baseline | None:
        """The nearest lookup of the same graph, except for other calls of it, or entry; if asked, one whose compile had ended."""
        graph, is_of_run = self._graph[at], self._choice.mode == "run"
        entries = [] if is_of_run else self._stored.of_graph(at)
        if graph is None:
            return self._or_entry(at, None, 0, entries)
        other_calls = self._other_calls(at, graph)
        if not (is_of_run or is_finished or other_calls):
            return self._or_entry(at, *self._nearest_of(graph, self._of_graph[graph], at), entries)
        run = self._choice.run
        if is_of_run:
            lookups = [] if run is None else self._of_graph_and_run.get((graph, run), [])
        else:
            lookups = self._of_graph[graph]
        earlier = (lookups[number] for number in range(bisect_left(lookups, at) - 1, -1, -1))
        may_be = (
            one
            for one in earlier
            if one not in other_calls and not (is_finished and was_running(self._history, one, at))
        )
        return self._or_entry(at, *self._nearest(at, may_be), entries)

    def _nearest_of(self, name: _Kind | _Graph, lookups: list[int], at: int) -> tuple[int | None, int]:
        if name not in self._earlier:
            sets = [(one, _set_of(self._lookups[one])) for one in lookups]
            self._earlier[name] = EarlierKeys(self._history.keys, sets)
        return self._earlier[name].nearest(at, _set_of(self._lookups[at]))

    def _nearest(self, at: int, latest_first: Iterable[int]) -> tuple[int | None, int]:
        """The lookup with the fewest changed fields, the latest among equals; and how many fields these are."""
        own = _set_of(self._lookups[at])
        best, fewest = None, 0
        for one in latest_first:
            fields = self._history.keys.fields(_set_of(self._lookups[one]), own)
            if best is None or fields < fewest:
                best, fewest = one, fields
                if not fields:
                    break
        return best, fewest

    def _or_entry(
        self, at: int, found: int | None, fewest: int, entries: Sequence[EntryRow]
    ) -> Baseline | None:
        """The lookup that was found, or an entry that differs in fewer fields, the last among equals."""
        best: Baseline | None = found
        for entry in reversed(entries):
            fields = self._history.keys.fields(_set_of(entry), _set_of(self._lookups[at]))
            if best is None or fields < fewest:
                best, fewest = entry, fields
        return best


class _TwoGreatest:
    """The two greatest of some numbers."""

    __slots__ = ("greatest", "second")

    def __init__(self) -> None:
        self.greatest: int | None = None
        self.second: int | None = None

    def add(self, number: int) -> None:
        if self.greatest is None or number > self.greatest:
            self.greatest, self.second = number, self.greatest
        elif number != self.greatest and (self.second is None or number > self.second):
            self.second = number

    def other_than(self, number: int) -> int | None:
        return self.second if number == self.greatest else self.greatest


def _kind_of(row: LookupRow) -> _Kind:
    return row.cache, row.direction


def _set_of(row: Candidate) -> int:
    assert row.detail_set is not None
    return row.detail_set


def _frame_of(row: LookupRow) -> str | None:
    return None if row.compile_id is None else row.compile_id.split("/")[0]
