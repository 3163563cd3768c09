"""What a missed lookup is compared with: an earlier lookup, or an entry, of the same cache and direction.

Prefer the same graph, then the same compile id in the run before, then the fewest changed fields, then the
latest (design: the nearest key alone misleads, since most new graphs differ from an old one in `gm` only). But a
key of the same graph that differs in fewer fields is preferred to that of the run before: the cache could have
used it.
A key that was still being compiled at the lookup could not be used, so it is no baseline.
Lookups are named by their index in time order.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

from cachescope.analysis.history.entry_times import StoredCandidates
from cachescope.analysis.history.history import History, set_of
from cachescope.analysis.key_distance import Change, EarlierKeys
from cachescope.analysis.verdicts.misses import Candidate
from cachescope.analysis.verdicts.ranks import all_hold_a_rank
from cachescope.analysis.verdicts.recompiles import Recompiles, failed_guard
from cachescope.analysis.verdicts.replaced_graphs import ReplacedGraphs
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.kept import kept
from cachescope.keys.key_fields import is_of_the_call
from cachescope.notebook_cells import code_file, is_no_file
from cachescope.readers.logs.trace_compiles import frame_of
from cachescope.wording import percent

_NEARER_TRIED: Final = 32

Baseline = int | EntryRow
"""The index of a lookup, or an entry."""
_Kind = tuple[str, str | None]
"""A cache and a direction."""


class Choice(NamedTuple):
    """What the user asked to compare with: ``auto``, ``nearest``, a run, or a key."""

    mode: str = "auto"
    run: int | None = None
    cache_key: str | None = None


@dataclass(slots=True, eq=False)
class _Group:
    """The lookups of one graph in one cache and direction so far."""

    lookups: list[int] = field(default_factory=list)
    of_run: dict[int | None, list[int]] = field(default_factory=dict)
    runs: list[int] = field(default_factory=list)  # in the order of their numbers
    of_rank: defaultdict[int | None, list[int]] = field(default_factory=lambda: defaultdict(list))  # the runs


class Baselines:
    """Finds the baselines of the lookups before `until` among all earlier lookups and the entries that existed."""

    def __init__(self, history: History, choice: Choice, until: int | None = None) -> None:
        self._history = history
        self._lookups = history.lookups
        self._choice = choice
        self.stored = StoredCandidates(history)
        self.replaced = ReplacedGraphs(history, self.stored, choice.run)
        self.recompiles = Recompiles(history)
        self._earlier: dict[_Kind | _Group, EarlierKeys] = {}
        # For each lookup, the lookups of its graph, and the rest of its key.
        self._group: list[_Group | None] = [None] * len(history.lookups)
        self._content = [0 if form is None else form[1] for form in history.forms]
        # For each miss, the lookups of its graph under its compile id in the run before.
        self._in_run_before: list[Sequence[int]] = [()] * len(history.lookups)
        self._index(until)

    def find(self, at: int) -> Baseline | None:
        """The baseline of a missed lookup with known details."""
        match self._choice.mode:
            case "key":
                return self._with_key(at)
            case "nearest":
                kind = _kind_of(self._lookups[at])
                found_before = self._nearest_of(kind, self._of_kind[kind], at)
                return self._or_entry(at, *found_before, self.stored.of_kind(at))
        several = [one for one in self._in_run_before[at] if not self._is_equal(one, at)]
        found: Baseline | None = several[0] if len(several) == 1 else self._nearest(at, reversed(several))[0]
        if found is None:
            found = self._nearest_of_same_graph(at)
        if isinstance(found, int) and self._history.was_running(found, at):
            if self._hold_a_rank(found, at):
                return found
            found = self._nearest_of_same_graph(at, is_finished=True)
        # Or else an earlier form of its graph; and if that is farther away, or either has the same key, an earlier compile of the
        # function in its process.
        before = self.recompiles.before(at) if self._choice.mode == "auto" else None
        form = self.replaced.by(at) if found is None or found == before else None
        if form is not None and before is not None and self._is_compiled_again_alike(form, before, at):
            return form
        form = form if found is None else None
        earlier = form if found is None else found
        if earlier is None or before is None:
            return before if earlier is None else earlier
        row, like = self._lookups[at], self._history.row_of(earlier)
        is_of_earlier_block = (
            form is not None
            and isinstance(like, LookupRow)
            and like.run != row.run
            and self._history.process_of(like.run) == self._history.process_of(row.run)
        )
        if is_of_earlier_block or like.cache_key == self._lookups[before].cache_key:
            return before
        return earlier if form is None else min(form, before, key=lambda one: self._history.distance(one, at))

    def _is_compiled_again_alike(self, form: int, before: int, at: int) -> bool:
        """Whether an earlier form in another process was compiled again for the same guards, which then do not say what changed since."""
        row, like = self._lookups[at], self._lookups[form]
        if like.compile_id != row.compile_id or row.recompile_reasons is None:
            return False
        own, others = (map(failed_guard, (one.recompile_reasons or "").split("\n")) for one in (row, like))
        names = self._history.change(form, at).names
        return [*own] == [*others] and {*names}.isdisjoint(self._history.change(before, at).names)

    def nearer(self, at: int, found: Baseline) -> int | None:
        """A key of the same graph that differs in fewer fields than the baseline.

        People think of the run before; the cache could have used the nearest key. A key whose
        changes are a subset of those against the run before is preferred.
        """
        group = self._group[at]
        # An entry is a baseline only if it is nearer than every lookup of the graph.
        if self._choice.mode != "auto" or group is None or not isinstance(found, int):
            return None
        if self._group[found] is not group:
            return None
        own, baseline = self._content[at], self._content[found]
        earlier = self._right_before(at)
        tried = tuple([self._content[one] for one in earlier])
        within, others = self._with_fewer(own, baseline, tried)
        # What differs between two calls in one run did not change since the run before.
        outside = [one for one in others if self._lookups[earlier[one]].run != self._lookups[at].run]
        nearest_first = (earlier[number] for number in (*within, *outside))
        return next((one for one in nearest_first if self._may_be_nearer(one, at)), None)

    @kept
    def _with_fewer(self, own: int, baseline: int, tried: tuple[int, ...]) -> tuple[list[int], list[int]]:
        """Which sets of fields are nearer than a baseline: those whose changes are a subset of the baseline's, and the others.

        The best first: of the former the first with the fewest, of the others the last.
        """
        changed = self._history.keys.changed(baseline, own)
        fields = [self._history.keys.changed(content, own) for content in tried]
        fewer = [number for number, apart in enumerate(fields) if 0 < len(apart) < len(changed)]
        within = [number for number in fewer if fields[number] <= changed]
        others = [number for number in reversed(fewer) if not fields[number] <= changed]
        for some in (within, others):
            some.sort(key=lambda number: len(fields[number]))
        return within, others

    def for_equal_inputs(self, at: int) -> Baseline | None:
        """The nearest compile of the same graph for equal inputs in another process: its key could have been used, whatever guard failed."""
        row = self._lookups[at]
        if self._choice.mode != "auto" or self._group[at] is None:
            return None
        others = (one for one in self._right_before(at) if self._lookups[one].run != row.run)
        tried: list[Baseline] = [one for one in others if not self._history.was_running(one, at)]
        changes = [(self._history.change(one, at).names, one) for one in (*self.stored.of_graph(at), *tried)]
        equal = [(names, one) for names, one in changes if names and not any(map(is_of_the_call, names))]
        return min(equal, key=lambda one: len(one[0]))[1] if equal else None

    def _may_be_nearer(self, one: int, at: int) -> bool:
        """Whether the compile after a lookup had ended, and the lookup is not of another call of the graph."""
        if self._lookups[one].run == self._lookups[at].run:
            return not self._is_another_call(one, at)
        return not self._history.was_running(one, at)

    def nearer_in_parts(self, at: int, found: Candidate) -> int | None:
        """A key whose inputs differ in a proper subset of the parts: in the dtype, but not also in the shape.

        The baseline differs in its inputs alone.
        """
        row, group, keys = self._lookups[at], self._group[at], self._history.keys
        of_entry = self._history.details.direction
        direction = found.direction if isinstance(found, LookupRow) else of_entry(set_of(found))
        if self._choice.mode != "auto" or group is None or direction != row.direction:
            return None
        own = set_of(row)
        best, fewest = None, keys.parts(set_of(found), own)
        # Inputs that print alike but hash differently differ in no part that is known. They are not nearer than one that differs in one part.
        if len(fewest) < 2:
            return None
        within = keys.changed(keys.content(set_of(found)), self._content[at])
        for one in reversed(self._right_before(at)):
            fields = keys.changed(self._content[one], self._content[at])
            if fields and fields <= within and self._may_be_nearer(one, at):
                parts = keys.parts(set_of(self._lookups[one]), own)
                if parts < fewest:
                    best, fewest = one, parts
        return best

    def concurrent_lookup(self, at: int) -> int | None:
        """The latest lookup of the same graph and frame whose compile another process had not finished."""
        group, frame = self._group[at], _frame_of(self._lookups[at])
        if group is None:
            return None
        earlier = (group.lookups[number] for number in range(bisect_left(group.lookups, at) - 1, -1, -1))
        of_frame = (
            one for one in earlier if _frame_of(self._lookups[one]) == frame and not self._is_equal(one, at)
        )
        tried = islice(of_frame, _NEARER_TRIED)
        return next((one for one in tried if self._history.was_running(one, at)), None)

    def are_alike_by(self, found: Candidate, row: LookupRow) -> str:
        """A clause on why two graphs are taken for forms of one."""
        text = f"{percent(self.replaced.aligner.code_likeness(found, row))} of their code is alike"
        if not isinstance(found, LookupRow):
            return text
        if (why := self.replaced.aligner.why_paired.get((found.lookup, row.lookup))) is not None:
            text += f", and {why}"
        name, file = row.function, code_file(row.file)
        is_one = (found.function, code_file(found.file)) == (name, file) and not is_no_file(file)
        return f"both are of the function {name} of one file, and {text}" if name and is_one else text

    def _hold_a_rank(self, before: int, after: int) -> bool:
        """Whether two lookups of one graph differ only in fields that contain the rank."""
        rank, other = (self._history.rank_of.get(self._lookups[one].run) for one in (before, after))
        apart = None if rank is None or other is None else other - rank
        return self._differ_by_rank(self._history.change(before, after), apart)

    @kept
    def _differ_by_rank(self, change: Change, apart: int | None) -> bool:
        return all_hold_a_rank(self._history.details, change.components, apart)

    def _with_key(self, at: int) -> Baseline | None:
        key, row, lookups = self._choice.cache_key, self._lookups[at], self._lookups
        stored = [entry for entry in self.stored.with_kind(at) if entry.cache_key == key]
        if stored:
            return stored[-1]
        number = self._history.key_numbers.get((row.cache, key or ""))
        of_key = [] if number is None else self._history.of_key[number]
        earlier = (one for one in reversed(of_key) if one < at and lookups[one].detail_set is not None)
        return next((one for one in earlier if lookups[one].direction == row.direction), None)

    # Lookups of the same graph.

    @cached_property
    def _of_kind(self) -> dict[_Kind, list[int]]:
        """The lookups with hash details by cache and direction."""
        return by_key((_kind_of(row), at) for at, row in self._history.described)

    def _index(self, until: int | None) -> None:
        """Find the lookups of each graph, and for each miss those in the run before."""
        groups: dict[tuple[str, str | None, int | None], _Group] = defaultdict(_Group)
        is_by_run, rank_of = self._choice.mode in ("auto", "run"), self._history.rank_of
        for at, (row, form) in enumerate(
            zip(self._lookups[:until], self._history.forms[:until], strict=True)
        ):
            if form is None or form[0] is None:
                continue
            group, run = groups[row.cache, row.direction, form[0]], row.run
            of_rank = group.of_rank[rank_of.get(run)]
            if row.outcome != "hit" and row.compile_id is not None and is_by_run:
                self._in_run_before[at] = self._called_before(group, of_rank, row)
            if (of_run := group.of_run.get(run)) is None:
                of_run = group.of_run[run] = []
                insort(group.runs, run)
                insort(of_rank, run)
            of_run.append(at)
            self._group[at] = group
            group.lookups.append(at)

    def _called_before(self, group: _Group, of_rank: list[int], row: LookupRow) -> list[int]:
        """The lookups under the same compile id in the latest other run so far; in one of the same rank if there is any."""
        run = _latest_other(of_rank, row.run)
        if self._choice.mode == "run":
            run = None if row.run == self._choice.run else self._choice.run
        elif run is None:
            run = _latest_other(group.runs, row.run)
        lookups, compile_id = self._lookups, row.compile_id
        return [one for one in group.of_run.get(run, ()) if lookups[one].compile_id == compile_id]

    def _right_before(self, at: int) -> Sequence[int]:
        """The lookups of the same graph right before a lookup."""
        group = self._group[at]
        lookups = [] if group is None else group.lookups
        end = bisect_left(lookups, at)
        return lookups[max(end - _NEARER_TRIED, 0) : end]

    def _is_another_call(self, one: int, at: int) -> bool:
        """Whether two lookups of a graph in one run come from calls in different places with different inputs."""
        frame, own = _frame_of(self._lookups[one]), _frame_of(self._lookups[at])
        is_elsewhere = frame is not None and own is not None and frame != own
        return is_elsewhere and self._history.keys.only_inputs(self._content[one], self._content[at])

    def _is_equal(self, one: int, at: int) -> bool:
        """Whether two lookups have one key: nothing changed between them, whatever directories they look into."""
        return self._lookups[one].cache_key == self._lookups[at].cache_key

    def _nearest_of_same_graph(self, at: int, *, is_finished: bool = False) -> Baseline | None:
        """The nearest lookup or entry of the same graph, except for other calls of it; if asked, one whose compile had ended."""
        group, is_of_run = self._group[at], self._choice.mode == "run"
        entries = [] if is_of_run else self.stored.of_graph(at)
        if group is None:
            return self._or_entry(at, None, 0, entries)
        # Earlier lookups of an equal graph in the same run, from other places and with other inputs, are other calls: nothing changed.
        of_run = group.of_run.get(self._lookups[at].run, ())
        other_calls = {one for one in of_run if one < at and self._is_another_call(one, at)}
        if not (is_of_run or is_finished or other_calls or self._lookups[at].prediction is not None):
            return self._or_entry(at, *self._nearest_of(group, group.lookups, at), entries)
        lookups = group.of_run.get(self._choice.run, []) if is_of_run else group.lookups
        earlier = (lookups[number] for number in range(bisect_left(lookups, at) - 1, -1, -1))
        may_be = (
            one
            for one in earlier
            if one not in other_calls
            and not (is_finished and self._history.was_running(one, at))
            and not self._is_equal(one, at)
        )
        return self._or_entry(at, *self._nearest(at, may_be), entries)

    def _nearest_of(self, name: _Kind | _Group, lookups: list[int], at: int) -> tuple[int | None, int]:
        # Nothing comes before the first, so nothing is prepared for it.
        if lookups[0] == at:
            return None, 0
        if name not in self._earlier:
            sets = [(one, set_of(self._lookups[one])) for one in lookups]
            self._earlier[name] = EarlierKeys(self._history.keys, sets)
        return self._earlier[name].nearest(at, set_of(self._lookups[at]))

    def _nearest(self, at: int, latest_first: Iterable[int]) -> tuple[int | None, int]:
        """Of some lookups of the same graph, the one that differs in the fewest fields, the latest among equals; and in how many."""
        own = self._content[at]
        best, fewest = None, 0
        for one in latest_first:
            fields = self._history.keys.apart(self._content[one], own)
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
            fields = self._history.keys.fields(set_of(entry), set_of(self._lookups[at]))
            if best is None or fields < fewest:
                best, fewest = entry, fields
        return best


def _latest_other(runs: Sequence[int], own: int) -> int | None:
    """The greatest of some numbers, given in order, that is another one."""
    return next((run for run in reversed(runs) if run != own), None)


def _kind_of(row: LookupRow) -> _Kind:
    return row.cache, row.direction


def _frame_of(row: LookupRow) -> str | None:
    return None if row.compile_id is None else frame_of(row.compile_id)
