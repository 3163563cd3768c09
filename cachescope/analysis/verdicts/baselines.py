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
from functools import cached_property
from typing import Final

import numpy as np

from cachescope.analysis.fields import is_input
from cachescope.analysis.history.entry_times import EntryTimes
from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import Flags
from cachescope.analysis.history.places_by_group import NONE, Grouped, Numbers, numbered, paired
from cachescope.analysis.history.rows import EntryRow, LookupRow
from cachescope.analysis.verdicts.candidate_sets import CandidateSets
from cachescope.analysis.verdicts.nearness import Nearness
from cachescope.analysis.verdicts.rank_fields import RankFields
from cachescope.analysis.verdicts.recompiles import Recompiles
from cachescope.analysis.verdicts.replaced_graphs import ReplacedGraphs
from cachescope.analysis.verdicts.running_compiles import RunningCompiles
from cachescope.analysis.verdicts.stored_candidates import StoredCandidates
from cachescope.details import HashDetails
from cachescope.notebook_cells import code_file
from cachescope.wording import percent

_NEARER_TRIED: Final = 32
# Lookups of one graph that are processed together.
_AT_ONCE: Final = 4096
_NOT_KNOWN: Final = -(2**62)
_NOTHING: Final = NONE, NONE

Candidate = LookupRow | EntryRow


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user asked to compare with: ``auto``, ``nearest``, a run, or a key."""

    mode: str = "auto"
    run: int | None = None
    cache_key: str | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """What some lookups are compared with: the place of a lookup, or the number of an entry; -1 otherwise."""

    lookup: Numbers
    entry: Numbers


class Baselines:
    """Finds the baselines of lookups among all earlier lookups and the entries that existed.

    Parameters
    ----------
    history : History
    details : HashDetails
    choice : Choice
    """

    def __init__(self, history: History, details: HashDetails, choice: Choice) -> None:
        self._rows = lookups = history.lookups
        self._details = details
        self._choice = choice
        self._run = lookups.run
        self._rank = history.rank
        frames = numbered([_frame_of(compile_id) for compile_id in [*lookups.compile_id.distinct, None]])
        self._frame: Numbers = frames[lookups.compile_id.codes]
        cache = np.where(lookups.detail_set == NONE, NONE, lookups.cache.codes)
        kind = paired(cache, lookups.direction.codes.astype(np.int64))
        self._graph = paired(kind, lookups.gm)
        self._of_kind = Grouped(kind)
        self._of_graph = Grouped(self._graph)
        place, self._place_before = self._places()
        self._in_place = Grouped(place)
        self._how_many_in_place = self._in_place.how_many_before(self._place_before)
        self.running = RunningCompiles(history)
        self._rank_fields = RankFields(details)
        self._nearness = Nearness(details)
        self.stored = StoredCandidates(history, EntryTimes(history))
        self._replaced = ReplacedGraphs(history, details, self.stored, choice.run, self.running)
        self._recompiles = Recompiles(lookups, self._nearness)
        self._sets: dict[tuple[str, int], CandidateSets] = {}

    def find_each(self, at: Numbers) -> Compared:
        """The baselines of missed lookups with known details."""
        lookup = np.full(len(at), NONE, dtype=np.int64)
        entry = lookup.copy()
        if self._choice.mode in ("auto", "run"):
            is_one = self._how_many_in_place[at] == 1
            lookup[is_one] = self._in_place.first(self._place_before[at[is_one]])
            racing = np.flatnonzero(is_one & self.running.were_running(lookup, at))
            lookup[racing[~self._hold_a_rank(lookup[racing], at[racing])]] = NONE
        if self._choice.mode == "nearest" and not self.stored.rows:
            kind = self._of_kind.group[at]
            for first in np.unique(kind, return_index=True)[1].tolist():
                mine = kind == kind[first]
                lookup[mine] = self._sets_of_kind(int(at[first])).near(at[mine])
        for number in np.flatnonzero(lookup == NONE).tolist():
            lookup[number], entry[number] = self._find(int(at[number]))
        return Compared(lookup, entry)

    def _find(self, at: int) -> tuple[int, int]:
        """The baseline of one lookup: the place of a lookup, or the number of an entry; -1 otherwise."""
        match self._choice.mode:
            case "key":
                return self._with_key(at)
            case "nearest":
                every = self._of_kind.before(int(self._of_kind.group[at]), at)
                return self._sets_of_kind(at).nearest(at, every, self.stored.of_kind(at))
        in_place = self._in_the_run_before(at)
        if len(in_place) == 1:
            found = int(in_place[0]), NONE
        else:
            candidates = (in_place, []) if len(in_place) else self._of_same_graph(at)
            found = self._sets_of_graph(at).nearest(at, *candidates)
        if self.running.was_running(found[0], at):
            if self._hold_a_rank(np.array(found[:1]), np.array([at]))[0]:
                return found
            lookups, entries = self._of_same_graph(at)
            found = self._sets_of_graph(at).nearest(at, self.running.finished(lookups, at), entries)
        return found if found != _NOTHING else (self._of_another_graph(at), NONE)

    def _of_another_graph(self, at: int) -> int:
        """The place of an earlier form of the graph of a lookup; -1 if there is none."""
        found = self._replaced.by(at)
        if found != NONE or self._choice.mode != "auto":
            return found
        compiled = self._recompiles.before(at)
        place = None if compiled is None else self._rows.place_of(compiled.lookup)
        return NONE if place is None else place

    def nearer(self, at: Numbers, found: Compared) -> tuple[Numbers, Numbers]:
        """For each lookup, a key of the same graph that differs in fewer fields than the baseline.

        People think of the run before; the cache could have used the nearest key. A key whose
        changes are a subset of those against the run before is preferred.

        Returns
        -------
        nearer, apart : array of int
            The place of the nearer key, -1 if there is none; and in how many fields the baseline differs.
        """
        nearer, apart = np.full(len(at), NONE, dtype=np.int64), np.zeros(len(at), dtype=np.int64)
        may_have = np.flatnonzero(self._may_have_nearer(at, found))
        of_graph = Grouped(numbered(self._graph[at[may_have]]))
        sets = self.sets_of(found)
        for group in range(int(of_graph.group.max(initial=NONE)) + 1):
            mine = may_have[of_graph.of(group)]
            for start in range(0, len(mine), _AT_ONCE):
                some = mine[start : start + _AT_ONCE]
                nearer[some], apart[some] = self._nearer_than(at[some], sets[some])
        return nearer, apart

    def sets_of(self, found: Compared) -> Numbers:
        """The set of hash details of each baseline."""
        of_entry = np.append(self.stored.detail_set, NONE)
        sets: Numbers = np.where(
            found.entry == NONE, self._rows.detail_set[found.lookup], of_entry[found.entry]
        )
        return sets

    def are_of_one_graph(self, at: Numbers, found: Compared) -> Flags:
        """Whether each lookup and its baseline have an equal graph."""
        of_entry = np.array(
            [*(NONE if entry.gm is None else entry.gm for entry in self.stored.rows), NONE], dtype=np.int64
        )
        gm = np.where(found.entry == NONE, self._rows.gm[found.lookup], of_entry[found.entry])
        same: Flags = gm == self._rows.gm[at]
        return same

    def nearer_in_parts(self, at: int, found: Candidate, changed: Sequence[str]) -> LookupRow | None:
        """A key whose inputs differ in a proper subset of the parts: in the dtype, but not also in the shape."""
        if not all(map(is_input, changed)) or not self._may_have_nearer_in_parts(at, found):
            return None
        tried = self._of_graph.before(int(self._graph[at]), at)[-_NEARER_TRIED:]
        tried = self.running.finished(self._without_other_calls(at, tried), at)
        return self._with_fewer_parts(self._rows[at], found, tried)

    def beside(self, at: int) -> int:
        """The latest lookup of the same graph and frame whose compile another process had not finished; -1 if there is none."""
        if self._rows.gm[at] == NONE:
            return NONE
        tried = self._of_graph.before(int(self._graph[at]), at)
        tried = tried[self._frame[tried] == self._frame[at]][-_NEARER_TRIED:]
        running = tried[self.running.were_running(tried, np.array(at))]
        return int(running[-1]) if len(running) else NONE

    def may_be_stored(self, at: int) -> bool:
        """Whether an entry of the same graph may have existed, and nothing shows whether it did."""
        return self.stored.may_be_of_graph(at)

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

    def are_of_one_process(self, found: Candidate, row: LookupRow) -> bool:
        """Whether the baseline is an earlier compile of the same function in the same process."""
        return (
            isinstance(found, LookupRow) and found.run == row.run and self._recompiles.is_before(found, row)
        )

    def are_concurrent(self, found: Candidate, row: LookupRow) -> bool:
        """Whether the baseline was still being compiled by another process when the lookup was made."""
        if isinstance(found, EntryRow):
            return False
        place, at = (self._rows.place_of(one.lookup) for one in (found, row))
        return place is not None and at is not None and self.running.was_running(place, at)

    def _hold_a_rank(self, before: Numbers, after: Numbers) -> Flags:
        """Whether the sets of two lookups differ, and only in fields that contain the rank."""
        sets, ranks = self._rows.detail_set, (self._rank[before], self._rank[after])
        return self._rank_fields.all_hold_a_rank(sets[before], sets[after], ranks)

    def _may_have_nearer(self, at: Numbers, found: Compared) -> Flags:
        """Which are compared with a lookup of the same graph, and not with one that the user chose."""
        if self._choice.mode != "auto":
            return np.zeros(len(at), dtype=bool)
        direction = self._rows.direction.codes
        # An entry is a baseline only if it is nearer than every lookup of the graph.
        is_lookup, has_graph = found.entry == NONE, self._rows.gm[at] != NONE
        is_one = self.are_of_one_graph(at, found) & (direction[found.lookup] == direction[at])
        may: Flags = is_lookup & has_graph & is_one
        return may

    def _may_have_nearer_in_parts(self, at: int, found: Candidate) -> bool:
        row = self._rows[at]
        is_one = row.gm is not None and found.gm == row.gm and found.direction == row.direction
        return is_one and self._choice.mode == "auto"

    def _nearer_than(self, lookups: Numbers, baselines: Numbers) -> tuple[Numbers, Numbers]:
        """For some lookups of one graph, the place of a nearer one (-1 if none), and the distance to their baselines."""
        sets = self._sets_of_graph(int(lookups[0]))
        before = sets.before(lookups, _NEARER_TRIED)
        is_of_run = self._run[before] == self._run[lookups, None]
        has_ended = ~self.running.were_running(before, lookups[:, None])
        frame, own = self._frame[before], self._frame[lookups, None]
        is_elsewhere = is_of_run & (frame != own) & (frame != NONE) & (own != NONE)
        return sets.nearer(lookups, baselines, has_ended, is_elsewhere, is_of_run)

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

    def _with_key(self, at: int) -> tuple[int, int]:
        key, number = self._chosen_key
        stored = [e for e in self.stored.with_kind(at) if self.stored.rows[e].cache_key == key]
        if stored:
            return NONE, stored[-1]
        earlier = self._of_kind.before(self._of_kind.group[at], at)
        earlier = earlier[self._rows.cache_key.codes[earlier] == number]
        return (int(earlier[-1]) if len(earlier) else NONE), NONE

    @cached_property
    def _chosen_key(self) -> tuple[str, int]:
        """The key that the user asked to compare with, and its number among the keys of lookups."""
        key = self._choice.cache_key or ""
        return key, self._rows.cache_key.codes_of([key]).get(key, _NOT_KNOWN)

    def _in_the_run_before(self, at: int) -> Numbers:
        """Lookups of the same graph under the same compile id in the latest other run, one of the same rank if any."""
        return self._in_place.of(int(self._place_before[at]))[: self._how_many_in_place[at]]

    def _of_same_graph(self, at: int) -> tuple[Numbers, list[int]]:
        """Lookups of the same graph, except for other calls of it, and entries."""
        is_of_run = self._choice.mode == "run"
        entries = [] if is_of_run else self.stored.of_graph(at)
        if self._rows.gm[at] == NONE:
            return np.zeros(0, dtype=np.int64), entries
        earlier = self._of_graph.before(self._graph[at], at)
        if is_of_run:
            earlier = earlier[self._run[earlier] == self._choice.run]
        return self._without_other_calls(at, earlier), entries

    def _without_other_calls(self, at: int, earlier: Numbers) -> Numbers:
        """Leave out an equal graph elsewhere in the same run on other inputs: it is another call, and neither has changed."""
        if not self._is_called_elsewhere[at]:
            return earlier
        frame = self._frame[earlier]
        elsewhere = (self._run[earlier] == self._run[at]) & (frame != self._frame[at]) & (frame != NONE)
        other_inputs = self._sets_of_graph(at).only_inputs_differ(at, earlier)
        kept: Numbers = earlier[~(elsewhere & other_inputs)]
        return kept

    @cached_property
    def _is_called_elsewhere(self) -> Flags:
        """Which lookups have a graph that their run also looked up under another frame."""
        calls = paired(np.where(self._frame == NONE, NONE, self._graph), self._run)
        _, first = np.unique(paired(calls, self._frame), return_index=True)
        frames = np.bincount(calls[first][calls[first] != NONE], minlength=int(calls.max(initial=NONE)) + 1)
        elsewhere: Flags = (calls != NONE) & (np.append(frames, 0)[calls] > 1)
        return elsewhere

    def _sets_of_graph(self, at: int) -> CandidateSets:
        return self._sets_of("graph", self._of_graph, at, self.stored.with_graph(at))

    def _sets_of_kind(self, at: int) -> CandidateSets:
        return self._sets_of("kind", self._of_kind, at, self.stored.with_kind(at))

    def _sets_of(self, name: str, grouped: Grouped, at: int, entries: Sequence[int]) -> CandidateSets:
        key = name, int(grouped.group[at])
        if key not in self._sets:
            places = grouped.of(key[1])
            stored = {e: int(self.stored.detail_set[e]) for e in entries}
            self._sets[key] = CandidateSets(self._details, places, self._rows.detail_set[places], stored)
        return self._sets[key]

    def _places(self) -> tuple[Numbers, Numbers]:
        """For each lookup, a number for its graph, run and compile id, and the number of the same place in the run before."""
        before = self._runs_before()
        compiles = self._rows.compile_id.codes.astype(np.int64)
        is_known = (compiles != NONE) & (self._rows.gm != NONE)
        graph = np.where(is_known, self._graph, NONE)
        # Numbered together, so that equal places get equal numbers.
        run = np.concatenate([self._run, before])
        places = paired(np.tile(graph, 2), run)
        places = np.where(run == NONE, NONE, paired(places, np.tile(compiles, 2)))
        return places[: len(self._run)], places[len(self._run) :]

    def _runs_before(self) -> Numbers:
        """For each lookup, the latest other run that had looked up its graph, one of the same rank if there is one."""
        if self._choice.mode == "run":
            chosen = NONE if self._choice.run is None else self._choice.run
            return np.where(self._run == chosen, NONE, chosen)
        of_rank = Grouped(paired(self._graph, self._rank)).greatest_other_before(self._run)
        return np.where(of_rank == NONE, self._of_graph.greatest_other_before(self._run), of_rank)


def _frame_of(compile_id: str | None) -> str | None:
    return None if compile_id is None else compile_id.split("/")[0]
