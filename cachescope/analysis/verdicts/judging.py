"""Why each lookup missed: one verdict, its baseline, the changed fields, a sentence, and the evidence.

Hashes decide, never texts; what was not recorded is reported as such. The order in which lookups are judged here is the
precedence of verdicts: what torch says itself, then what had happened to the key, then what it is another key than.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from typing import Final

import numpy as np

from cachescope.analysis.history.history import History
from cachescope.analysis.history.past_of_keys import PastOfKeys
from cachescope.analysis.history.places_by_group import NONE
from cachescope.analysis.verdicts.baselines import Choice
from cachescope.analysis.verdicts.bypass_advice import is_error
from cachescope.analysis.verdicts.misses import Misses, Why
from cachescope.analysis.verdicts.new_keys import NewKeys
from cachescope.analysis.verdicts.predicted_misses import guards_would_fail, judge_predicted
from cachescope.analysis.verdicts.reasons_found import ReasonsFound
from cachescope.analysis.verdicts.unavailable import UnavailableEntries
from cachescope.analysis.verdicts.vllm_misses import VllmMisses
from cachescope.details import HashDetails
from cachescope.terms import Evidence
from cachescope.verdict_kinds import AOT_INDUCTOR

_AOT_MODE: Final = Why(
    "disabled",
    "AOTInductor compiled it, which asks no cache",
    "recorded",
    "the trace has the code that AOTInductor wrote in this compile, or torch logged that it asks no cache for it",
    kind=AOT_INDUCTOR,
)
# A fleet races for every key in the same ways.
_RACES_AT_HAND: Final = 1 << 14


def judged_misses(
    history: History, details: HashDetails, choice: Choice, vllm: VllmMisses | None = None
) -> Misses:
    """Judge every lookup that is known not to have hit; the misses in the order of the lookups."""
    lookups = history.lookups
    found = ReasonsFound(len(lookups))
    _judge_not_cached(history, found)
    _judge_guard_misses(history, found)
    judge_predicted(history, found)
    pasts = PastOfKeys(lookups, history.timeline, {run.run: run.cache_dir for run in history.runs})
    _judge_known_keys(history, pasts, found)
    new_keys = NewKeys(history, details, choice, pasts, found)
    is_new = ~lookups.outcome.are("hit", "unknown") & (found.why == NONE) & ~lookups.is_of_vllm
    new_keys.judge(np.flatnonzero(is_new))
    entries = new_keys.entries
    if vllm is not None:
        entries = entries + vllm.judge(history, found, len(entries))
    at = np.flatnonzero(found.why != NONE)
    at = at[np.argsort(lookups.lookup[at], kind="stable")]
    columns = (found.baseline[at], found.baseline_entry[at])
    return Misses(lookups, at, found.whys, found.why[at], entries, *columns)


def _judge_not_cached(history: History, found: ReasonsFound) -> None:
    """What torch bypassed, and what was switched off."""
    lookups = history.lookups
    reasons, exceptions = lookups.bypass_reason, lookups.bypass_exception
    is_aot_mode = lookups.aot_mode == 1
    found.why[is_aot_mode] = found.number(_AOT_MODE) if is_aot_mode.any() else NONE
    for outcome, why in (("bypass", _bypassed), ("disabled", _disabled)):
        places = np.flatnonzero(lookups.outcome.are(outcome) & ~is_aot_mode)
        both = np.stack([reasons.codes[places], exceptions.codes[places]])
        codes, which = np.unique(both, axis=1, return_inverse=True)
        texts = [(reasons.text(reason), exceptions.text(exception)) for reason, exception in codes.T.tolist()]
        numbers = [found.number(why(*recorded_reason)) for recorded_reason in texts]
        found.why[places] = np.array(numbers, dtype=np.int64)[which.reshape(-1)]


def _bypassed(recorded_reason: str | None, exception: str | None) -> Why:
    if is_error(exception):
        reason = f"{exception}: {recorded_reason}" if recorded_reason else f"{exception}"
        text = f"torch did not cache it: an error ended the lookup: {reason}"
        evidence = "torch recorded the error"
    else:
        reason = recorded_reason or "torch gave no reason"
        text = f"torch did not cache it: {reason}"
        evidence = "torch gave the reason"
    # The reason without details of the single case: addresses, numbers, quoted names.
    kind = re.sub(r"0x[0-9a-fA-F]+|\d+", "…", reason.strip().split("\n", 1)[0])
    return Why("bypassed", text, "recorded", evidence, kind=kind)


def _disabled(recorded_reason: str | None, _: str | None) -> Why:
    text = f"caching was switched off: {recorded_reason or 'cache not enabled'}"
    return Why("disabled", text, "recorded", "torch says that the cache was not enabled")


def _judge_guard_misses(history: History, found: ReasonsFound) -> None:
    lookups = history.lookups
    of_entries: dict[tuple[str | None, str | None], list[str]] = defaultdict(list)
    for entry in history.entries:
        if entry.guards_expr:
            of_entries[entry.cache, entry.cache_key].append(entry.guards_expr)
    for at in np.flatnonzero(lookups.outcome.are("guard_miss")).tolist():
        key, own = lookups.cache_key[at], lookups.guards_expr[at]
        stored = of_entries.get((lookups.cache[at], key), ())
        guards = dict.fromkeys(g for g in [own, *stored, *history.guards_before(at)] if g)
        if (recorded_reason := lookups.prediction[at]) is not None:
            found.record(at, guards_would_fail(key or "", recorded_reason), int(history.latest_of_key[at]))
            continue
        is_recorded = lookups.status_detailed[at] is not None or own is not None
        before = int(history.latest_of_key[at])
        found.record(at, _guard_failed(key or "", "; ".join(guards), is_recorded), before)


def _guard_failed(key: str, guards: str, is_recorded: bool) -> Why:
    shown = guards or "not recorded"
    if is_recorded:
        reason = f"the key was found, and no entry's guards held: {shown}"
        evidence: tuple[Evidence, str] = "recorded", "torch recorded a guard miss"
    else:
        reason = (
            f"the key had been stored for a graph with symbolic sizes, and no entry's guards held: {shown}"
        )
        evidence = "inferred", "the key had been stored, and a text log does not name a guard miss"
    return Why("guard_failed", reason, *evidence, kind=key)


def _judge_known_keys(history: History, pasts: PastOfKeys, found: ReasonsFound) -> None:
    """Keys that another process was compiling, that had been stored, or whose entry torch could not load."""
    lookups = history.lookups
    is_unexplained = lookups.outcome.are("full_miss") & (found.why == NONE) & ~lookups.is_of_vllm
    unavailable = UnavailableEntries(history, pasts)
    compiled_concurrently = lru_cache(_RACES_AT_HAND)(_compiled_concurrently)
    for at, past in pasts.of_each(is_unexplained):
        racing = past.racing() if past.latest_stored is None and past.refused is None else None
        if racing is not None:
            found.record(at, compiled_concurrently(racing.runs, racing.more), racing.first)
        elif (gone := unavailable.judge(at, past)) is not None:
            found.record(at, gone.why, gone.baseline)
    for at in np.flatnonzero(is_unexplained & ~pasts.is_known & unavailable.may_not_be_loaded).tolist():
        if (gone := unavailable.judge(at, None)) is not None:
            found.record(at, gone.why, gone.baseline)


def _compiled_concurrently(runs: tuple[int, ...], more: int) -> Why:
    named = ", ".join(map(str, runs)) + (f" and {more} more" if more else "")
    if len(runs) + more == 1:
        reason = f"run {named} had missed the same key and was still compiling it"
        why = "by the times in the logs, that compile had begun and had not ended"
    else:
        reason = f"runs {named} had missed the same key and were still compiling it"
        why = "by the times in the logs, those compiles had begun and had not ended"
    return Why("compiled_concurrently", reason, "inferred", why)
