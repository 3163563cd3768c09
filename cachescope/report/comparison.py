"""A comparison of two sides as lines, and as an object for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pandas as pd

from cachescope.analysis.contexts.prediction import OWN_FIELDS
from cachescope.answers import comparison as answer
from cachescope.answers.prediction_summary import PredictionSummary, Reason
from cachescope.columns import rows_of
from cachescope.frames.answer_rows import Built, CoverageRow
from cachescope.frames.context_rows import FormDifference
from cachescope.json_types import JsonObject
from cachescope.report.as_json import frame_rows
from cachescope.report.built_forms import built_lines
from cachescope.report.context_forms import difference_line
from cachescope.report.coverage_forms import coverage_lines
from cachescope.report.difference_forms import difference_lines, difference_object
from cachescope.report.html import CODE_STYLE, STYLE, safe
from cachescope.report.layout import Line, wrapped
from cachescope.wording import SHORT_KEY, and_more, harmless, listed, plural

_FIELDS_SHOWN: Final = 20
_ENTRIES_SHOWN: Final = 3


class Comparison(answer.Comparison):
    """A comparison with its reprs."""

    __slots__ = ()

    def __repr__(self) -> str:
        return wrapped(comparison_lines(self))

    def _repr_html_(self) -> str:
        return f"<div style='{STYLE}'><pre style='{CODE_STYLE}'>{safe(repr(self))}</pre></div>"


def comparison_lines(found: answer.Comparison) -> list[Line]:
    """The comparison for the terminal; first what it means for a cache."""
    parts = []
    if found.coverage is not None:
        parts.append(list(coverage_lines(rows_of(found.coverage, CoverageRow))))
    if found.predictions is not None:
        parts.append(list(_prediction_lines(PredictionSummary.of(found.predictions))))
    if found.contexts is not None:
        parts.append(list(_context_lines(found.contexts)))
    if found.graphs is not None:
        parts.append(difference_lines(found.graphs))
    if found.built is not None and len(found.built):
        parts.append(list(built_lines(rows_of(found.built, Built))))
    lines = [line for part in parts for line in (Line(), *part)][1:]
    return lines or [Line("nothing on either side that could be compared", style="bold")]


def comparison_object(found: answer.Comparison) -> JsonObject:
    """The comparison for ``--json``."""
    empty = {"before": found.before, "after": found.after}
    return {
        **(empty if found.graphs is None else difference_object(found.graphs)),
        **({} if found.contexts is None else {"context_difference": frame_rows(found.contexts)}),
        **({} if found.predictions is None else {"predictions": frame_rows(found.predictions)}),
        **({} if found.built is None else {"built": frame_rows(found.built)}),
        **({} if found.coverage is None else {"coverage": frame_rows(found.coverage)}),
    }


def _prediction_lines(found: PredictionSummary) -> Iterator[Line]:
    entries = plural(len(found.rows), "entry", "entries")
    if found.unsafe:
        unsafe = plural(found.unsafe_count, "entry", "entries")
        yield Line(f"{unsafe} unsafe: torch would load code that was built for another CPU", style="bold")
        yield from _folded("unsafe", found.unsafe)
    yes, no, unknown = (found.counts[answer] for answer in ("yes", "no", "unknown"))
    yield Line(f"{entries}: {yes:,} would be found, {no:,} not, {unknown:,} unknown", style="bold")
    yield Line("by a process that compiles the graphs and inputs that they were made for", 3, "dim")
    if found.takes_own_fields_as_equal:
        yield Line(f"and has {OWN_FIELDS}", 3, "dim")
    yield from _folded("no", found.not_found)
    yield from _folded("unknown", found.unknown)
    yield from _folded("not known whether safe", found.perhaps_unsafe)


def _folded(answer: str, reasons: Sequence[Reason]) -> Iterator[Line]:
    """Each reason with the first of its entries."""
    for reason in reasons:
        count = plural(len(reason.rows), "entry", "entries")
        yield Line(f"{answer}: {harmless(reason.text)}", 3, right=count)
        names = (f"{row.cache} {harmless(row.cache_key[:SHORT_KEY])}…" for row in reason.rows)
        yield Line(listed(names, _ENTRIES_SHOWN), 6, "dim")


def _context_lines(contexts: pd.DataFrame) -> Iterator[Line]:
    rows = rows_of(contexts, FormDifference)
    known = [row for row in rows if row.status != "unknown"]
    forms = list(dict.fromkeys(row.form for row in known))
    title = f"contexts differ in {', '.join(forms)}" if forms else "contexts: nothing that is known differs"
    yield Line(title, style="bold")
    for row in known[:_FIELDS_SHOWN]:
        yield Line(difference_line(row), 3)
    if len(known) > _FIELDS_SHOWN:
        yield Line(and_more(len(known) - _FIELDS_SHOWN), 3, "dim")
    undecided = [row.form for row in rows if row.status == "unknown"]
    if undecided:
        yield Line(f"not known whether {', '.join(undecided)} differ", 3, "dim")
