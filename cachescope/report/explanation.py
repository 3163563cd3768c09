"""Why one lookup missed, as an object with text, HTML and a frame."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

import pandas as pd

from cachescope.analysis.differences import FieldChange
from cachescope.frames.answers import CHANGES
from cachescope.report.text import baseline_name, in_compile, lookup_name, run_name
from cachescope.wording import duration, harmless, harmless_line, plural

if TYPE_CHECKING:
    from cachescope.scope import Scope

# A fleet misses the same by the hundred thousand.
_SAME_CAUSE: Final = 100
_NOT_SEEN: Final = "the log ends before its outcome, or has lost the line of it"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one lookup missed.

    Attributes
    ----------
    lookup : int
        The lookup.
    verdict : str or None
        One of ``describe("verdicts")``; None where it did not miss, or that is not known.
    title, reason : str
        Which lookup it is, and the sentence that says why.
    evidence : str
        What the verdict rests on: one of ``describe("evidence_kinds")``.
    evidence_text : str
        What exactly that is.
    baseline : str or None
        What it was compared with.
    changes : tuple of FieldChange
        Every field whose hash differs.
    same_cause : tuple of str
        The other misses of the same cause, the first hundred of them.
    more_of_same_cause : int
        How many more there are.
    advice : str or None
        What can be done.
    outcome : str
        The outcome of the lookup.
    """

    lookup: int
    verdict: str | None
    title: str
    reason: str
    evidence: str
    evidence_text: str
    baseline: str | None = None
    changes: tuple[FieldChange, ...] = ()
    same_cause: tuple[str, ...] = ()
    more_of_same_cause: int = 0
    advice: str | None = None
    root: bool = True
    outcome: str = "full_miss"

    @property
    def word(self) -> str:
        """The verdict, or the outcome of what has none."""
        return self.verdict or self.outcome

    @property
    def frame(self) -> pd.DataFrame:
        """One row per changed field; see ``describe("changes")``."""
        names = [column.name for column in CHANGES.columns]
        return CHANGES.build({name: getattr(change, name) for name in names} for change in self.changes)

    def __repr__(self) -> str:
        return "\n".join(map(harmless_line, explanation_lines(self)))

    def _repr_html_(self) -> str:
        from cachescope.report.html import explanation_html

        return explanation_html(self)


def explanation(scope: Scope, lookup: int) -> Explanation:
    """Everything that is known about one lookup, put together from the frames of a scope."""
    facts = scope.facts
    row = facts.lookups[lookup]
    title = f"lookup {lookup}, {run_name(facts.runs[row['run']])}{in_compile(row)}: {lookup_name(row)}"
    if row["outcome"] == "hit":
        saved = row["time_saved_ns"]
        reason = (
            "an entry was found" if saved is None else f"an entry was found, which saved {duration(saved)}"
        )
        return Explanation(lookup, None, title, reason, "recorded", "torch recorded the hit", outcome="hit")
    if row["outcome"] == "unknown":
        reason = "whether it hit or missed is not known"
        return Explanation(lookup, None, title, reason, "not_known", _NOT_SEEN, outcome="unknown")
    miss = facts.misses[lookup]
    of_cause = facts.misses_of(miss["cause"])
    first = (m["lookup"] for m in of_cause[: _SAME_CAUSE + 1] if m["lookup"] != lookup)
    others = [facts.lookups[number] for number in islice(first, _SAME_CAUSE)]
    return Explanation(
        lookup,
        miss["verdict"],
        title,
        miss["reason"],
        miss["evidence"],
        miss["evidence_text"],
        baseline=baseline_name(scope, miss),
        changes=scope.changes(lookup),
        same_cause=tuple(f"run {other['run']}: {lookup_name(other)}" for other in others),
        more_of_same_cause=len(of_cause) - 1 - len(others),
        advice=facts.causes[miss["cause"]]["advice"],
        root=miss["root"],
        outcome=row["outcome"],
    )


def verdict_lines(explained: Explanation) -> tuple[str, str]:
    """What happened, and what that rests on."""
    known = explained.evidence.replace("_", " ")
    return f"{explained.word}: {explained.reason}", f"evidence: {known} ({explained.evidence_text})"


def explanation_lines(explained: Explanation, most: int = 20) -> list[str]:
    """The explanation as lines of plain text, control characters made visible."""
    lines = [harmless(explained.title), *(harmless(line) for line in verdict_lines(explained))]
    if explained.baseline is not None:
        lines.append(f"compared with {explained.baseline}")
    for change in explained.changes[:most]:
        lines.append(f"  {harmless(change.field)}  {harmless(change.summary)}")
        lines += [f"    {harmless(line)}" for line in change.diff.split("\n")[2:] if change.diff]
    if len(explained.changes) > most:
        lines.append(f"  … and {len(explained.changes) - most} more fields")
    if explained.same_cause:
        shown = "; ".join(explained.same_cause[:4])
        more = len(explained.same_cause) + explained.more_of_same_cause - 4
        lines.append(f"same cause: {shown}" + (f" and {plural(more, 'other')}" if more > 0 else ""))
    if explained.advice:
        lines.append(harmless(explained.advice))
    return lines
