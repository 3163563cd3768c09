"""Why one lookup missed, as an object with text, HTML and a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pandas as pd

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.report.text import (
    baseline_name,
    duration,
    harmless,
    lookup_name,
    plural,
    run_name,
)

if TYPE_CHECKING:
    from cachescope.scope import Scope

_COLUMNS: Final = ("field", "kind", "summary", "before", "after")


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one lookup missed.

    Attributes
    ----------
    lookup : int
        The lookup.
    verdict : str or None
        One of ``describe("verdicts")``; None for a hit.
    title, reason : str
        Which lookup it is, and the sentence that says why.
    baseline : str or None
        What it was compared with.
    changes : tuple of FieldChange
        Every field whose hash differs.
    consequences : tuple of str
        Other misses of the same cause.
    advice : str or None
        What can be done.
    """

    lookup: int
    verdict: str | None
    title: str
    reason: str
    baseline: str | None = None
    changes: tuple[FieldChange, ...] = ()
    consequences: tuple[str, ...] = ()
    advice: str | None = None
    root: bool = True

    @property
    def frame(self) -> pd.DataFrame:
        """One row per changed field: field, kind, summary, before, after (the texts torch printed)."""
        rows = [{name: getattr(change, name) for name in _COLUMNS} for change in self.changes]
        return pd.DataFrame(rows, columns=list(_COLUMNS)).astype("str")

    def __repr__(self) -> str:
        return "\n".join(explanation_lines(self))

    def _repr_html_(self) -> str:
        from cachescope.report.html import explanation_html

        return explanation_html(self)


def explanation(scope: Scope, lookup: int) -> Explanation:
    """Everything that is known about one lookup, put together from the frames of a scope."""
    row = scope.lookups.set_index("lookup").loc[lookup]
    where = run_name(scope.runs.set_index("run"), int(row["run"]))
    at = "" if pd.isna(row["compile_id"]) else f", compile {harmless(row['compile_id'])}"
    title = f"lookup {lookup}, {where}{at}: {lookup_name(row)}"
    if row["outcome"] == "hit":
        return Explanation(lookup, None, title, f"it hit, and saved {duration(row['time_saved_ns'])}")
    misses = scope.misses
    miss = next(misses[misses["lookup"] == lookup].itertuples())
    cause = scope.causes.set_index("cause").loc[miss.cause]
    same_cause = misses[(misses["cause"] == miss.cause) & (misses["lookup"] != lookup)]["lookup"]
    others = scope.lookups.set_index("lookup").loc[same_cause]
    return Explanation(
        lookup,
        miss.verdict,
        title,
        miss.reason,
        baseline=baseline_name(scope, miss),
        changes=_changes(scope, row, miss),
        consequences=tuple(f"run {other['run']}: {lookup_name(other)}" for _, other in others.iterrows()),
        advice=None if pd.isna(cause["advice"]) else cause["advice"],
        root=bool(miss.root),
    )


def _changes(scope: Scope, row: pd.Series, miss: object) -> tuple[FieldChange, ...]:  # type: ignore[type-arg]
    if not getattr(miss, "changed"):
        return ()
    tables = scope._tables
    baseline_lookup = getattr(miss, "baseline_lookup")
    if pd.notna(baseline_lookup):
        before = tables.lookups.set_index("lookup").loc[baseline_lookup, "detail_set"]
    else:
        before = tables.entries.set_index("entry").loc[getattr(miss, "baseline_entry"), "detail_set"]
    return tuple(field_changes(tables.hash_details, int(before), int(row["detail_set"])))


def explanation_lines(explained: Explanation, most: int = 20) -> list[str]:
    """The explanation as lines of plain text, control characters made visible."""
    verdict = explained.verdict or "hit"
    lines = [harmless(explained.title), f"{verdict}: {harmless(explained.reason)}"]
    if explained.baseline is not None:
        lines.append(f"compared with {explained.baseline}")
    for change in explained.changes[:most]:
        lines.append(f"  {harmless(change.field)}  {harmless(change.summary)}")
        lines += [f"    {harmless(line)}" for line in change.diff.split("\n")[2:] if change.diff]
    if len(explained.changes) > most:
        lines.append(f"  … and {len(explained.changes) - most} more fields")
    if explained.consequences:
        shown = "; ".join(explained.consequences[:4])
        more = len(explained.consequences) - 4
        lines.append(f"same cause: {shown}" + (f" and {plural(more, 'other')}" if more > 0 else ""))
    if explained.advice:
        lines.append(harmless(explained.advice))
    return lines
