"""Why each lookup missed: one verdict, its baseline, the changed fields, a sentence, and the evidence.

The lookups are walked in time order. Hashes decide, never texts; what was not recorded is reported as such.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cachescope.analysis.differences import field_change
from cachescope.analysis.history.history import History
from cachescope.analysis.history.past_of_keys import PastOfKeys, Racing
from cachescope.analysis.history.rows import EntryRow, LookupRow
from cachescope.analysis.history.timeline import NOT_KNOWN
from cachescope.analysis.verdicts.baselines import Baselines, Candidate, Choice
from cachescope.analysis.verdicts.change_kinds import TORCH_VERSION, UPGRADE, ChangeKinds
from cachescope.analysis.verdicts.graph_alignment import is_named
from cachescope.analysis.verdicts.unavailable import Unavailable, UnavailableEntries
from cachescope.components import parse_component
from cachescope.details import HashDetails
from cachescope.terms import AOTAUTOGRAD, HOW_TO_RECORD, Evidence, Verdict


@dataclass(slots=True)
class Miss:
    """One missed lookup and why.

    `kind` distinguishes causes of one verdict. `evidence` says what the verdict rests on: ``recorded`` (torch or the
    operating system wrote it), ``inferred``, or ``not_known``; `evidence_text` gives the details.
    """

    row: LookupRow
    verdict: Verdict
    reason: str
    evidence: Evidence
    evidence_text: str
    baseline: Candidate | None = None
    changed: tuple[str, ...] = ()
    kind: str = ""
    root: bool = True
    cause: int | None = None
    follows: Miss | None = field(default=None, repr=False)


def explain_misses(
    history: History,
    details: HashDetails,
    choice: Choice,
) -> list[Miss]:
    """Judge every lookup that is known not to have hit, in time order."""
    judge = _Judge(history, details, choice)
    is_judged = ~history.lookups.outcome.are("hit", "unknown")
    return [judge.judge(at) for at in np.flatnonzero(is_judged).tolist()]


class _Judge:
    def __init__(
        self,
        history: History,
        details: HashDetails,
        choice: Choice,
    ) -> None:
        self._history = history
        entries, runs = history.entries, history.runs
        self._rows = lookups = list(history.lookups)
        self._aot = {row.lookup: row for row in lookups if row.cache == AOTAUTOGRAD}
        self._place = {row.lookup: at for at, row in enumerate(lookups)}
        self._changed: dict[int, LookupRow] = {}
        self._baselines = Baselines(history, details, choice)
        self._changes = _ChangesFound(details)
        self._kinds = ChangeKinds(details, runs)
        directories = {run.run: run.cache_dir for run in runs}
        pasts = PastOfKeys(history.lookups, history.timeline, directories)
        self._unavailable = UnavailableEntries(history, pasts)
        self._other_run_before = pasts.other_run_before
        self._latest: dict[int, int | None] = {}
        self._of_past: dict[int, Racing | Unavailable | None] = {}
        for at, past in pasts.of_each(history.lookups.is_miss):
            self._latest[at] = past.latest
            racing = past.racing() if past.latest_stored is None and past.refused is None else None
            self._of_past[at] = racing or self._unavailable.judge(at, past)
        self._guards_of_key: dict[tuple[str, str], list[str]] = defaultdict(list)
        for entry in entries:
            if entry.guards_expr:
                self._guards_of_key[entry.cache, entry.cache_key].append(entry.guards_expr)
        self._is_stored_before = _caches_filled_before(lookups, entries)
        self._first_without_details = _first_without_details(lookups)
        self._compiled_first = _compiled_first(lookups)

    def judge(self, at: int) -> Miss:
        row = self._rows[at]
        if row.outcome == "bypass":
            reason = row.bypass_reason or "torch gave no reason"
            text = f"torch did not cache it: {reason}"
            return Miss(row, "bypassed", text, "recorded", "torch gave the reason", kind=_bypass_kind(reason))
        if row.outcome == "disabled":
            text = f"caching was switched off: {row.bypass_reason or 'cache not enabled'}"
            return Miss(row, "disabled", text, "recorded", "torch says that the cache was not enabled")
        if row.outcome == "guard_miss":
            return self._guard_failed(at, row)
        found = self._of_past[at] if at in self._of_past else self._unavailable.judge(at, None)
        if isinstance(found, Racing):
            return self._compiled_concurrently(row, found)
        if found is not None:
            baseline = None if found.baseline is None else self._rows[found.baseline]
            return Miss(
                row,
                "entry_unavailable",
                found.reason,
                found.evidence,
                found.evidence_text,
                baseline=baseline,
                kind=found.kind,
            )
        return self._new_key(at, row)

    def _compiled_concurrently(self, row: LookupRow, racing: Racing) -> Miss:
        runs = ", ".join(map(str, racing.runs)) + (f" and {racing.more} more" if racing.more else "")
        reason = f"run {runs} had missed the same key and was still compiling it"
        why = "by the times in the logs, that compile had begun and had not ended"
        return Miss(row, "compiled_concurrently", reason, "inferred", why, baseline=self._rows[racing.first])

    def _guard_failed(self, at: int, row: LookupRow) -> Miss:
        stored = self._guards_of_key.get((row.cache, row.cache_key or ""), ())
        guards = list(
            dict.fromkeys(g for g in [row.guards_expr, *stored, *self._history.guards_before(at)] if g)
        )
        shown = "; ".join(guards) if guards else "not recorded"
        baseline = None if (latest := self._latest.get(at)) is None else self._rows[latest]
        if row.status_detailed is not None or row.guards_expr is not None:
            reason = f"the key was found, and no entry's guards held: {shown}"
            evidence: tuple[Evidence, str] = "recorded", "torch recorded a guard miss"
        else:
            reason = f"the key had been stored for a graph with symbolic sizes, and no entry's guards held: {shown}"
            evidence = "inferred", "the key had been stored, and a text log does not name a guard miss"
        return Miss(row, "guard_failed", reason, *evidence, baseline=baseline, kind=row.cache_key or "")

    # A key that was never seen.

    def _new_key(self, at: int, row: LookupRow) -> Miss:
        if row.detail_set is None:
            return self._without_details(at, row)
        baseline = self._baselines.find(at) or self._under_the_same(row)
        if baseline is None:
            return self._first_lookup(at, row)
        nearer = self._baselines.nearer(at, baseline)
        if nearer is not None:
            return self._nearer_key_changed(row, nearer.row, nearer.apart)
        changes = self._changes.between(baseline, row)
        if not changes.fields:
            reason = (
                "the keys differ and every recorded field is equal: what torch pickles for the key differs "
                "where its list of fields cannot show it"
            )
            why = "torch recorded the hash details of both keys"
            return Miss(row, "no_detail_differs", reason, "recorded", why, baseline=baseline)
        in_parts = self._baselines.nearer_in_parts(at, baseline, changes.fields)
        if in_parts is not None:
            return self._nearer_key_changed(row, in_parts, len(changes.fields))
        return self._key_changed(row, baseline, changes)

    def _nearer_key_changed(self, row: LookupRow, nearer: LookupRow, apart: int) -> Miss:
        """The miss if a nearer key exists: the baseline differs in that many fields."""
        changes = self._changes.between(nearer, row)
        miss = self._key_changed(row, nearer, changes)
        if len(changes.fields) < apart:
            miss.reason += f" (compared with the run before it, {apart} fields differ)"
        return miss

    def _key_changed(self, row: LookupRow, baseline: Candidate, changes: _Changes) -> Miss:
        assert baseline.detail_set is not None and row.detail_set is not None
        sides = baseline.detail_set, row.detail_set
        runs = (baseline.run if isinstance(baseline, LookupRow) else None), row.run
        kind = self._kinds.kind(*sides, runs)
        fields = changes.fields
        if kind.startswith(UPGRADE):
            # The others follow from it.
            fields = tuple(sorted(fields, key=lambda field: field != TORCH_VERSION))
            reason = f"{kind.removeprefix(UPGRADE)}; {len(changes.fields) - 1} other fields of the key follow"
            if besides := self._kinds.changed_besides(*sides, runs):
                reason += f"; changed besides: {_fields(besides)}"
        else:
            reason = self._what_changed(row, baseline, changes)
        if isinstance(baseline, LookupRow):
            self._changed[row.lookup] = baseline
        known = self._how_known(baseline, row)
        return Miss(row, "key_changed", reason, *known, baseline, fields, kind)

    def _first_lookup(self, at: int, row: LookupRow) -> Miss:
        why = self._why_not_known_to_be_new(at, row)
        if why is None:
            reason = "nothing earlier to compare with: the graph is new"
            return Miss(
                row, "first_lookup", reason, "inferred", "no earlier lookup or entry is of this graph"
            )
        reason = "nothing that was read is known to be an earlier form of this graph"
        return Miss(row, "first_lookup", reason, "not_known", why, kind=NOT_KNOWN)

    def _why_not_known_to_be_new(self, at: int, row: LookupRow) -> str | None:
        """Why a graph without a baseline may still be an earlier one; None if nothing suggests it."""
        if self._baselines.may_be_stored(at):
            return "entries of the same graph lie in the cache directory, and nothing tells when they were stored"
        first = self._first_without_details.get((row.cache, row.direction or ""))
        if first is not None and first[0] < at and first[1] != row.run:
            return "the hash details of earlier lookups were not recorded, and one of them may be of the same graph"
        if self._is_told_above(at, row):
            return "the hash details of its AOTAutograd key, which would tell, are not recorded"
        like = self._baselines.may_replace(at)
        if like is None:
            return None
        where = f"run {like.run}" if isinstance(like, LookupRow) else "the cache directory"
        is_named = None not in (row.function, getattr(like, "function", None))
        lacking = (
            "that is too little to tell by" if is_named else "nothing names the functions (a trace does)"
        )
        return (
            f"{where} has a graph of which {self._baselines.are_alike_by(like, row)}; whether this is another form of it "
            f"is not known, for {lacking}"
        )

    def _under_the_same(self, row: LookupRow) -> LookupRow | None:
        """The graph that AOTAutograd had made before, under the key that has changed into this lookup's."""
        above = None if row.aot_lookup is None else self._changed.get(row.aot_lookup)
        graphs = (
            []
            if above is None
            else [self._rows[g] for g in self._history.graphs_of(self._place[above.lookup]).tolist()]
        )
        same = [fx for fx in graphs if fx.direction == row.direction and fx.detail_set is not None]
        return same[0] if same else None

    def _is_told_above(self, at: int, row: LookupRow) -> bool:
        """Whether only its AOTAutograd key could identify the earlier form of a graph, and that key has no recorded details."""
        above = None if row.aot_lookup is None else self._aot.get(row.aot_lookup)
        if above is None or above.detail_set is not None or is_named(row):
            return False
        return self._other_run_before(at)

    def _what_changed(self, row: LookupRow, baseline: Candidate, changes: _Changes) -> str:
        changed = changes.fields
        graph = "the same graph" if baseline.gm == row.gm else "another form of the graph"
        if self._baselines.are_of_one_process(baseline, row):
            graph = f"compiled again in one process, after compile {getattr(baseline, 'compile_id', '')}"
        if len(changed) > 1:
            return f"{graph}, and {len(changed)} fields of the key differ: {_fields(changed)}"
        return f"{graph}, and one field of the key differs: {changed[0]}, {self._changes.summary(changes)}"

    def _how_known(self, baseline: Candidate, row: LookupRow) -> tuple[Evidence, str]:
        """The evidence that the key of a baseline has changed into this one."""
        if self._baselines.are_of_one_process(baseline, row):
            return "recorded", "torch's compile ids count the compiles of one function in one process"
        if baseline.gm != row.gm:
            return "inferred", f"the graphs are taken for one: {self._baselines.are_alike_by(baseline, row)}"
        if self._baselines.are_concurrent(baseline, row):
            return "inferred", "the processes ran at the same time, and their keys differ by their rank alone"
        if isinstance(baseline, EntryRow):
            return "inferred", "by its time of modification the entry had been stored before"
        return "recorded", "torch recorded the hash details of both keys"

    def _without_details(self, at: int, row: LookupRow) -> Miss:
        if row.details == "incomplete":
            reason = (
                "lines of its hash details are missing from the log, so nothing says what was in this key"
            )
            return Miss(row, "details_not_recorded", reason, "not_known", reason, kind=row.cache)
        is_first = not self._other_run_before(at) and not self._is_compiled_again(row)
        if is_first and row.cache not in self._is_stored_before:
            why = "no earlier run and no entry that was there before was read"
            return Miss(row, "first_lookup", "nothing earlier to compare with: a cold start", "inferred", why)
        reason = f"nothing says what was in this key; {HOW_TO_RECORD}"
        why = "torch did not record the hash details of this key"
        return Miss(row, "details_not_recorded", reason, "not_known", why, kind=row.cache)

    def _is_compiled_again(self, row: LookupRow) -> bool:
        """Whether its process had used its compile id with another key: compile ids had begun again.

        Forward and backward graphs of a training graph have different keys in one compile. If the lines that record the
        direction are lost, it may be either.
        """
        first = self._compiled_first[row.run, row.cache, row.compile_id]
        may_be_backward = first.aot_lookup == row.aot_lookup and first.direction != "inference"
        is_cut = first.details == "incomplete"
        return first.cache_key != row.cache_key and (is_cut or not may_be_backward)


def _compiled_first(
    lookups: Sequence[LookupRow],
) -> dict[tuple[int, str, str | None], LookupRow]:
    """The first lookup of each compile."""
    found: dict[tuple[int, str, str | None], LookupRow] = {}
    for row in lookups:
        found.setdefault((row.run, row.cache, row.compile_id), row)
    return found


def _caches_filled_before(lookups: Sequence[LookupRow], entries: Sequence[EntryRow]) -> frozenset[str]:
    """The caches with entries that no recorded miss wrote."""
    first: dict[tuple[str, str | None], LookupRow] = {}
    for row in lookups:
        first.setdefault((row.cache, row.cache_key), row)
    return frozenset(
        entry.cache
        for entry in entries
        if (found := first.get((entry.cache, entry.cache_key))) is None or found.is_hit
    )


def _first_without_details(lookups: Sequence[LookupRow]) -> dict[tuple[str, str], tuple[int, int]]:
    """By cache and direction, the place and run of the first miss whose key has no recorded details."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for at, row in enumerate(lookups):
        if row.detail_set is None and row.outcome in ("full_miss", "guard_miss", "unknown"):
            for direction in {row.direction or "", "", "forward", "inference", "backward"}:
                found.setdefault((row.cache, direction), (at, row.run))
    return found


@dataclass(frozen=True, slots=True)
class _Changes:
    """What changed between two sets of hash details."""

    fields: tuple[str, ...]
    components: tuple[int | None, int | None]
    """The components of the first field, on both sides."""


class _ChangesFound:
    """Works out what changed; equal answers are shared."""

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        self._names: dict[tuple[int, ...], tuple[str, ...]] = {}
        self._summaries: dict[tuple[int | None, int | None], str] = {}

    def between(self, before: Candidate, after: LookupRow) -> _Changes:
        assert before.detail_set is not None and after.detail_set is not None
        changes = self._details.changes(before.detail_set, after.detail_set)
        codes = tuple(field for field, _, _ in changes)
        names = self._names.get(codes)
        if names is None:
            names = self._names[codes] = tuple(self._details.fields[code] for code in codes)
        return _Changes(names, changes[0][1:] if changes else (None, None))

    def summary(self, changes: _Changes) -> str:
        """What changed in the first field, in one line."""
        pair = changes.components
        if pair not in self._summaries:
            details = (None if c is None else parse_component(self._details.components[c]) for c in pair)
            texts = [None if detail is None else detail.value_text for detail in details]
            self._summaries[pair] = field_change(changes.fields[0], *texts).summary
        return self._summaries[pair]


def _bypass_kind(reason: str) -> str:
    """The reason without details of the single case: addresses, numbers, quoted names."""
    first = reason.strip().split("\n", 1)[0]
    return re.sub(r"0x[0-9a-fA-F]+|\d+", "…", first)


def _fields(changed: tuple[str, ...]) -> str:
    return (
        ", ".join(changed) if len(changed) <= 4 else f"{', '.join(changed[:3])} and {len(changed) - 3} more"
    )
