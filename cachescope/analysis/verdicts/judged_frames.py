"""From the frames as read to their judgements: settled outcomes, misses with their verdicts, causes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cachescope.analysis.history.history import History
from cachescope.analysis.history.places_by_group import NONE, Numbers
from cachescope.analysis.verdicts.adviser import Adviser
from cachescope.analysis.verdicts.baselines import Choice
from cachescope.analysis.verdicts.causes import group_causes, link_consequences
from cachescope.analysis.verdicts.judging import judged_misses
from cachescope.analysis.verdicts.misses import Misses
from cachescope.analysis.verdicts.vllm_misses import VllmMisses
from cachescope.columns import DEEP, frame_of, frame_of_columns
from cachescope.details import HashDetails
from cachescope.frames.answer_rows import CauseRow, MissRow
from cachescope.terms import VLLM


def has_open_misses(lookups: pd.DataFrame) -> bool:
    """Whether text logs leave open of some misses if guards failed: traces record guard misses themselves."""
    is_open = (lookups["outcome"] == "full_miss") & lookups["status_detailed"].isna()
    return bool((is_open & (lookups["cache"] != VLLM)).any())


def settled_lookups(lookups: pd.DataFrame, history: History) -> pd.DataFrame:
    """The frame lookups, with the guard misses that follow from all lookups and entries together."""
    settled = lookups.copy(deep=DEEP)
    if history.inferred:
        settled.loc[settled["lookup"].isin(history.inferred), "outcome"] = "guard_miss"
    return settled


def judged(
    history: History, details: HashDetails, choice: Choice, vllm: VllmMisses | None = None
) -> tuple[Misses, list[CauseRow]]:
    """Every miss with its verdict and its cause, in the order of the lookups; and the causes, the costliest first."""
    misses = judged_misses(history, details, choice, vllm)
    link_consequences(misses)
    return misses, group_causes(misses, history, Adviser(history, details, vllm))


def misses_frame(misses: Misses) -> pd.DataFrame:
    """The frame misses."""
    lookup = misses.lookups.lookup
    baseline = _ids(misses.baseline, lookup)
    entry = _ids(misses.baseline_entry, np.array([one.entry for one in misses.entries], dtype=np.int64))
    changed = [why.changed for why in misses.whys]
    return frame_of_columns(
        {
            "lookup": pa.array(lookup[misses.at]),
            "verdict": _texts(misses, [why.verdict for why in misses.whys]),
            "kind": _texts(misses, [why.kind for why in misses.whys]),
            "baseline": pc.coalesce(_named("lookup", baseline), _named("entry", entry)),
            "baseline_lookup": baseline,
            "baseline_entry": entry,
            "changed": [changed[number] for number in misses.why.tolist()],
            "root": pa.array(misses.is_root),
            "cause": pa.array(misses.cause),
            "reason": _texts(misses, [why.reason for why in misses.whys]),
            "evidence": _texts(misses, [why.evidence for why in misses.whys]),
            "evidence_text": _texts(misses, [why.evidence_text for why in misses.whys]),
        },
        MissRow,
    )


def causes_frame(causes: Sequence[CauseRow]) -> pd.DataFrame:
    """The frame causes."""
    return frame_of(causes, CauseRow)


def _texts(misses: Misses, of_whys: Sequence[str]) -> pa.Array:
    """A text for each miss, from one for each reason."""
    return pa.array(of_whys, type=pa.large_string()).take(pa.array(misses.why))


def _ids(places: Numbers, ids: Numbers) -> pa.Array:
    """The ids of what lies at some places; missing for -1."""
    found = np.append(ids, NONE)[places]
    return pa.array(found, mask=places == NONE)


def _named(what: str, ids: pa.Array) -> pa.Array:
    """``lookup 3``."""
    return pc.binary_join_element_wise(
        pa.scalar(what, pa.large_string()), ids.cast(pa.large_string()), pa.scalar(" ", pa.large_string())
    )
