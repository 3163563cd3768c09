"""From the frames as read to their judgements: settled outcomes, misses with their verdicts, causes."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cachescope.analysis.history.rows import entry_rows, lookup_rows, run_rows
from cachescope.analysis.verdicts.adviser import Adviser
from cachescope.analysis.verdicts.baselines import Choice
from cachescope.analysis.verdicts.causes import group_causes, link_consequences
from cachescope.analysis.verdicts.inferred_guard_misses import inferred_guard_misses
from cachescope.analysis.verdicts.misses import Miss, explain_misses
from cachescope.columns import DEEP
from cachescope.details import HashDetails
from cachescope.frames.answers import MISSES


def settled_lookups(lookups: pd.DataFrame, entries: pd.DataFrame, details: HashDetails) -> pd.DataFrame:
    """The frame lookups, with the guard misses that follow from all lookups and entries together."""
    # Traces record guard misses themselves: only lookups of text logs are examined.
    if not ((lookups["outcome"] == "full_miss") & lookups["status_detailed"].isna()).any():
        return lookups.copy(deep=DEEP)
    found = inferred_guard_misses(lookup_rows(lookups, details), entry_rows(entries, details), details)
    settled = lookups.copy(deep=DEEP)
    settled.loc[settled["lookup"].isin(found), "outcome"] = "guard_miss"
    return settled


def judged(
    lookups: pd.DataFrame, entries: pd.DataFrame, runs: pd.DataFrame, details: HashDetails, choice: Choice
) -> tuple[list[Miss], list[dict[str, object]]]:
    """Every miss with its verdict and its cause, in the order of the lookups, and the rows of the frame causes."""
    processes, rows = run_rows(runs), lookup_rows(lookups, details)
    misses = explain_misses(rows, entry_rows(entries, details), processes, details, choice)
    misses.sort(key=lambda miss: miss.row.lookup)
    link_consequences(misses)
    adviser = Adviser(rows, processes, details)
    return misses, group_causes(misses, {run.run: run.rank for run in processes}, adviser)


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
