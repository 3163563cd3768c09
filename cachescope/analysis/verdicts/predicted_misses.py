"""Why lookups predicted by a pre-flight would miss, if the current content of the directory is enough to tell."""

from __future__ import annotations

from typing import Final

from cachescope.analysis.history.history import History
from cachescope.analysis.verdicts.misses import VerdictsSoFar, Why
from cachescope.terms import REFUSED

_SEEN: Final = "predicted: the directory shows it as it is now"


def guards_would_fail(key: str, prediction_text: str) -> Why:
    """The guards of the entries were evaluated for the sizes of the lookup."""
    why = "predicted: the guards of the entries were evaluated for the sizes that the pre-flight noted"
    return Why("guard_failed", prediction_text, "inferred", why, kind=key)


def judge_predicted(history: History, found: VerdictsSoFar) -> None:
    """Entries that cannot be loaded, or whose graphs cannot."""
    refused = {
        (entry.cache, entry.cache_key)
        for entry in history.entries
        if entry.status == "damaged" and (entry.damage or "").startswith(REFUSED)
    }
    for at, row in enumerate(history.lookups):
        if row.prediction is None or row.outcome != "full_miss" or found.why[at] is not None:
            continue
        if row.status_detailed == "hit":
            kind = "graph entry"
        elif (row.cache, row.cache_key) in refused:
            kind = "damaged"
        else:
            continue
        found.record(at, Why("entry_unavailable", row.prediction, "inferred", _SEEN, kind=kind))
