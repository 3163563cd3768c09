"""Every frame, and the description of its columns: this loads the rows of them all."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from cachescope.catalogue.bypasses import BypassFacts
from cachescope.catalogue.defects import Defect
from cachescope.catalogue.facts import FieldFacts
from cachescope.components import Detail
from cachescope.errors import NotFoundError
from cachescope.frames.answer_rows import CauseRow, ChangeRow, MissRow, RankDifference, RateRow, TrendRow
from cachescope.frames.audit_rules import AUDIT_RULES
from cachescope.frames.checks import AuditRow, Bar, FalseHit
from cachescope.frames.compared import Built, ComparedLookup, CoverageRow, DifferenceRow
from cachescope.frames.compile_rows import CompileRow, PhaseRow, RecompileRow, RecordedText, SymbolRow
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.device_rows import DeviceRow, MeasurementRow
from cachescope.frames.directory_rows import Candidate, EntryRow, KernelRow, TimingRow
from cachescope.frames.linked_rows import DuplicateRow, LinkRow, LockRow, OrphanRow, PastMiss, RemovableRow
from cachescope.frames.recorded_rows import LookupRow, ProblemRow, RunRow
from cachescope.frames.replay_rows import (
    CauseSaving,
    EvidenceRow,
    SensitivityRow,
    WhatIfCause,
    WhatIfDifference,
    WhatIfRate,
    WhatIfRow,
    WhatIfRun,
    WhatIfWarning,
)
from cachescope.frames.sharing_rows import (
    CachingFile,
    FormDifference,
    GroupRow,
    IsolationKeyRow,
    ManifestDifference,
    PairRow,
    PredictionRow,
)
from cachescope.frames.vllm import FactorsRow, FolderRow, FragmentRow, RankRow, StartRow, VllmChange
from cachescope.rows import columns_of, frame_name, grain
from cachescope.terms import ENTRY_KINDS, EVIDENCE_KINDS, OUTCOMES
from cachescope.verdict_kinds import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

FRAMES: Final[dict[str, type]] = {
    frame_name(kind): kind
    for kind in (
        RunRow, LookupRow, MissRow, CauseRow, EntryRow, ContextRow, DeviceRow, MeasurementRow, ProblemRow,
        PhaseRow, CompileRow, SymbolRow, RecompileRow, RecordedText, Candidate, PastMiss, KernelRow, LinkRow, OrphanRow,
        RemovableRow, DuplicateRow, LockRow, TimingRow, FolderRow, VllmChange, FragmentRow, RankRow,
        FactorsRow, StartRow, Detail, ChangeRow, RateRow, WhatIfRow, WhatIfRate, WhatIfCause, WhatIfRun,
        WhatIfDifference, WhatIfWarning, CauseSaving, SensitivityRow, EvidenceRow, IsolationKeyRow,
        GroupRow, PairRow, FormDifference, ManifestDifference, CachingFile, DifferenceRow, ComparedLookup,
        Built, RankDifference, TrendRow, PredictionRow, CoverageRow, FieldFacts, BypassFacts, Defect, Bar, FalseHit, AuditRow,
    )
}  # fmt: skip
"""The class of the rows of each frame."""

_WORDS: Final = {
    "outcomes": ("outcome", OUTCOMES),
    "verdicts": ("verdict", VERDICTS),
    "evidence_kinds": ("evidence", EVIDENCE_KINDS),
    "entry_kinds": ("entry_kind", ENTRY_KINDS),
}
"""What each set of words is called in its column, and their meanings."""


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
    ['source', 'where', 'kind', 'message', 'count']
    """
    import pandas as pd

    if name is None:
        frames = FRAMES.items()
        return pd.DataFrame(
            [{"frame": one, "grain": grain(kind), "columns": len(columns_of(kind))} for one, kind in frames]
        )
    if name in _WORDS:
        column, meanings = _WORDS[name]
        return pd.DataFrame([{column: word, "meaning": text} for word, text in meanings.items()])
    if name == "audit_rules":
        return pd.DataFrame([asdict(rule) for rule in AUDIT_RULES.values()]).rename(columns={"name": "rule"})
    if name not in FRAMES:
        others = "outcomes, verdicts, evidence_kinds, entry_kinds and audit_rules"
        raise NotFoundError(f"no frame {name!r}; there are {', '.join(FRAMES)}, {others}")
    told = ["column", "dtype", "unit", "meaning", "missing", "torch_name"]
    return pd.DataFrame(
        [(c.name, c.dtype, c.unit, c.meaning, c.missing, c.torch_name) for c in columns_of(FRAMES[name])],
        columns=told,
    )
