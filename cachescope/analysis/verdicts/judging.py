"""Why each lookup missed: one verdict, its baseline, the changed fields, a sentence, and the evidence.

Hashes decide, never texts; what was not recorded is reported as such. Lookups are judged in the order of precedence
of the verdicts: what torch itself says, then what had happened to the key, then which other key it differs from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from cachescope.analysis.history.entry_times import LATE_NS
from cachescope.analysis.history.history import History
from cachescope.analysis.history.past_of_keys import Past, pasts_of
from cachescope.analysis.history.timeline import CANNOT_WRITE, NOT_CERTAIN, error_line
from cachescope.analysis.verdicts.baselines import Choice
from cachescope.analysis.verdicts.causes import group_causes, is_error
from cachescope.analysis.verdicts.entries_elsewhere import EntriesElsewhere
from cachescope.analysis.verdicts.misses import Miss, VerdictsSoFar, Why, link_consequences
from cachescope.analysis.verdicts.new_keys import NewKeys
from cachescope.catalogue.bypasses import function_of, operator_of
from cachescope.frames.answer_rows import CauseRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.terms import AOTAUTOGRAD, MISSED, VLLM, Evidence
from cachescope.verdict_kinds import AOT_INDUCTOR, BELOW_A_LOOKUP, NOT_KNOWN, NOT_RECORDED

if TYPE_CHECKING:
    from cachescope.analysis.verdicts.vllm_misses import VllmMisses

_Judged = tuple[Why, int | EntryRow | None]
"""Why a lookup missed, and what it is compared with: the index of an earlier lookup of its key, or an entry of it."""
_SEEN: Final = "predicted: the directory shows it as it is now"
_AOT_MODE: Final = Why(
    "disabled",
    "AOTInductor compiled it, which asks no cache",
    "recorded",
    "the trace has the code that AOTInductor wrote in this compile, or torch logged that it asks no cache for it",
    kind=AOT_INDUCTOR,
)
_BELOW_A_LOOKUP: Final = Why(
    "disabled",
    "the FX graph cache was not asked, and caching was not switched off: AOTAutograd's was asked for the same graph",
    "inferred",
    "AOTAutograd asks no cache where the FX graph cache is switched off",
    kind=BELOW_A_LOOKUP,
)


def judged(
    history: History, choice: Choice, vllm: VllmMisses | None = None
) -> tuple[list[Miss], list[CauseRow]]:
    """Every miss with its verdict and its cause, in the order of the lookups' ids; and the causes, the costliest first."""
    misses = judged_misses(history, choice, vllm)
    link_consequences(misses, history)
    return misses, group_causes(misses, history)


def judged_misses(history: History, choice: Choice, vllm: VllmMisses | None = None) -> list[Miss]:
    """Judge every lookup that is known not to have hit; the misses in the order of the lookups' ids."""
    lookups = history.lookups
    found = VerdictsSoFar(len(lookups))
    _judge_recorded(history, found)
    judge_predicted(history, found)
    unexplained = [
        at
        for at, (row, why) in enumerate(zip(lookups, found.why, strict=True))
        if why is None and row.outcome == "full_miss" and row.cache != VLLM
    ]
    elsewhere = EntriesElsewhere(history)
    _judge_known_keys(history, found, unexplained, elsewhere)
    if new := [at for at in unexplained if found.why[at] is None]:
        NewKeys(history, choice, found, until=new[-1] + 1).judge(new)
        _judge_graphs_without_a_past(history, found, new)
        for at in new:
            why = found.why[at]
            if why is not None and why.what.is_first and (doubt := elsewhere.possible(at)) is not None:
                found.record(at, *doubt)
    changes = {} if vllm is None else vllm.judge(history, found)
    misses = []
    for at, (row, why, baseline) in enumerate(zip(lookups, found.why, found.baseline, strict=True)):
        if why is not None:
            before = None if baseline is None else history.row_of(baseline)
            misses.append(Miss(at, row, why, before, changes.get(row.lookup, ())))
    return sorted(misses, key=attrgetter("row.lookup"))


def _judge_recorded(history: History, found: VerdictsSoFar) -> None:
    """Judge what torch bypassed, what was switched off, and what guards decided."""
    for at, row in enumerate(history.lookups):
        outcome, reason = row.outcome, row.bypass_reason
        above = None if (number := history.aot[at]) is None else history.lookups[number]
        if row.aot_mode:
            found.record(at, _AOT_MODE)
        elif outcome == "bypass":
            # The same graph, bypassed for the same reason. Only AOTAutograd's lookup records the error.
            if above is not None and reason and (above.bypass_reason or "").startswith(f"{reason}: "):
                reason = above.bypass_reason
            found.record(at, _bypassed(reason, row.bypass_exception))
        elif outcome == "disabled":
            is_below = above is not None and above.outcome in MISSED
            found.record(at, _BELOW_A_LOOKUP if is_below else _disabled(reason))
        elif outcome == "guard_miss":
            _judge_guard_miss(at, row, history, found)


def _bypassed(recorded_reason: str | None, exception: str | None) -> Why:
    if is_error(exception):
        reason = f"{exception}: {recorded_reason}" if recorded_reason else f"{exception}"
        text = f"torch did not cache it: an error ended the lookup: {reason}"
        evidence = "torch recorded the error"
    else:
        reason = recorded_reason or "torch gave no reason"
        text = f"torch did not cache it: {reason}"
        evidence = "torch gave the reason"
    # The reason without what differs from case to case: addresses, numbers, quoted names.
    kind = re.sub(r"0x[0-9a-fA-F]+|\d+", "…", reason.strip().split("\n", 1)[0])
    if (operator := operator_of(function_of(reason) or "")) is not None:
        # Each cache refuses an operator in words of its own.
        kind = f"Can't cache HigherOrderOperator: {operator}"
    return Why("bypassed", text, "recorded", evidence, kind=kind)


def _disabled(recorded_reason: str | None) -> Why:
    text = f"caching was switched off: {recorded_reason or 'cache not enabled'}"
    return Why("disabled", text, "recorded", "torch says that the cache was not enabled")


def _judge_guard_miss(at: int, row: LookupRow, history: History, found: VerdictsSoFar) -> None:
    key, own, before = row.cache_key, row.guards_expr, history.latest_of_key(at)
    if row.prediction is not None:
        found.record(at, guards_would_fail(key or "", row.prediction), before)
        return
    stored = (entry.guards_expr for entry in history.entries_of(row))
    guards = dict.fromkeys(g for g in [own, *stored, *history.guards_before(at)] if g)
    is_recorded = row.status_detailed is not None or own is not None
    found.record(at, _guard_failed(key or "", "; ".join(guards), is_recorded), before)


def guards_would_fail(key: str, prediction_text: str) -> Why:
    """A guard miss: a pre-flight evaluated the guards of the entries for the sizes of the lookup."""
    why = "predicted: the guards of the entries were evaluated for the sizes that the pre-flight noted"
    return Why("guard_failed", prediction_text, "inferred", why, kind=key)


def judge_predicted(history: History, found: VerdictsSoFar) -> None:
    """Judge predicted misses: entries that cannot be loaded, or whose graphs cannot."""
    for at, row in enumerate(history.lookups):
        if row.prediction is None or row.outcome != "full_miss" or found.why[at] is not None:
            continue
        is_found = row.status_detailed == "hit"
        if is_found or _refused(history.entries_of(row)):
            kind = "graph entry" if is_found else "damaged"
            found.record(at, Why("entry_unavailable", row.prediction, "inferred", _SEEN, kind=kind))


def _guard_failed(key: str, guards: str, is_recorded: bool) -> Why:
    was = "was found" if is_recorded else "had been stored for a graph with symbolic sizes"
    reason = f"the key {was}, and no entry's guards held: {guards or 'not recorded'}"
    if is_recorded:
        return Why("guard_failed", reason, "recorded", "torch recorded a guard miss", kind=key)
    why = "the key had been stored, and a text log does not name a guard miss"
    return Why("guard_failed", reason, "inferred", why, kind=key)


def _judge_known_keys(
    history: History, found: VerdictsSoFar, unexplained: Sequence[int], elsewhere: EntriesElsewhere
) -> None:
    """Judge keys that another process was compiling, that had been stored, or whose entry torch could not load."""
    unavailable = _UnavailableEntries(history, elsewhere)
    # The processes of a fleet race for every key in the same few ways.
    compiled_concurrently = cache(_compiled_concurrently)
    for at, past in pasts_of(history, unexplained):
        if (racing := past.racing) is not None:
            if (stored := elsewhere.known(at)) is not None:
                found.record(at, *stored)
                continue
            here, there = history.folders[at], history.folders[racing.first]
            others = () if None in (here, there) or here == there else (there, here)
            found.record(at, compiled_concurrently(racing.runs, racing.more, *others), racing.first)
        else:
            found.record(at, *unavailable.judge(at, past))
    keys, of_key = history.key, history.of_key
    for at in unexplained:
        is_first = (key := keys[at]) is not None and of_key[key][0] == at
        if is_first and (gone := unavailable.of_first(at)) is not None:
            found.record(at, *gone)
    # Those that a pre-flight predicts are judged before.
    for at, why in enumerate(found.why):
        if why is not None and why.what.is_graph_gone:
            for graph in unavailable.pointed_to(at):
                if found.why[graph] is None:
                    found.record(graph, unavailable.graph_gone(graph))


def _judge_graphs_without_a_past(history: History, found: VerdictsSoFar, new: Sequence[int]) -> None:
    """Judge keys of graphs that only seem new: AOTAutograd's key had been looked up, and what that compile did with the graph is not recorded.

    A trace has the lookup of a graph only when its compile has ended, and none if that failed or was killed.
    """
    lookups = history.lookups
    for at in new:
        above, why = history.aot[at], found.why[at]
        if above is None or why is None or not why.what.is_first:
            continue
        of_above, earlier = found.why[above], found.baseline[above]
        if of_above is None or not of_above.what.is_unavailable or not isinstance(earlier, int):
            continue
        graphs = (lookups[graph] for graph in history.timeline.graphs_of(earlier))
        if all(graph.direction != lookups[at].direction for graph in graphs):
            reason = f"run {lookups[earlier].run} had looked up the same AOTAutograd key, and no lookup of this graph is recorded of it"
            because = "a compile that fails or is killed logs no lookup of its graphs; or lines are missing"
            found.record(at, Why("entry_unavailable", reason, "not_known", because, kind=NOT_RECORDED))


def _compiled_concurrently(
    runs: tuple[int, ...], more: int, there: str | None = None, here: str | None = None
) -> Why:
    named = ", ".join(map(str, runs)) + (f" and {more} more" if more else "")
    is_one = len(runs) + more == 1
    who, was, which = ("run", "was", "that compile") if is_one else ("runs", "were", "those compiles")
    reason = f"{who} {named} had missed the same key and {was} still compiling it"
    why = f"by the times in the logs, {which} had begun and had not ended"
    if there is None:
        return Why("compiled_concurrently", reason, "inferred", why)
    reason += f", but for another directory: {there}, not {here}"
    return Why("compiled_concurrently", reason, "inferred", why, kind="another directory")


class _UnavailableEntries:
    """Judges full misses of keys that had been looked up before, or of which torch itself reports something.

    torch loads an intact entry whose guards hold. So an entry found after a full miss did not exist at the lookup,
    whatever its time says, and it proves nothing about the miss. Only records count: a failure to load, an earlier
    hit or save of the key, a compile that failed, a process that was killed.
    """

    def __init__(self, history: History, elsewhere: EntriesElsewhere) -> None:
        self._history = history
        self._rows = history.lookups
        self._entries_elsewhere = elsewhere

    def judge(self, at: int, past: Past) -> _Judged:
        """Why the entry of a key that had been looked up before was unavailable."""
        row = self._rows[at]
        if (found := self.not_loaded(at, past.known)) is not None:
            return found
        if past.why == "pending":
            reason = f"run {self._rows[past.by].run} had compiled the same key, and its entry was not stored yet: that of a training graph is written with its backward graph"
            because = "a graph of that compile was looked up after this lookup"
            return _unavailable("not stored yet", reason, "inferred", because, past.by)
        if past.why == "not stored":
            why = self._history.timeline.not_stored[past.by]
            run = self._rows[past.by].run
            if why in NOT_CERTAIN:
                return _not_known(run, why.why, past.by)
            reason = f"run {run} had compiled the same key and stored nothing: {why.why}"
            if not why.is_recorded:
                return _unavailable(why.kind, reason, "inferred", why.why, past.by)
            because = "torch or the operating system wrote it down"
            return _unavailable(why.kind, reason, "recorded", because, past.by)
        if past.why == "elsewhere":
            return self._elsewhere(at, past)
        return self._damaged(row, past) or self._gone(at, past)

    def not_loaded(self, at: int, earlier: int | None = None) -> _Judged | None:
        """What torch itself reports about an entry that it could not load, or whose graph it could not find."""
        row = self._rows[at]
        if row.cache == AOTAUTOGRAD and (row.status_detailed == "hit" or len(self.pointed_to(at)) > 1):
            reason = "the same key had been stored, but the FX graph entry that it points to could not be found or loaded"
            why = "torch found the AOTAutograd entry and then looked the FX graph up again"
            return _unavailable("graph entry", reason, "recorded", why, earlier)
        if row.load_error is None:
            return None
        damaged = _refused(self._history.local_entries_of(row))
        error = error_line(row.load_error)
        if row.compile_error is not None and CANNOT_WRITE.search(row.compile_error):
            error += f"; the compile after it failed: {error_line(row.compile_error)}"
        reason = f"the same key had been stored, but it could not be loaded: {error}"
        kind = "damaged" if damaged else "load error"
        return _unavailable(kind, reason, "recorded", "torch wrote the error", earlier)

    def pointed_to(self, at: int) -> list[int]:
        """The missed lookups of graphs that an AOTAutograd entry points to: those whose key was looked up twice, by the entry and by the compile; else the first."""
        rows, graphs = self._rows, self._history.timeline.graphs_of(at)
        missed = [one for one in graphs if rows[one].outcome != "hit" and rows[one].cache_key is not None]
        of_key = by_key((rows[one].cache_key, one) for one in missed).values()
        return [one for ones in of_key if len(ones) > 1 for one in ones] or missed[:1]

    def graph_gone(self, at: int) -> Why:
        """A graph that an AOTAutograd entry points to. Torch writes that entry whether or not its graphs could be saved."""
        row, details = self._rows[at], self._rows[at].detail_set
        lost = "it was deleted, damaged or never saved"
        if row.status_detailed is None and (details is None or self._history.keys.has_symbols(details)):
            lost += ", or its guards did not hold (a trace shows which)"
        reason = f"the entry of AOTAutograd was found, and the graph that it points to was not: {lost}"
        return Why("entry_unavailable", reason, "not_known", lost, kind=NOT_KNOWN)

    def of_first(self, at: int) -> _Judged | None:
        """Why the entry of a key was unavailable that no earlier lookup had."""
        return self.not_loaded(at) or self._entries_elsewhere.known(at) or self._lies_damaged(at)

    def _elsewhere(self, at: int, past: Past) -> _Judged:
        here, there = self._history.folders[at], self._history.folders[past.by]
        happened = "looked up" if past.latest_stored is None else "stored"
        reason = f"the same key had been {happened}, but in another directory: {there}, not {here}"
        why = "the logs name both directories"
        return _unavailable("another directory", reason, "recorded", why, past.by)

    def _damaged(self, row: LookupRow, past: Past) -> _Judged | None:
        """A damaged entry next to a sound one: torch leaves the first in place and writes the second.

        Torch warns in the text log when it reads one. An entry that was damaged after the lookup, or before a sound one was found,
        does not explain the miss.
        """
        entries = self._history.local_entries_of(row)
        damaged = _refused(entries)
        if len(damaged) == len(entries) or row.run in self._history.timeline.has_text_log:
            return None
        found = None if past.latest_hit is None else self._rows[past.latest_hit].time
        for entry in damaged:
            begin, end = self._entries_elsewhere.times.interval(entry)
            if (row.time is None or begin <= row.time) and (found is None or found <= end):
                return _is_damaged(entry, past.known)
        return None

    def _lies_damaged(self, at: int) -> _Judged | None:
        """The same for a key that was not looked up before. The sound entry is what its own compile stored: torch would have found it before."""
        row, here, end = self._rows[at], self._history.folders[at], self._history.timeline.end[at]
        if row.time is None or end is None or row.run in self._history.timeline.has_text_log:
            return None
        own = [one for one in self._history.local_entries_of(row) if self._history.place_of(one.root) == here]
        # A copied entry has the time of the copy. That of the stored one shows whether the times here are those of writing.
        stored = [one.modified_time or 0 for one in own if one.status == "ok"]
        if not any(row.time <= time <= end + LATE_NS for time in stored):
            return None
        before = (one for one in _refused(own) if one.modified_time and one.modified_time < row.time)
        return next((_is_damaged(one, None) for one in before), None)

    def _gone(self, at: int, past: Past) -> _Judged:
        """Why an entry that had been stored is gone, if both are known."""
        earlier = past.known
        row, before = self._rows[at], self._rows[earlier]
        if row.compile_error is not None and CANNOT_WRITE.search(row.compile_error):
            error = error_line(row.compile_error)
            reason = f"run {before.run} had looked up the same key, and this process could not use the directory: {error}"
            why = "the compile after the miss failed of it"
            return _unavailable("load error", reason, "inferred", why, earlier)
        directories = self._history.folders[at], self._history.folders[earlier]
        open_: str | None = None
        if row.time is None and before.run != row.run:
            open_ = "the logs have no times, so nothing says which of them was first"
        elif any(entry.status == "unreadable" for entry in self._history.local_entries_of(row)):
            open_ = "there is an entry under the key that cannot be read here"
        elif row.status_detailed is None and row.detail_set is None:
            open_ = "it was not found, or its guards did not hold (a trace shows which)"
        elif past.latest_hit is None and not self._history.timeline.is_stored(earlier):
            open_ = f"nothing that was read says that run {before.run} stored it (trace and text log together would, had it done so)"
        elif None in directories and (before.run != row.run or directories != (None, None)):
            open_ = "whether both used one cache directory is not recorded"
        elif past.latest_stored is None and directories[0] != directories[1]:
            open_ = "it was compiling it for another directory"
        if open_ is not None:
            return _not_known(before.run, open_, earlier)
        kind, lost = "deleted", "it was not there any more: deleted, moved or cleared"
        entries = self._history.local_entries_of(row)
        if row.run not in self._history.timeline.has_text_log and (not entries or _refused(entries)):
            kind = "gone or damaged"
            lost = "it was not there any more, or could not be loaded: deleted, moved, cleared or damaged"
        reason = f"the same key had been stored, but {lost}"
        if past.latest_hit is not None:
            why = f"run {self._rows[past.latest_hit].run} had found it in the same directory"
            return _unavailable(kind, reason, "recorded", why, past.latest_hit)
        why = f"run {before.run} compiled it to the end, where torch stores it, and its text log shows no failure"
        return _unavailable(kind, reason, "inferred", why, earlier)


def _refused(entries: Iterable[EntryRow]) -> list[EntryRow]:
    """Damaged entries that torch refuses. It does not notice other damage, such as another file name."""
    return [entry for entry in entries if entry.status == "damaged" and entry.is_refused]


def _is_damaged(entry: EntryRow, earlier: int | None) -> _Judged:
    reason = f"the same key had been stored, but it is damaged: {entry.damage}"
    why = "a damaged entry lies under the key, and a sound one that was written since"
    return _unavailable("damaged", reason, "inferred", why, earlier)


def _unavailable(
    kind: str, reason: str, evidence: Evidence, because: str, baseline: int | EntryRow | None
) -> _Judged:
    return Why("entry_unavailable", reason, evidence, because, kind=kind), baseline


def _not_known(run: int, why: str, earlier: int | None) -> _Judged:
    reason = f"run {run} had looked up the same key, and what became of its entry is not known: {why}"
    return _unavailable(NOT_KNOWN, reason, "not_known", why, earlier)
