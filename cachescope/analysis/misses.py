"""Why each lookup missed: one verdict, its baseline, the changed fields, and a sentence.

The lookups are walked in time order. Hashes decide, never texts; what was not recorded is said to be so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from cachescope.analysis.baselines import Baselines, Candidate, Choice
from cachescope.analysis.differences import field_change
from cachescope.analysis.history import EntryRow, LookupRow, RunRow
from cachescope.analysis.timeline import Timeline, is_older
from cachescope.details import HashDetails
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, HOW_TO_RECORD, Verdict


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
    misses = []
    for row in lookups:
        if not row.is_hit:
            misses.append(judge.judge(row))
        judge.add(row)
    return misses


class _Judge:
    def __init__(
        self,
        lookups: Sequence[LookupRow],
        entries: Sequence[EntryRow],
        runs: Sequence[RunRow],
        details: HashDetails,
        choice: Choice,
    ) -> None:
        self._details = details
        self._baselines = Baselines(details, runs, entries, choice)
        self._baselines.announce(lookups)
        self._seen: dict[tuple[str, str], list[LookupRow]] = defaultdict(list)
        self._runs_seen: dict[str, set[int]] = defaultdict(set)
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
        self._timeline = Timeline(lookups)

    def add(self, row: LookupRow) -> None:
        if row.cache_key is not None:
            self._seen[row.cache, row.cache_key].append(row)
            self._runs_seen[row.cache].add(row.run)
        self._baselines.add(row)

    def judge(self, row: LookupRow) -> Miss:
        if row.outcome == "bypass":
            reason = row.bypass_reason or "torch gave no reason"
            return Miss(row, "bypassed", f"torch did not cache it: {reason}", kind=_bypass_kind(reason))
        if row.outcome == "disabled":
            return Miss(
                row, "disabled", f"caching was switched off: {row.bypass_reason or 'cache not enabled'}"
            )
        if row.outcome == "guard_miss":
            return self._guard_failed(row)
        if row.cache_key is not None:
            known = self._known_key(row, row.cache_key)
            if known is not None:
                return known
        return self._new_key(row)

    # A key that was seen before: the fields are equal, the answer lies elsewhere.

    def _known_key(self, row: LookupRow, key: str) -> Miss | None:
        earlier = self._seen[row.cache, key]
        stored = [e for e in earlier if self._timeline.was_stored_before(e, row)]
        entries = [e for e in self._entries[row.cache, key] if is_older(e, row)]
        if not stored and not entries and row.status_detailed != "hit":
            racing = [
                e
                for e in earlier
                if e.run != row.run and not e.is_hit and self._timeline.was_compiling(e, row)
            ]
            if racing:
                return self._compiled_concurrently(row, racing)
            if not earlier:
                return None
        return self._entry_unavailable(row, stored or earlier, entries)

    def _compiled_concurrently(self, row: LookupRow, racing: list[LookupRow]) -> Miss:
        runs = sorted({e.run for e in racing})
        reason = f"run {_and(runs)} had missed the same key and was still compiling it"
        return Miss(row, "compiled_concurrently", reason, baseline=racing[0])

    def _guard_failed(self, row: LookupRow) -> Miss:
        guards = self.candidate_guards(row)
        shown = "; ".join(guards) if guards else "not recorded"
        if row.status_detailed is not None or row.guards_expr is not None:
            reason = f"the key was found, and no entry's guards held: {shown}"
        else:
            reason = (
                "the key had been stored for a graph with symbolic sizes, so no entry's guards held "
                f"(a text log does not say it in so many words): {shown}"
            )
        baseline = next(reversed(self._seen[row.cache, row.cache_key or ""]), None)
        return Miss(row, "guard_failed", reason, baseline=baseline, kind=row.cache_key or "")

    def candidate_guards(self, row: LookupRow) -> list[str]:
        """The guards of every entry that was there under the key, as far as any source tells."""
        key = (row.cache, row.cache_key or "")
        guards = [row.guards_expr]
        guards += [e.guards_expr for e in self._entries[key] if is_older(e, row)]
        guards += [e.guards_expr for e in self._seen[key] if e.is_hit or e.outcome == "guard_miss"]
        return list(dict.fromkeys(g for g in guards if g))

    def _entry_unavailable(self, row: LookupRow, earlier: list[LookupRow], entries: list[EntryRow]) -> Miss:
        baseline = earlier[-1] if earlier else (entries[-1] if entries else None)
        not_stored = [self._timeline.why_not_stored(e) for e in earlier if not e.is_hit]
        if earlier and not entries and None not in not_stored and len(not_stored) == len(earlier):
            reason = f"the same key had been compiled and not stored: {not_stored[-1]}"
            return Miss(row, "entry_unavailable", reason, baseline=baseline, kind="not stored")
        kind, how = self._how_unavailable(row, earlier, entries)
        return Miss(
            row, "entry_unavailable", f"the same key had been stored, but {how}", baseline=baseline, kind=kind
        )

    def _how_unavailable(
        self, row: LookupRow, earlier: list[LookupRow], entries: list[EntryRow]
    ) -> tuple[str, str]:
        inner = [fx for fx in self._timeline.graphs_of(row) if not fx.is_hit]
        through_entry = row.cache == AOTAUTOGRAD and (row.status_detailed == "hit" or _looked_up_twice(inner))
        if through_entry:
            return "graph entry", "the FX graph entry that it points to could not be found or loaded"
        damaged = [
            e for e in [*entries, *self._entries[row.cache, row.cache_key or ""]] if e.status == "damaged"
        ]
        if row.load_error is not None:
            return "damaged", f"it could not be loaded: {_last_line(row.load_error)}"
        if damaged:
            return "damaged", f"it is damaged: {damaged[0].damage}"
        here = self._cache_dir.get(row.run)
        there = {self._cache_dir.get(e.run) for e in earlier} - {None}
        if here is not None and there and here not in there:
            return (
                "another directory",
                f"in another directory: {sorted(d for d in there if d)[-1]}, not {here}",
            )
        if not entries and self._entries[row.cache, row.cache_key or ""]:
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

    def _new_key(self, row: LookupRow) -> Miss:
        if row.detail_set is None:
            return self._without_details(row)
        baseline = self._baselines.find(row)
        if baseline is None:
            return Miss(row, "first_lookup", "nothing earlier to compare with: the graph is new")
        assert baseline.detail_set is not None
        changed = self._details.changed_fields(baseline.detail_set, row.detail_set)
        if not changed:
            reason = (
                "the keys differ and every recorded field is equal: what torch pickles for the key differs "
                "where its list of fields cannot show it"
            )
            return Miss(row, "no_detail_differs", reason, baseline=baseline)
        return Miss(row, "key_changed", self._what_changed(baseline, row, changed), baseline, changed)

    def _what_changed(self, baseline: Candidate, row: LookupRow, changed: tuple[str, ...]) -> str:
        graph = "another graph in the same place" if "gm" in changed else "the same graph"
        if len(changed) > 1:
            text = f"{graph}, and {len(changed)} fields of the key differ: {_fields(changed)}"
            nearer = self._baselines.nearer(row, baseline)
            if nearer is not None and isinstance(nearer[0], LookupRow):
                text += f" (compared with run {nearer[0].run} only {_fields(nearer[1])})"
            return text
        assert baseline.detail_set is not None and row.detail_set is not None
        before = self._details.detail(baseline.detail_set, changed[0])
        after = self._details.detail(row.detail_set, changed[0])
        change = field_change(
            changed[0],
            None if before is None else before.value_text,
            None if after is None else after.value_text,
        )
        return f"{graph}, and one field of the key differs: {changed[0]}, {change.summary}"

    def _without_details(self, row: LookupRow) -> Miss:
        oldest = self._oldest_entry[row.cache]
        older_entries = oldest is not None and row.time is not None and oldest < row.time
        if not self._runs_seen[row.cache] - {row.run} and not older_entries:
            return Miss(row, "first_lookup", "nothing earlier to compare with: a cold start")
        reason = f"nothing says what was in this key; {HOW_TO_RECORD}"
        return Miss(row, "details_not_recorded", reason, kind=row.cache)


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
    return ", ".join(str(run) for run in runs)
