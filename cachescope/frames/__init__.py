"""The public frames: each column is declared once, with its type, unit, meaning and torch name."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import pandas as pd

from cachescope.catalogue.bypass_frame import BYPASSES
from cachescope.catalogue.frame import FIELDS
from cachescope.columns import Column
from cachescope.errors import NotFoundError
from cachescope.frames.answers import (
    BUILT,
    CAUSES,
    CHANGES,
    COVERAGE,
    DIFFERENCES,
    HIT_RATES,
    MISSES,
    PREDICTIONS,
)
from cachescope.frames.audit_rules import AUDIT_RULES
from cachescope.frames.checks import AUDIT, CHECKS, FALSE_HITS
from cachescope.frames.compared import COMPARED_LOOKUPS
from cachescope.frames.compiles import COMPILES, RECOMPILES, SYMBOLS
from cachescope.frames.contexts import (
    CACHING_FILES,
    CONTEXT_DIFFERENCE,
    CONTEXT_GROUPS,
    CONTEXT_PAIRS,
    CONTEXTS,
    ISOLATION_KEYS,
    MANIFEST_DIFFERENCE,
)
from cachescope.frames.devices import DEVICE_MEASUREMENTS, DEVICES
from cachescope.frames.directory import (
    AUTOTUNE,
    DUPLICATES,
    ENTRIES,
    GUARDS,
    KERNELS,
    LINKS,
    LOCKS,
    ORPHANS,
    PAST_MISSES,
    REMOVABLE,
)
from cachescope.frames.phases import PHASES
from cachescope.frames.ranks import RANK_DIFFERENCES
from cachescope.frames.recorded import HASH_DETAILS, LOOKUPS, PROBLEMS, RUNS
from cachescope.frames.replay import (
    CAUSE_SAVINGS,
    EVIDENCE,
    SENSITIVITY,
    WHAT_IF,
    WHAT_IF_CAUSES,
    WHAT_IF_DIFFERENCES,
    WHAT_IF_RATES,
    WHAT_IF_RUNS,
    WHAT_IF_WARNINGS,
)
from cachescope.frames.vllm import (
    VLLM_CHANGES,
    VLLM_FACTORS,
    VLLM_FOLDERS,
    VLLM_FRAGMENTS,
    VLLM_RANKS,
    VLLM_STARTS,
)
from cachescope.terms import ENTRY_KINDS, EVIDENCE_KINDS, OUTCOMES
from cachescope.verdict_kinds import VERDICTS

FRAMES: Final = {
    frame.name: frame
    for frame in (
        RUNS,
        LOOKUPS,
        MISSES,
        CAUSES,
        ENTRIES,
        CONTEXTS,
        DEVICES,
        DEVICE_MEASUREMENTS,
        PROBLEMS,
        PHASES,
        COMPILES,
        SYMBOLS,
        RECOMPILES,
        GUARDS,
        PAST_MISSES,
        KERNELS,
        LINKS,
        ORPHANS,
        REMOVABLE,
        DUPLICATES,
        LOCKS,
        AUTOTUNE,
        VLLM_FOLDERS,
        VLLM_CHANGES,
        VLLM_FRAGMENTS,
        VLLM_RANKS,
        VLLM_FACTORS,
        VLLM_STARTS,
        HASH_DETAILS,
        CHANGES,
        HIT_RATES,
        WHAT_IF,
        WHAT_IF_RATES,
        WHAT_IF_CAUSES,
        WHAT_IF_RUNS,
        WHAT_IF_DIFFERENCES,
        WHAT_IF_WARNINGS,
        CAUSE_SAVINGS,
        SENSITIVITY,
        EVIDENCE,
        ISOLATION_KEYS,
        CONTEXT_GROUPS,
        CONTEXT_PAIRS,
        CONTEXT_DIFFERENCE,
        MANIFEST_DIFFERENCE,
        CACHING_FILES,
        DIFFERENCES,
        COMPARED_LOOKUPS,
        BUILT,
        RANK_DIFFERENCES,
        PREDICTIONS,
        COVERAGE,
        FIELDS,
        BYPASSES,
        CHECKS,
        FALSE_HITS,
        AUDIT,
    )
}


def describe(name: str | None = None) -> pd.DataFrame:
    """Describe the columns of a frame.

    Parameters
    ----------
    name : str, optional
        A frame, ``"outcomes"``, ``"verdicts"``, ``"evidence_kinds"``, ``"entry_kinds"`` or ``"audit_rules"``.
        Without it, the list of frames.

    Returns
    -------
    DataFrame
        One row per column: column, dtype, unit, meaning, missing (what a missing value means), torch_name.

    Raises
    ------
    NotFoundError
        If there is no such frame.

    Examples
    --------
    >>> import cachescope
    >>> cachescope.describe("problems")["column"].tolist()
    ['source', 'where', 'kind', 'message']
    """
    if name is None:
        rows = [{"frame": f.name, "grain": f.grain, "columns": len(f.columns)} for f in FRAMES.values()]
        return pd.DataFrame(rows)
    if name == "outcomes":
        return pd.DataFrame([{"outcome": outcome, "meaning": text} for outcome, text in OUTCOMES.items()])
    if name == "verdicts":
        return pd.DataFrame([{"verdict": v, "meaning": text} for v, text in VERDICTS.items()])
    if name == "evidence_kinds":
        return pd.DataFrame([{"evidence": kind, "meaning": text} for kind, text in EVIDENCE_KINDS.items()])
    if name == "entry_kinds":
        return pd.DataFrame([{"entry_kind": k, "meaning": text} for k, text in ENTRY_KINDS.items()])
    if name == "audit_rules":
        return pd.DataFrame(
            [
                {"rule": rule.name, "level": rule.level, "meaning": rule.meaning, "advice": rule.advice}
                for rule in AUDIT_RULES.values()
            ]
        )
    if name not in FRAMES:
        others = "outcomes, verdicts, evidence_kinds, entry_kinds and audit_rules"
        raise NotFoundError(f"no frame {name!r}; there are {', '.join(FRAMES)}, {others}")
    rename = {"name": "column"}
    rows = [
        {rename.get(f.name, f.name): getattr(column, f.name) for f in fields(Column)}
        for column in FRAMES[name].columns
    ]
    return pd.DataFrame(rows)[["column", "dtype", "unit", "meaning", "missing", "torch_name"]]
