"""Why each lookup missed: one verdict, its baseline, the changed fields, a sentence, and the evidence.

Hashes decide, never texts; what was not recorded is reported as such. The order in which lookups are judged here is the
precedence of verdicts: what torch says itself, then what had happened to the key, then what it is another key than.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from cachescope.analysis.history.history import History
from cachescope.analysis.history.past_of_keys import PastOfKeys
from cachescope.analysis.verdicts.advice import is_error
from cachescope.analysis.verdicts.baselines import Choice
from cachescope.analysis.verdicts.causes import group_causes, link_consequences
from cachescope.analysis.verdicts.misses import Miss, VerdictsSoFar, Why
from cachescope.analysis.verdicts.new_keys import NewKeys
from cachescope.analysis.verdicts.unavailable import UnavailableEntries
from cachescope.frames.answer_rows import CauseRow
from cachescope.terms import VLLM, Evidence
from cachescope.verdict_kinds import AOT_INDUCTOR

if TYPE_CHECKING:
    from cachescope.analysis.verdicts.vllm_misses import VllmMisses

_SEEN: Final = "predicted: the directory shows it as it is now"
_AOT_MODE: Final = Why(
    "disabled",
    "AOTInductor compiled it, which asks no cache",
    "recorded",
    "the trace has the code that AOTInductor wrote in this compile, or torch logged that it asks no cache for it",
    kind=AOT_INDUCTOR,
)


def judged(
    history: History, choice: Choice, vllm: VllmMisses | None = None
) -> tuple[list[Miss], list[CauseRow]]:
    """Every miss with its verdict and its cause, in the order of the lookups' ids; and the causes, the costliest first."""
    misses = judged_misses(history, choice, vllm)
    link_consequences(misses, history)
    return misses, group_causes(misses, history, vllm)


def judged_misses(history: History, choice: Choice, vllm: VllmMisses | None = None) -> list[Miss]:
    """Judge every lookup that is known not to have hit; the misses in the order of the lookups' ids."""
    lookups = history.lookups
    found = VerdictsSoFar(len(lookups))
    _judge_not_cached(history, found)
    _judge_guard_misses(history, found)
    judge_predicted(history, found)
    pasts = PastOfKeys(history, {run.run: run.cache_dir for run in history.runs})
    _judge_known_keys(history, pasts, found)
    new = [
        at
        for at, (row, why) in enumerate(zip(lookups, found.why, strict=True))
        if why is None and row.outcome not in ("hit", "unknown") and row.cache != VLLM
    ]
    NewKeys(history, choice, pasts, found).judge(new)
    if vllm is not None:
        vllm.judge(history, found)
    misses = []
    for at, (row, why, baseline) in enumerate(zip(lookups, found.why, found.baseline, strict=True)):
        if why is not None:
            misses.append(Miss(at, row, why, lookups[baseline] if isinstance(baseline, int) else baseline))
    return sorted(misses, key=attrgetter("row.lookup"))


def _judge_not_cached(history: History, found: VerdictsSoFar) -> None:
    """What torch bypassed, and what was switched off."""
    for at, row in enumerate(history.lookups):
        if row.aot_mode:
            found.record(at, _AOT_MODE)
        elif row.outcome == "bypass":
            found.record(at, _bypassed(row.bypass_reason, row.bypass_exception))
        elif row.outcome == "disabled":
            found.record(at, _disabled(row.bypass_reason))


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


def _disabled(recorded_reason: str | None) -> Why:
    text = f"caching was switched off: {recorded_reason or 'cache not enabled'}"
    return Why("disabled", text, "recorded", "torch says that the cache was not enabled")


def _judge_guard_misses(history: History, found: VerdictsSoFar) -> None:
    for at, row in enumerate(history.lookups):
        if row.outcome != "guard_miss":
            continue
        key, own, before = row.cache_key, row.guards_expr, history.latest_of_key(at)
        if row.prediction is not None:
            found.record(at, guards_would_fail(key or "", row.prediction), before)
            continue
        stored = (entry.guards_expr for entry in history.entries_of(row))
        guards = dict.fromkeys(g for g in [own, *stored, *history.guards_before(at)] if g)
        is_recorded = row.status_detailed is not None or own is not None
        found.record(at, _guard_failed(key or "", "; ".join(guards), is_recorded), before)


def guards_would_fail(key: str, prediction_text: str) -> Why:
    """The guards of the entries were evaluated for the sizes of the lookup."""
    why = "predicted: the guards of the entries were evaluated for the sizes that the pre-flight noted"
    return Why("guard_failed", prediction_text, "inferred", why, kind=key)


def judge_predicted(history: History, found: VerdictsSoFar) -> None:
    """Entries that cannot be loaded, or whose graphs cannot."""
    for at, row in enumerate(history.lookups):
        if row.prediction is None or row.outcome != "full_miss" or found.why[at] is not None:
            continue
        if row.status_detailed == "hit":
            kind = "graph entry"
        elif any(entry.status == "damaged" and entry.is_refused for entry in history.entries_of(row)):
            kind = "damaged"
        else:
            continue
        found.record(at, Why("entry_unavailable", row.prediction, "inferred", _SEEN, kind=kind))


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


def _judge_known_keys(history: History, pasts: PastOfKeys, found: VerdictsSoFar) -> None:
    """Keys that another process was compiling, that had been stored, or whose entry torch could not load."""
    unexplained = [
        at
        for at, (row, why) in enumerate(zip(history.lookups, found.why, strict=True))
        if why is None and row.outcome == "full_miss" and row.cache != VLLM
    ]
    unavailable = UnavailableEntries(history)
    # A fleet races for every key in the same ways.
    races: dict[tuple[tuple[int, ...], int], Why] = {}
    for at, past in pasts.of_each(unexplained):
        racing = past.racing() if past.latest_stored is None and past.refused is None else None
        if racing is not None:
            runs = racing.runs, racing.more
            if runs not in races:
                races[runs] = _compiled_concurrently(*runs)
            found.record(at, races[runs], racing.first)
        else:
            found.record(at, *unavailable.judge(at, past))
    for at in unexplained:
        is_asked = history.key[at] is not None and not pasts.is_known(at)
        if is_asked and (gone := unavailable.not_loaded(at)) is not None:
            found.record(at, *gone)


def _compiled_concurrently(runs: tuple[int, ...], more: int) -> Why:
    named = ", ".join(map(str, runs)) + (f" and {more} more" if more else "")
    if len(runs) + more == 1:
        reason = f"run {named} had missed the same key and was still compiling it"
        why = "by the times in the logs, that compile had begun and had not ended"
    else:
        reason = f"runs {named} had missed the same key and were still compiling it"
        why = "by the times in the logs, those compiles had begun and had not ended"
    return Why("compiled_concurrently", reason, "inferred", why)
