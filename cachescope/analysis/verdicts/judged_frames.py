"""From the frames as read to their judgements: settled outcomes, misses with their verdicts, causes."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cachescope.analysis.history.history import History
from cachescope.analysis.verdicts.adviser import Adviser
from cachescope.analysis.verdicts.baselines import Choice
from cachescope.analysis.verdicts.causes import group_causes, link_consequences
from cachescope.analysis.verdicts.misses import Miss, explain_misses
from cachescope.columns import DEEP
from cachescope.details import HashDetails
from cachescope.frames.answers import MISSES


def has_open_misses(lookups: pd.DataFrame) -> bool:
    """Whether text logs leave open of some misses if guards failed: traces record guard misses themselves."""
    return bool(((lookups["outcome"] == "full_miss") & lookups["status_detailed"].isna()).any())


def settled_lookups(lookups: pd.DataFrame, history: History) -> pd.DataFrame:
    """The frame lookups, with the guard misses that follow from all lookups and entries together."""
    settled = lookups.copy(deep=DEEP)
    if history.inferred:
        settled.loc[settled["lookup"].isin(history.inferred), "outcome"] = "guard_miss"
    return settled


def judged(
    history: History, details: HashDetails, choice: Choice
) -> tuple[list[Miss], list[dict[str, object]]]:
    """Every miss with its verdict and its cause, in the order of the lookups, and the rows of the frame causes."""
    misses = explain_misses(history, details, choice)
    misses.sort(key=lambda miss: miss.row.lookup)
    link_consequences(misses)
    adviser = Adviser(history, details)
    return misses, group_causes(misses, {run.run: run.rank for run in history.runs}, adviser)


def misses_frame(misses: Sequence[Miss]) -> pd.DataFrame:
    """The frame misses."""
    lookups = [getattr(miss.baseline, "lookup", None) for miss in misses]
    entries = [getattr(miss.baseline, "entry", None) for miss in misses]
    return MISSES.of_columns(
        {
            "lookup": [miss.row.lookup for miss in misses],
            "verdict": [miss.verdict for miss in misses],
            "kind": [miss.kind for miss in misses],
            "baseline": list(map(_baseline_name, lookups, entries)),
            "baseline_lookup": lookups,
            "baseline_entry": entries,
            "changed": [miss.changed for miss in misses],
            "root": [miss.root for miss in misses],
            "cause": [miss.cause for miss in misses],
            "reason": [miss.reason for miss in misses],
            "evidence": [miss.evidence for miss in misses],
            "evidence_text": [miss.evidence_text for miss in misses],
        }
    )


def _baseline_name(lookup: int | None, entry: int | None) -> str | None:
    if lookup is not None:
        return f"lookup {lookup}"
    return None if entry is None else f"entry {entry}"
