"""The frames of what was judged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pandas as pd

from cachescope.analysis.verdicts.misses import Miss
from cachescope.columns import DEEP, frame_of_columns
from cachescope.frames.answer_rows import MissRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow


def settled_lookups(lookups: pd.DataFrame, inferred: Collection[int]) -> pd.DataFrame:
    """The frame lookups, with the guard misses that follow from all lookups and entries together."""
    if not inferred:
        return lookups
    settled = lookups.copy(deep=DEEP)
    settled.loc[settled["lookup"].isin(inferred), "outcome"] = "guard_miss"
    return settled


def misses_frame(misses: Sequence[Miss]) -> pd.DataFrame:
    """The frame misses."""
    lookups = [one.baseline.lookup if isinstance(one.baseline, LookupRow) else None for one in misses]
    entries = [one.baseline.entry if isinstance(one.baseline, EntryRow) else None for one in misses]
    whys = [one.why for one in misses]
    return frame_of_columns(
        {
            "lookup": [one.row.lookup for one in misses],
            "verdict": [why.verdict for why in whys],
            "kind": [why.kind for why in whys],
            "baseline": list(_named(lookups, entries)),
            "baseline_lookup": lookups,
            "baseline_entry": entries,
            "changed": [why.changed for why in whys],
            "root": [one.root for one in misses],
            "cause": [one.cause for one in misses],
            "reason": [why.reason for why in whys],
            "evidence": [why.evidence for why in whys],
            "evidence_text": [why.evidence_text for why in whys],
        },
        MissRow,
    )


def _named(lookups: Iterable[int | None], entries: Iterable[int | None]) -> Iterable[str | None]:
    """``lookup 3``, or ``entry 3``."""
    for lookup, entry in zip(lookups, entries, strict=True):
        if lookup is not None:
            yield f"lookup {lookup}"
        else:
            yield None if entry is None else f"entry {entry}"
