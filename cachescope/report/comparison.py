"""Two sides beside each other: graphs and keys, contexts, and which entries of one the other would find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from cachescope.analysis.prediction import OWN_FIELDS
from cachescope.columns import records
from cachescope.frames.answers import DIFFERENCES
from cachescope.report.as_json import frame_rows
from cachescope.report.contexts import difference_line
from cachescope.report.difference import Difference
from cachescope.report.difference_forms import difference_lines, difference_object
from cachescope.report.html import CODE_STYLE, STYLE, safe
from cachescope.report.layout import Line, laid_out
from cachescope.wording import SHORT_KEY, harmless, plural

if TYPE_CHECKING:
    from cachescope.report.facts import Row

_FIELDS_SHOWN: Final = 20
_ENTRIES_SHOWN: Final = 3
_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two sides.

    Attributes
    ----------
    before, after : str
        What the sides are.
    graphs : Difference or None
        Keys paired by their graphs; None where a side holds no keys.
    contexts : DataFrame or None
        See ``describe("context_difference")``; None where neither side is a snapshot, or one has no context.
    predictions : DataFrame or None
        See ``describe("predictions")``: the entries of the side that is a directory, and whether the process of
        the other would find them; None where there is no such process.
    """

    before: str
    after: str
    graphs: Difference | None = None
    contexts: pd.DataFrame | None = None
    predictions: pd.DataFrame | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """One row per field that differs between paired keys, folded; see ``describe("differences")``."""
        groups = () if self.graphs is None else self.graphs.groups
        return DIFFERENCES.build(
            {
                "group": number,
                "field": change.field,
                "kind": change.kind,
                "summary": change.summary,
                "before": change.before,
                "after": change.after,
                "pairs": len(pairs),
            }
            for number, (changes, pairs) in enumerate(groups)
            for change in changes
        )

    def __repr__(self) -> str:
        return "\n".join(text for text, _ in laid_out(comparison_lines(self), _WIDTH))

    def _repr_html_(self) -> str:
        text = "\n".join(text for text, _ in laid_out(comparison_lines(self), _WIDTH))
        return f"<div style='{STYLE}'><pre style='{CODE_STYLE}'>{safe(text)}</pre></div>"


def comparison_lines(found: Comparison) -> list[Line]:
    """The comparison for the terminal, what it means for a cache first."""
    parts = []
    if found.predictions is not None:
        parts.append(list(_prediction_lines(found.predictions)))
    if found.contexts is not None:
        parts.append(list(_context_lines(found.contexts)))
    if found.graphs is not None:
        parts.append(difference_lines(found.graphs))
    lines = [line for part in parts for line in (Line(), *part)][1:]
    return lines or [Line("nothing on either side that could be compared", style="bold")]


def comparison_object(found: Comparison) -> dict[str, Any]:
    """The comparison for ``--json``."""
    empty = {"before": found.before, "after": found.after}
    return {
        **(empty if found.graphs is None else difference_object(found.graphs)),
        **({} if found.contexts is None else {"context_difference": frame_rows(found.contexts)}),
        **({} if found.predictions is None else {"predictions": frame_rows(found.predictions)}),
    }


def _prediction_lines(predictions: pd.DataFrame) -> Iterator[Line]:
    rows = records(predictions)
    counts = {answer: sum(row["will_hit"] == answer for row in rows) for answer in ("yes", "no", "unknown")}
    unsafe = [row for row in rows if row["is_unsafe"]]
    if unsafe:
        yield Line(
            f"{plural(len(unsafe), 'entry', 'entries')} unsafe: torch would load code that was built for another CPU",
            style="bold",
        )
        yield from _folded("unsafe", "unsafe_reason", unsafe)
    yield Line(
        f"{plural(len(rows), 'entry', 'entries')}: {counts['yes']} would be found, {counts['no']} not, "
        f"{counts['unknown']} unknown",
        style="bold",
    )
    yield Line("by a process that compiles the graphs and inputs that they were made for", 3, "dim")
    if any(OWN_FIELDS in row["assuming"] for row in rows):
        yield Line(f"and has {OWN_FIELDS}", 3, "dim")
    for answer in ("no", "unknown"):
        yield from _folded(answer, "reason", [row for row in rows if row["will_hit"] == answer])
    yield from _folded(
        "not known whether safe",
        "unsafe_reason",
        [r for r in rows if r["unsafe_reason"] and not r["is_unsafe"]],
    )


def _folded(answer: str, reason: str, rows: list[Row]) -> Iterator[Line]:
    """Rows of equal reasons folded together, the most frequent first."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[reason], []).append(row)
    for why, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        yield Line(f"{answer}: {harmless(why)}", 3, right=plural(len(members), "entry", "entries"))
        names = [
            f"{row['cache']} {harmless(row['cache_key'][:SHORT_KEY])}…" for row in members[:_ENTRIES_SHOWN]
        ]
        more = f" and {len(members) - _ENTRIES_SHOWN} more" if len(members) > _ENTRIES_SHOWN else ""
        yield Line(", ".join(names) + more, 6, "dim")


def _context_lines(contexts: pd.DataFrame) -> Iterator[Line]:
    rows = records(contexts)
    known = [row for row in rows if row["status"] != "unknown"]
    forms = list(dict.fromkeys(row["form"] for row in known))
    title = f"contexts differ in {', '.join(forms)}" if forms else "contexts: nothing that is known differs"
    yield Line(title, style="bold")
    for row in known[:_FIELDS_SHOWN]:
        yield Line(difference_line(row), 3)
    if len(known) > _FIELDS_SHOWN:
        yield Line(f"… and {len(known) - _FIELDS_SHOWN} more", 3, "dim")
    undecided = [row["form"] for row in rows if row["status"] == "unknown"]
    if undecided:
        yield Line(f"not known whether {', '.join(undecided)} differ", 3, "dim")
