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
from cachescope.analysis.past_of_keys import KeyPast, PastOfKeys, Racing
from cachescope.analysis.timeline import Timeline, is_older
from cachescope.details import HashDetails, parse_component
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
        self._changes = _ChangesFound(details)
        self._timeline = Timeline(lookups)
        self._cache_dir = {run.run: run.cache_dir for run in runs}
        self._past = PastOfKeys(lookups, self._timeline, self._cache_dir)
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
        past = self._past.of(at)
        entries = [e for e in self._entries.get((row.cache, key), ()) if is_older(e, row)]
        if past.latest is None and not entries and row.status_detailed != "hit":
            return None
        if past.latest_stored is None and not entries and row.status_detailed != "hit":
            racing = past.racing()
            if racing is not None:
                return self._compiled_concurrently(row, racing)
        return self._entry_unavailable(row, past, entries)

    def _compiled_concurrently(self, row: LookupRow, racing: Racing) -> Miss:
        runs = ", ".join(map(str, racing.runs)) + (f" and {racing.more} more" if racing.more else "")
        reason = f"run {runs} had missed the same key and was still compiling it"
        return Miss(row, "compiled_concurrently", reason, baseline=self._rows[racing.first])

    def _guard_failed(self, at: int, row: LookupRow) -> Miss:
        past = self._past.of(at)
        guards = self._candidate_guards(row, past)
        shown = "; ".join(guards) if guards else "not recorded"
        if row.status_detailed is not None or row.guards_expr is not None:
            reason = f"the key was found, and no entry's guards held: {shown}"
        else:
            reason = (
                "the key had been stored for a graph with symbolic sizes, so no entry's guards held "
                f"(a text log does not say it in so many words): {shown}"
            )
        baseline = None if past.latest is None else self._rows[past.latest]
        return Miss(row, "guard_failed", reason, baseline=baseline, kind=row.cache_key or "")

    def _candidate_guards(self, row: LookupRow, past: KeyPast) -> list[str]:
        """The guards of every entry that was there under the key, as far as any source tells."""
        entries = self._entries.get((row.cache, row.cache_key or ""), ())
        stored = [e.guards_expr for e in entries if is_older(e, row)]
        return list(dict.fromkeys(g for g in [row.guards_expr, *stored, *past.guards] if g))

    def _entry_unavailable(self, row: LookupRow, past: KeyPast, entries: list[EntryRow]) -> Miss:
        latest = past.latest if past.latest_stored is None else past.latest_stored
        baseline = self._rows[latest] if latest is not None else (entries[-1] if entries else None)
        if latest is not None and not entries and not past.was_kept:
            why = self._timeline.why_not_stored(self._rows[latest])
            reason = f"the same key had been compiled and not stored: {why}"
            return Miss(row, "entry_unavailable", reason, baseline=baseline, kind="not stored")
        kind, how = self._how_unavailable(row, past, entries)
        return Miss(
            row, "entry_unavailable", f"the same key had been stored, but {how}", baseline=baseline, kind=kind
        )

    def _how_unavailable(self, row: LookupRow, past: KeyPast, entries: list[EntryRow]) -> tuple[str, str]:
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
        if past.elsewhere is not None:
            here = self._cache_dir[row.run]
            return "another directory", f"in another directory: {past.elsewhere}, not {here}"
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
        changes = self._changes.between(baseline.detail_set, row.detail_set)
        if not changes.fields:
            reason = (
                "the keys differ and every recorded field is equal: what torch pickles for the key differs "
                "where its list of fields cannot show it"
            )
            return Miss(row, "no_detail_differs", reason, baseline=baseline)
        return Miss(row, "key_changed", self._what_changed(at, changes), baseline, changes.fields)

    def _what_changed(self, at: int, changes: _Changes) -> str:
        changed = changes.fields
        graph = "another graph in the same place" if "gm" in changed else "the same graph"
        if len(changed) > 1:
            text = f"{graph}, and {len(changed)} fields of the key differ: {_fields(changed)}"
            nearer = self._baselines.nearer(at, changed)
            if nearer is not None:
                text += f" (compared with run {nearer[0].run} only {_fields(nearer[1])})"
            return text
        return f"{graph}, and one field of the key differs: {changed[0]}, {self._changes.summary(changes)}"

    def _without_details(self, at: int, row: LookupRow) -> Miss:
        oldest = self._oldest_entry[row.cache]
        older_entries = oldest is not None and row.time is not None and oldest < row.time
        if not self._past.other_run_before(at) and not older_entries:
            return Miss(row, "first_lookup", "nothing earlier to compare with: a cold start")
        reason = f"nothing says what was in this key; {HOW_TO_RECORD}"
        return Miss(row, "details_not_recorded", reason, kind=row.cache)


@dataclass(frozen=True, slots=True)
class _Changes:
    """What changed between two sets of hash details."""

    fields: tuple[str, ...]
    components: tuple[int | None, int | None]
    """Of the first of the fields, on both sides."""


class _ChangesFound:
    """Works out what changed; equal answers are kept once."""

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        self._names: dict[tuple[int, ...], tuple[str, ...]] = {}
        self._summaries: dict[tuple[int | None, int | None], str] = {}

    def between(self, before: int, after: int) -> _Changes:
        changes = self._details.changes(before, after)
        codes = tuple(field for field, _, _ in changes)
        names = self._names.get(codes)
        if names is None:
            names = self._names[codes] = tuple(self._details.fields[code] for code in codes)
        return _Changes(names, changes[0][1:] if changes else (None, None))

    def summary(self, changes: _Changes) -> str:
        """What is different about the first field, in one line."""
        pair = changes.components
        if pair not in self._summaries:
            details = (None if c is None else parse_component(self._details.components[c]) for c in pair)
            texts = [None if detail is None else detail.value_text for detail in details]
            self._summaries[pair] = field_change(changes.fields[0], *texts).summary
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
