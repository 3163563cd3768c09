"""Keys that had never been seen: what each is compared with, and in which fields it differs.

AOTAutograd lookups are judged first: how their key changed shows which earlier graph an FX lookup below corresponds to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from cachescope.analysis.history.entry_times import Doubt
from cachescope.analysis.history.history import History
from cachescope.analysis.verdicts.aot_entries_without_details import MADE_OTHERWISE, judge_by_graphs
from cachescope.analysis.verdicts.baselines import Baseline, Baselines, Choice
from cachescope.analysis.verdicts.changed_keys import GUARD_FAILED, ChangedKeys
from cachescope.analysis.verdicts.misses import VerdictsSoFar, Why
from cachescope.analysis.verdicts.recompiles import compile_number, recompile_of
from cachescope.analysis.verdicts.replaced_graphs import is_named
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.kept import kept
from cachescope.terms import AOTAUTOGRAD, HOW_TO_RECORD, MISSED, VLLM
from cachescope.verdict_kinds import CONCURRENT, NEW_GRAPH, NOT_KNOWN, OTHER_KEY
from cachescope.wording import listed, place_text

_COLD_START: Final = Why(
    "first_lookup",
    "nothing earlier to compare with: a cold start, or what was there before was not read",
    "inferred",
    "no earlier run and no entry that was there before was read",
)
_IS_NEW: Final = Why(
    "first_lookup",
    "nothing that was read before is of this graph",
    "inferred",
    "no earlier lookup or entry that was read is of this graph",
)
_IS_BESIDE: Final = Why(
    "first_lookup",
    "nothing earlier to compare with: another run was compiling the same graph under another key, and had not finished",
    "inferred",
    "no entry and no ended compile that was read is of this graph; {} was compiling it at that moment",
    kind=CONCURRENT,
)
_IS_NEW_IN_A_FILLED_CACHE: Final = replace(_IS_NEW, kind=NEW_GRAPH)
_EARLIER_NOT_DESCRIBED: Final = (
    "its compile id counts earlier compiles of the function, and no hash details of those are recorded"
)
_GRAPHS_NOT_DESCRIBED: Final = "its AOTAutograd key is another form of an earlier one, and not all hash details of the graphs under that are recorded"

_FIELDS_NAMED: Final = 3


class NewKeys:
    """Judges misses of keys that had not been looked up before."""

    def __init__(self, history: History, choice: Choice, found: VerdictsSoFar, until: int) -> None:
        self._history = history
        self._lookups = history.lookups
        self._found = found
        self._baselines = Baselines(history, choice, until)
        self._changed_keys = ChangedKeys(history, self._baselines)
        # For each AOTAutograd lookup with a changed key, the lookup that it is compared with.
        self._changed_from: list[int | None] = [None] * len(history.lookups)

    def judge(self, indexes: Sequence[int]) -> None:
        """Judge lookups, given by their indexes in time order."""
        described = [at for at in indexes if self._lookups[at].detail_set is not None]
        autograd = [at for at in described if self._lookups[at].cache == AOTAUTOGRAD]
        for at in (*autograd, *(at for at in described if self._lookups[at].cache != AOTAUTOGRAD)):
            self._judge(at)
        for at in indexes:
            if self._lookups[at].detail_set is None:
                self._found.record(at, self._without_details(at))
        for at in autograd:
            above = self._above_the_same(at)
            if above is not None:
                self._compare(at, above)
        judge_by_graphs(self._history, self._found, self._baselines.stored.times, autograd)

    def _judge(self, at: int) -> None:
        baseline = self._baselines.find(at)
        if baseline is not None and self._are_graphs_before_lost(at):
            # The graph that it would be compared with is lost: only what the AOTAutograd keys show is a change.
            above = self._history.aot[at]
            why = None if above is None else self._found.why[above]
            names = self._history.change(baseline, at).names
            baseline = None if why is None or set(names).difference(why.changed) else baseline
        if baseline is None:
            baseline = self._under_the_same(at)
        if baseline is None:
            self._found.record(at, *self._first_lookup(at))
        else:
            self._compare(at, baseline)

    def _compare(self, at: int, baseline: Baseline) -> None:
        """Judge a lookup by what changed since its baseline, or since a nearer key."""
        found, change = self._history.row_of(baseline), self._history.change(baseline, at)
        row, again = self._lookups[at], None
        if isinstance(found, LookupRow) and self._baselines.recompiles.is_recompiled(found, row):
            again = recompile_of(row, change.names, found)
        if again is not None and (equal := self._baselines.for_equal_inputs(at)) is not None:
            baseline = equal
            found, change = self._history.row_of(baseline), self._history.change(baseline, at)
        apart, nearer = len(change.names), None
        if apart > 1:
            nearer = self._baselines.nearer(at, baseline)
        if nearer is None and change.are_inputs:
            nearer = self._baselines.nearer_in_parts(at, found)
        if nearer is not None:
            baseline, change = nearer, self._history.change(nearer, at)
        self._changed_from[at] = baseline if isinstance(baseline, int) else None
        why = self._changed_keys.why(at, baseline, change, 0 if nearer is None else apart)
        self._found.record(at, why, baseline)

    def _above_the_same(self, at: int) -> int | None:
        """The AOTAutograd lookup of the graphs that those below a lookup are compared with, if its own graph shows no earlier form.

        Under another torch it prints differently, and with checkpoints it has little but their calls.
        """
        why, graph, lookups = self._found.why[at], self._history.graph, self._lookups
        if why is None or not why.what.may_be_first or why.what.is_of_function or why.what.is_beside:
            return None
        graphs = self._history.timeline.graphs_of(at)
        before = [one for one in map(self._found.baseline.__getitem__, graphs) if isinstance(one, int)]
        above, *others = {self._history.aot[one] for one in before} or {None}
        if above is None or others or len(before) < len(graphs) or lookups[above].detail_set is None:
            return None
        row, found = lookups[at], lookups[above]
        if why.what.is_unexplained:
            are_same = all(graph[one] == graph[other] for one, other in zip(graphs, before, strict=True))
            return above if are_same and self._history.change(above, at).is_of_torch else None
        is_one = (found.function, found.file, found.compile_id) == (row.function, row.file, row.compile_id)
        below = [self._found.why[one] for one in graphs]
        are_forms = all(why is not None and "gm" in why.changed for why in below)
        if not (is_one and are_forms and is_named(row)) or found.run == row.run:
            return None
        self._baselines.replaced.aligner.why_paired[found.lookup, row.lookup] = (
            "the graphs below them are forms of one"
        )
        return above

    def _under_the_same(self, at: int) -> int | None:
        """The graph below the earlier form of the AOTAutograd key above a lookup."""
        direction = self._lookups[at].direction
        for graph in self._graphs_before(at) or ():
            other = self._lookups[graph]
            if other.direction == direction and other.detail_set is not None:
                return graph
        return None

    def _graphs_before(self, at: int) -> Sequence[int] | None:
        """The graphs below the earlier form of the AOTAutograd key above a lookup; None if no earlier form is known."""
        above = self._history.aot[at]
        before = None if above is None else self._changed_from[above]
        return None if before is None else self._history.timeline.graphs_of(before)

    def _are_graphs_before_lost(self, at: int) -> bool:
        """Whether one of those graphs may be the earlier form of a graph, because its hash details are not recorded."""
        before = self._graphs_before(at)
        return before is not None and (
            not before or any(self._lookups[one].detail_set is None for one in before)
        )

    # Without a baseline.

    def _first_lookup(self, at: int) -> tuple[Why, Baseline | None]:
        """Why it counts as a first lookup, and the graph that it may be another form of."""
        concurrent = self._baselines.concurrent_lookup(at)
        why, like = self._why_not_known_to_be_new(at)
        run = None if concurrent is None else self._lookups[concurrent].run
        if why is None and concurrent is not None and not self._history.is_seen_running(concurrent, at):
            why = f"run {run} had begun to compile the same graph, and no log shows when that compile ended"
        if why is None:
            if concurrent is not None:
                return replace(_IS_BESIDE, evidence_text=_IS_BESIDE.evidence_text.format(f"run {run}")), None
            if (again := self._compiled_again(at)) is not None:
                return again, None
            if self._baselines.stored.may_take_inputs_of(at):
                return MADE_OTHERWISE, None
            return _IS_NEW_IN_A_FILLED_CACHE if self._is_filled(at) else _IS_NEW, None
        reason = "nothing that was read is known to be an earlier form of this graph"
        if isinstance(like, Doubt):
            fields = listed(like.fields, _FIELDS_NAMED) or "no recorded field"
            reason = f"{like.place} holds a key of the same graph that differs in {fields}"
            return Why("first_lookup", reason, "not_known", why, kind=OTHER_KEY), None
        return Why("first_lookup", reason, "not_known", why, kind=NOT_KNOWN), like

    def _compiled_again(self, at: int) -> Why | None:
        """Why a lookup missed that has no earlier form in its process, if torch recorded that a guard failed."""
        found = recompile_of(self._lookups[at], before=self._baselines.recompiles.latest(at))
        if found is None or found.reason is None:
            return None
        return Why("first_lookup", found.reason, *GUARD_FAILED, kind=found.kind)

    def _why_not_known_to_be_new(self, at: int) -> tuple[str | None, Baseline | Doubt | None]:
        """Why a graph without a baseline may still be an earlier one, None if nothing suggests it; and the most alike one."""
        row = self._lookups[at]
        if (unrecorded := self._compiled_unrecorded(row)) is not None:
            return unrecorded, None
        is_again = row.recompile_reasons is None and compile_number(row) > 0
        if is_again and not self._baselines.recompiles.are_described(at):
            return _EARLIER_NOT_DESCRIBED, None
        if self._are_graphs_before_lost(at):
            return _GRAPHS_NOT_DESCRIBED, None
        if (doubt := self._baselines.stored.doubt(at)) is not None:
            return doubt.why, doubt
        first = self._first_without_details.get(row.cache)
        unknown = None if first is None or first >= at else self._lookups[first]
        # An earlier lookup of its process has the same compile id: ids had begun again.
        if unknown is not None and (unknown.run != row.run or unknown.compile_id == row.compile_id):
            why = "the hash details of earlier lookups were not recorded, and one of them may be of the same graph"
            return why, None
        if self._is_explained_above(at, row):
            return "the hash details of its AOTAutograd key, which would show it, are not recorded", None
        found = self._baselines.replaced.may_be(at)
        if found is None:
            return None, None
        like = self._history.row_of(found)
        where = f"run {like.run}" if isinstance(like, LookupRow) else "the cache directory"
        if not isinstance(like, LookupRow):
            lacking = "an entry names no function (a trace does)"
        elif None in (row.function, like.function):
            lacking = "nothing names the functions (a trace does)"
        else:
            lacking = "that is not enough to decide"
        alike = self._baselines.are_alike_by(like, row)
        why = f"{where} has a graph like it: {alike}; whether this is another form of it is not known, for {lacking}"
        return why, found

    def _compiled_unrecorded(self, row: LookupRow) -> str | None:
        """Why it may not be the first lookup of its function: an earlier compile has no lookup in its log, and is not known to have succeeded."""
        place = place_text(row.function, row.file, row.line)
        for run in self._history.runs:
            if place in run.unrecorded_compiles and run.run != row.run and _began_before(run, row):
                return f"run {run.run} had begun to compile {row.function}, and its log has no lookup of that: it failed, or it or its log ended"
        return None

    @cached_property
    def _first_without_details(self) -> dict[str, int]:
        """By cache, the first miss whose key has no recorded details."""
        found: dict[str, int] = {}
        for at, form in enumerate(self._history.forms):
            if form is None and self._lookups[at].outcome in (*MISSED, "unknown"):
                found.setdefault(self._lookups[at].cache, at)
        return found

    def _is_explained_above(self, at: int, row: LookupRow) -> bool:
        """Whether only the AOTAutograd key above a graph could show the earlier form, and the details of that key are not recorded."""
        above = self._history.aot[at]
        if above is None or self._lookups[above].detail_set is not None or is_named(row):
            return False
        return self._history.other_run_before(at)

    def _is_filled(self, at: int) -> bool:
        """Whether the cache of a lookup's run is known to have been filled by then: a new graph is then no cold start."""
        since = self._found_first(self._lookups[at].run)
        return since is not None and since < at

    @kept
    def _found_first(self, run: int) -> int | None:
        """The first lookup that shows that a run found what another process had stored; -1 if it was there when the run began.

        Only the run's own hits show that. What others stored may lie on another machine, also under the same path.
        """
        history, lookups = self._history, self._lookups
        own = history.of_run[run]
        began, first = lookups[own[0]].time, None
        for at in own:
            row = lookups[at]
            if row.outcome != "hit" or row.cache == VLLM or row.cache_key is None:
                continue
            earlier = history.latest_of_key(at)
            if earlier is None:
                first = at if first is None else first
            elif lookups[earlier].run != run:
                ended = history.timeline.end[earlier]
                if ended is not None and began is not None and ended < began:
                    return -1
        return first

    # Without hash details.

    def _without_details(self, at: int) -> Why:
        row = self._lookups[at]
        if row.details == "incomplete":
            return _not_recorded(row)
        for graph in self._history.timeline.graphs_of(at):
            if (doubt := self._found.why[graph]) is not None and doubt.what.is_other_key:
                return doubt
        is_alone = not self._history.other_run_before(at)
        again, below = self._compiled_again(at), self._why_graphs_are_new(at)
        if below is not None and below.what.is_first and at <= self._lost_graphs:
            return below
        if again is not None and below is not None and (below.evidence, below.evidence_text) == GUARD_FAILED:
            return replace(again, reason=below.reason, kind=below.kind)
        is_filled = (
            row.cache in self._is_stored_before or self._is_filled(at) or self._history.found_below(at)
        )
        is_new = is_alone and not is_filled and self._compiled_unrecorded(row) is None
        if again is not None and is_new:
            return again
        is_cold = is_new and not (
            self._is_another_above(at) or self._is_another_below(at) or self._is_compiled_again(at)
        )
        return _COLD_START if is_cold else _not_recorded(row)

    def _is_another_above(self, at: int) -> bool:
        """Whether the AOTAutograd key above a graph is another form of an earlier one: so may be the graph."""
        above = self._history.aot[at]
        if above is None or self._history.key[above] is None:
            # A lookup without a key, such as a bypass, says nothing about the graph.
            return False
        why = self._found.why[above]
        return why is not None and not why.what.is_first

    def _is_another_below(self, at: int) -> bool:
        """Whether a graph below an AOTAutograd key is another form of an earlier one: so may be what it was made of."""
        whys = [self._found.why[graph] for graph in self._history.timeline.graphs_of(at)]
        return any(why is not None and not why.what.may_be_first for why in whys)

    @cached_property
    def _lost_graphs(self) -> int:
        """The first AOTAutograd lookup without a recorded lookup of its graph. That graph may be the same as any later one."""
        rows, graphs_of = self._lookups, self._history.timeline.graphs_of
        asked = (at for at, row in enumerate(rows) if row.cache == AOTAUTOGRAD and row.cache_key is not None)
        return next((at for at in asked if not graphs_of(at)), len(rows))

    def _why_graphs_are_new(self, at: int) -> Why | None:
        """Why the graphs below an AOTAutograd lookup missed, if they are first lookups or a guard failed. The key above is then new, too.

        Another run may have looked such a graph up first, under the same key.
        """
        keys, lookups, aot = self._history.key, self._lookups, self._history.aot
        whys: list[Why | None] = []
        for graph in self._history.timeline.graphs_of(at):
            if whys and lookups[graph].direction == "backward":
                # Different forward graphs may share one backward graph.
                continue
            key = keys[graph]
            first = graph if key is None else self._history.of_key[key][0]
            is_own = (above := aot[first]) is not None and keys[above] == keys[at]
            whys.append(self._found.why[first] if is_own else None)
        are_new = all(why is not None and (why.what.is_of_function or why.what.is_first) for why in whys)
        return whys[0] if whys and are_new else None

    @cached_property
    def _is_stored_before(self) -> frozenset[str]:
        """The caches with entries that no recorded miss wrote."""
        history = self._history
        return frozenset(entry.cache for entry in history.entries if not history.is_of_a_miss(entry))

    @cached_property
    def _first_of_compile(self) -> dict[tuple[int, str | None, str], LookupRow]:
        """The first lookup of each compile in its cache."""
        return {(one.run, one.compile_id, one.cache): one for one in reversed(self._lookups)}

    def _is_compiled_again(self, at: int) -> bool:
        """Whether its process had compiled the function before, by the compile id; or had used the id with another key, since ids had begun again.

        Forward and backward graphs of a training graph have different keys in one compile. If the lines that record the
        direction are lost, it may be either.
        """
        row = self._lookups[at]
        if compile_number(row):
            return True
        first = self._first_of_compile[row.run, row.compile_id, row.cache]
        is_same_autograd = first.aot_lookup == row.aot_lookup
        may_be_backward = is_same_autograd and first.direction != "inference"
        return first.cache_key != row.cache_key and (first.details == "incomplete" or not may_be_backward)


def _began_before(run: RunRow, row: LookupRow) -> bool:
    return run.start_time is not None and row.time is not None and run.start_time < row.time


def _not_recorded(row: LookupRow) -> Why:
    reason = f"nothing says what was in this key; {HOW_TO_RECORD}"
    why = "torch did not record the hash details of this key"
    if row.details == "incomplete":
        reason = why = (
            "lines of its hash details are missing from the log, so nothing says what was in this key"
        )
    return Why("details_not_recorded", reason, "not_known", why, kind=row.cache)
