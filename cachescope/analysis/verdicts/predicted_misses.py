"""Why lookups predicted by a pre-flight would miss, if the current content of the directory is enough to tell."""

from __future__ import annotations

from typing import Final

import numpy as np

from cachescope.analysis.history.history import History
from cachescope.analysis.history.places_by_group import NONE
from cachescope.analysis.verdicts.misses import Why
from cachescope.analysis.verdicts.reasons_found import ReasonsFound
from cachescope.terms import REFUSED

_SEEN: Final = "predicted: the directory shows it as it is now"


def guards_would_fail(key: str, prediction_text: str) -> Why:
    """The guards of the entries were evaluated for the sizes of the lookup."""
    why = "predicted: the guards of the entries were evaluated for the sizes that the pre-flight noted"
    return Why("guard_failed", prediction_text, "inferred", why, kind=key)


def judge_predicted(history: History, found: ReasonsFound) -> None:
    """Entries that cannot be loaded, or whose graphs cannot."""
    lookups = history.lookups
    is_unexplained = lookups.prediction.is_known & lookups.outcome.are("full_miss") & (found.why == NONE)
    places = np.flatnonzero(is_unexplained).tolist()
    if not places:
        return
    refused = {
        (entry.cache, entry.cache_key)
        for entry in history.entries
        if entry.status == "damaged" and (entry.damage or "").startswith(REFUSED)
    }
    for at in places:
        prediction_text = lookups.prediction[at] or ""
        if lookups.status_detailed[at] == "hit":
            kind = "graph entry"
        elif (lookups.cache[at], lookups.cache_key[at]) in refused:
            kind = "damaged"
        else:
            continue
        found.record(at, Why("entry_unavailable", prediction_text, "inferred", _SEEN, kind=kind), NONE)
