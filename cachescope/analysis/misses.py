"""Why each lookup missed: one verdict, its baseline, the changed fields, and a sentence.

The lookups are walked in time order. Hashes decide, never texts; what was not recorded is said to be so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from cachescope.analysis.baselines import Baselines, Candidate, Choice
from cachescope.analysis.differences import field_change
from cachescope.analysis.grouped import Numbers
from cachescope.analysis.history import EntryRow, LookupRow, RunRow
from cachescope.analysis.past_of_keys import PastOfKeys
from cachescope.analysis.timeline import Timeline, is_older
from cachescope.details import HashDetails
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, HOW_TO_RECORD, Verdict

# A fleet that starts at once races by the thousand.
_RUNS_NAMED: Final = 8


@dataclass(slots=True)
class Miss:
    """One missed lookup and why. `kind` tells causes of one verdict apart."""

    row: LookupRow
    verdict: Verdict
    reason: str
    baseline: Candidate | None = None
    changed: tuple[str, ...] = ()
    kind: str = ""
    root: bool = True
    cause: int | None = None
    follows: Miss | None = field(default=None, repr=False)


def explain_misses(
    lookups: Sequence[LookupRow],
    entries: Sequence[EntryRow],
    runs: Sequence[RunRow],
    details: HashDetails,
    choice: Choice,
) -> list[Miss]:
    """Judge every lookup that did not hit, in time order."""
    judge = _Judge(lookups, entries, runs, details, choice)
    return [judge.judge(at) for at, row in enumerate(lookups) if not row.is_hit]


class _Judge:
    def __init__(
        self,
        lookups: Sequence[LookupRow],
        entries: Sequence[EntryRow],
        runs: Sequence[RunRow],
        details: HashDetails,
        choice: Choice,
    ) -> None:
        self._rows = lookups
        self._baselines = Baselines(lookups, runs, entries, details, choice)
        self._changes = _Changes(details)
        self._timeline = Timeline(lookups)
        self._past = PastOfKeys(lookups, self._timeline)
        self._entries: dict[tuple[str, str], list[EntryRow]] = defaultdict(list)
        for entry in entries:
            self._entries[entry.cache, entry.cache_key].append(entry)
        self._oldest_entry = {
            cache: min(
                (e.modified_time for e in entries if e.cache == cache and e.modified_time is not None),
                default=None,
            )
            for cache in (AOTAUTOGRAD, FXGRAPH)
        }
        self._cache_dir = {run.run: run.cache_dir for run in runs}

    def judge(self, at: int) -> Miss:
        row = self._rows[at]
        if row.outcome == "bypass":
            reason = row.bypass_reason or "torch gave no reason"
            return Miss(row, "bypassed", f"torch did not cache it: {reason}", kind=_bypass_kind(reason))
        if row.outcome == "disabled":
            return Miss(
                row, "disabled", f"caching was switched off: {row.bypass_reason or 'cache not enabled'}"
            )
        if row.outcome == "guard_miss":
            return self._guard_failed(at, row)
        if row.cache_key is not None:
            known = self._known_key(at, row, row.cache_key)
            if known is not None:
                return known
        return self._new_key(at, row)

    # A key that was seen before: the fields are equal, the answer lies elsewhere.

    def _known_key(self, at: int, row: LookupRow, key: str) -> Miss | None:
        earlier = self._past.before(at)
        entries = [e for e in self._entries.get((row.cache, key), ()) if is_older(e, row)]
        if not (len(earlier) or entries) and row.status_detailed != "hit":
            return None
        stored = self._past.stored(at, earlier)
        if not len(stored) and not entries and row.status_detailed != "hit":
            racing = self._past.compiling_elsewhere(at, earlier)
            if len(racing):
                return self._compiled_concurrently(row, racing)
        return self._entry_unavailable(row, stored if len(stored) else earlier, entries)

    def _compiled_concurrently(self, row: LookupRow, racing: Numbers) -> Miss:
        runs = np.unique(self._past.run[racing]).tolist()
        reason = f"run {_and(runs)} had missed the same key and was still compiling it"
        return Miss(row, "compiled_concurrently", reason, baseline=self._rows[racing[0]])

    def _guard_failed(self, at: int, row: LookupRow) -> Miss:
        earlier = self._past.before(at)
        guards = self._candidate_guards(row, earlier)
        shown = "; ".join(guards) if guards else "not recorded"
        if row.status_detailed is not None or row.guards_expr is not None:
            reason = f"the key was found, and no entry's guards held: {shown}"
        else:
            reason = (
                "the key had been stored for a graph with symbolic sizes, so no entry's guards held "
                f"(a text log does not say it in so many words): {shown}"
            )
        baseline = self._rows[earlier[-1]] if len(earlier) else None
        return Miss(row, "guard_failed", reason, baseline=baseline, kind=row.cache_key or "")

    def _candidate_guards(self, row: LookupRow, earlier: Numbers) -> list[str]:
        """The guards of every entry that was there under the key, as far as any source tells."""
        entries = self._entries.get((row.cache, row.cache_key or ""), ())
        stored = [e.guards_expr for e in entries if is_older(e, row)]
        return list(dict.fromkeys(g for g in [row.guards_expr, *stored, *self._past.guards(earlier)] if g))

    def _entry_unavailable(self, row: LookupRow, earlier: Numbers, entries: list[EntryRow]) -> Miss:
        baseline = self._rows[earlier[-1]] if len(earlier) else (entries[-1] if entries else None)
        if len(earlier) and not entries and self._past.none_was_stored(earlier):
            why = self._timeline.why_not_stored(self._rows[earlier[-1]])
            reason = f"the same key had been compiled and not stored: {why}"
            return Miss(row, "entry_unavailable", reason, baseline=baseline, kind="not stored")
        kind, how = self._how_unavailable(row, earlier, entries)
        return Miss(
            row, "entry_unavailable", f"the same key had been stored, but {how}", baseline=baseline, kind=kind
        )

    def _how_unavailable(self, row: LookupRow, earlier: Numbers, entries: list[EntryRow]) -> tuple[str, str]:
        inner = [fx for fx in self._timeline.graphs_of(row) if not fx.is_hit]
        through_entry = row.cache == AOTAUTOGRAD and (row.status_detailed == "hit" or _looked_up_twice(inner))
        if through_entry:
            return "graph entry", "the FX graph entry that it points to could not be found or loaded"
        of_key = self._entries.get((row.cache, row.cache_key or ""), ())
        damaged = [e for e in [*entries, *of_key] if e.status == "damaged"]
        if row.load_error is not None:
            return "damaged", f"it could not be loaded: {_last_line(row.load_error)}"
        if damaged:
            return "damaged", f"it is damaged: {damaged[0].damage}"
        here = self._cache_dir.get(row.run)
        there = {self._cache_dir.get(run) for run in np.unique(self._past.run[earlier]).tolist()} - {None}
        if here is not None and there and here not in there:
            return (
                "another directory",
                f"in another directory: {sorted(d for d in there if d)[-1]}, not {here}",
            )
        if not entries and of_key:
            return "deleted", "it was not there any more: deleted, or the cache was cleared"
        if entries:
            return "not loaded", "it was not loaded"
        if row.status_detailed is None and row.detail_set is None:
            return "not found", (
                "it was not found, or its guards did not hold (a trace or the cache directory would tell which)"
            )
        return "deleted", (
            "it was not found: deleted, cleared, or damaged (a text log or the cache directory would tell which)"
        )

    # A key that was never seen.

    def _new_key(self, at: int, row: LookupRow) -> Miss:
        if row.detail_set is None:
            return self._without_details(at, row)
        baseline = self._baselines.find(at)
        if baseline is None:
            return Miss(row, "first_lookup", "nothing earlier to compare with: the graph is new")
        assert baseline.detail_set is not None
        changed = self._changes.fields(baseline.detail_set, row.detail_set)
        if not changed:
            reason = (
                "the keys differ and every recorded field is equal: what torch pickles for the key differs "
                "where its list of fields cannot show it"
            )
            return Miss(row, "no_detail_differs", reason, baseline=baseline)
        return Miss(row, "key_changed", self._what_changed(at, baseline, row, changed), baseline, changed)

    def _what_changed(self, at: int, baseline: Candidate, row: LookupRow, changed: tuple[str, ...]) -> str:
        graph = "another graph in the same place" if "gm" in changed else "the same graph"
        if len(changed) > 1:
            text = f"{graph}, and {len(changed)} fields of the key differ: {_fields(changed)}"
            nearer = self._baselines.nearer(at, changed)
            if nearer is not None:
                text += f" (compared with run {nearer[0].run} only {_fields(nearer[1])})"
            return text
        assert baseline.detail_set is not None and row.detail_set is not None
        summary = self._changes.summary(changed[0], baseline.detail_set, row.detail_set)
        return f"{graph}, and one field of the key differs: {changed[0]}, {summary}"

    def _without_details(self, at: int, row: LookupRow) -> Miss:
        oldest = self._oldest_entry[row.cache]
        older_entries = oldest is not None and row.time is not None and oldest < row.time
        if not self._past.other_run_before(at) and not older_entries:
            return Miss(row, "first_lookup", "nothing earlier to compare with: a cold start")
        reason = f"nothing says what was in this key; {HOW_TO_RECORD}"
        return Miss(row, "details_not_recorded", reason, kind=row.cache)


class _Changes:
    """What changed between two sets of hash details; what has been worked out once is kept, and equal answers once."""

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        self._fields: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._summaries: dict[tuple[int | None, int | None], str] = {}

    def fields(self, before: int, after: int) -> tuple[str, ...]:
        changed = self._details.changed_fields(before, after)
        return self._fields.setdefault(changed, changed)

    def summary(self, field: str, before: int, after: int) -> str:
        """What is different about one field, in one line."""
        pair = self._details.component_of(before, field), self._details.component_of(after, field)
        if pair not in self._summaries:
            old, new = self._details.detail(before, field), self._details.detail(after, field)
            texts = [None if detail is None else detail.value_text for detail in (old, new)]
            self._summaries[pair] = field_change(field, *texts).summary
        return self._summaries[pair]


def _looked_up_twice(inner: list[LookupRow]) -> bool:
    """The FX key of an AOTAutograd entry is looked up through the entry, and again after that failed."""
    keys = [fx.cache_key for fx in inner]
    return any(keys.count(key) > 1 for key in keys)


def _bypass_kind(reason: str) -> str:
    """The reason without what differs from case to case: addresses, numbers, quoted names."""
    first = reason.strip().split("\n", 1)[0]
    return re.sub(r"0x[0-9a-fA-F]+|\d+", "…", first)


def _last_line(text: str) -> str:
    return text.strip().split("\n")[-1]


def _fields(changed: tuple[str, ...]) -> str:
    return (
        ", ".join(changed) if len(changed) <= 4 else f"{', '.join(changed[:3])} and {len(changed) - 3} more"
    )


def _and(runs: list[int]) -> str:
    shown = ", ".join(str(run) for run in runs[:_RUNS_NAMED])
    return shown if len(runs) <= _RUNS_NAMED else f"{shown} and {len(runs) - _RUNS_NAMED} more"
