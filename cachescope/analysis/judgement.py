"""From the frames as read to what is judged of them: settled outcomes, misses with their verdicts, causes."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cachescope.analysis.baselines import Choice
from cachescope.analysis.causes import group_causes, link_consequences
from cachescope.analysis.history import entry_rows, lookup_rows, run_rows
from cachescope.analysis.misses import Miss, explain_misses
from cachescope.analysis.timeline import inferred_guard_misses
from cachescope.details import HashDetails
from cachescope.frames.answers import MISSES


def settled_lookups(lookups: pd.DataFrame, entries: pd.DataFrame, details: HashDetails) -> pd.DataFrame:
    """The frame lookups, with the guard misses that follow from all lookups and entries together."""
    found = inferred_guard_misses(lookup_rows(lookups, details), entry_rows(entries, details), details)
    settled = lookups.copy(deep=False)
    settled.loc[settled["lookup"].isin(found), "outcome"] = "guard_miss"
    return settled


def judged(
    lookups: pd.DataFrame, entries: pd.DataFrame, runs: pd.DataFrame, details: HashDetails, choice: Choice
) -> tuple[list[Miss], list[dict[str, object]]]:
    """Every miss with its verdict and its cause, in the order of the lookups, and the rows of the frame causes."""
    processes = run_rows(runs)
    misses = explain_misses(
        lookup_rows(lookups, details), entry_rows(entries, details), processes, details, choice
    )
    misses.sort(key=lambda miss: miss.row.lookup)
    link_consequences(misses)
    return misses, group_causes(misses, {run.run: run.rank for run in processes})


def misses_frame(misses: Sequence[Miss]) -> pd.DataFrame:
    """The frame misses."""
    return MISSES.build(_miss_row(miss) for miss in misses)


def _miss_row(miss: Miss) -> dict[str, object]:
    baseline = miss.baseline
    lookup, entry = getattr(baseline, "lookup", None), getattr(baseline, "entry", None)
    name = None if baseline is None else f"entry {entry}" if lookup is None else f"lookup {lookup}"
    return {
        "lookup": miss.row.lookup,
        "verdict": miss.verdict,
        "baseline": name,
        "baseline_lookup": lookup,
        "baseline_entry": entry,
        "changed": miss.changed,
        "root": miss.root,
        "cause": miss.cause,
        "reason": miss.reason,
    }
