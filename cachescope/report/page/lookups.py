"""Every lookup, for the table of the page that sorts and filters them and says why one missed."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from cachescope.answers.names import baseline_name, lookup_in_run
from cachescope.answers.read import Read
from cachescope.answers.worklist import cause_names
from cachescope.report.page.cuts import cut_note
from cachescope.report.page.parts import LookupTable

MOST: Final = 2000
_SHOWN: Final = (
    "lookup", "run", "rank", "cache", "compile_id", "function", "cache_key", "outcome", "verdict", "time_taken_ns", "reason",
    "aot_lookup", "cause", "baseline_lookup",
)  # fmt: skip


def lookup_table(scope: Read, explained: dict[int, int], most: int = MOST) -> LookupTable:
    """The lookups as a part of the page.

    Parameters
    ----------
    scope : Read
    explained : dict
        The number of the explanation of each cause that has one, by the cause.
    most : int
        The largest number of lookups; of more, those with the longest compiles.
    """
    frame = scope.lookups.merge(scope.misses, on="lookup", how="left")
    frame = frame.merge(scope.runs[["run", "rank"]], on="run", how="left")[list(_SHOWN)]
    note = ""
    if len(frame) > most:
        times = frame["time_taken_ns"].fillna(0).to_numpy(dtype=np.int64)
        note = cut_note(most, len(frame), "lookups by compile time", "scope.lookups")
        frame = frame.iloc[np.sort(np.argsort(-times, kind="stable")[:most])]
    frame = frame.reset_index(drop=True)
    names = {cause: name for name, cause in cause_names(scope)}
    causes = [None if pd.isna(cause) else int(cause) for cause in frame["cause"]]
    words = [_words(scope, lookup) for lookup in frame["lookup"].tolist()]
    return LookupTable(
        frame.assign(
            cause_summary=_texts([None if cause is None else names[cause] for cause in causes]),
            explained=pd.array(
                [None if cause is None else explained.get(cause) for cause in causes], dtype="Int64"
            ),
            **{
                name: _texts([one[at] for one in words])
                for at, name in enumerate(("title", "evidence", "compared", "changed"))
            },
        ),
        note,
    )


def _words(scope: Read, lookup: int) -> tuple[str | None, ...]:
    """What it is, what the verdict rests on, what it is compared with, and what changed."""
    facts = scope.facts
    title = lookup_in_run(facts, facts.lookups[lookup])
    miss = facts.misses.get(lookup)
    if miss is None:
        return title, None, None, None
    evidence = f"evidence: {miss.evidence.replace('_', ' ')} ({miss.evidence_text})"
    return title, evidence, baseline_name(facts, miss), ", ".join(miss.changed) or None


def _texts(values: list[str | None]) -> pd.Series[str]:
    return pd.Series(values, dtype="str")
