"""The differences between the ranks of a job, in lines: a field and the ranks that differ from the majority."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cachescope.analysis.differences import short
from cachescope.frames.answer_rows import RankDifference
from cachescope.report.layout import Line, rest
from cachescope.wording import harmless, plural, rank_names

_SHOWN: Final = 8
_VALUE: Final = 60


def rank_lines(rows: Sequence[RankDifference]) -> Iterator[Line]:
    """The fields in which ranks of a job differ from the majority; nothing if there are none."""
    if not rows:
        return
    yield Line("ranks that differ from the others", style="bold")
    for row in rows[:_SHOWN]:
        where = f"{plural(row.graphs, 'graph')}, {plural(row.misses, 'miss', 'misses')}"
        yield Line(harmless(f"{row.field}   {_difference(row)}"), 3, right=where)
    yield from rest(len(rows) - _SHOWN, "field", "scope.rank_differences")


def _difference(row: RankDifference) -> str:
    ranks, compared = row.ranks, row.ranks_compared
    if row.has_majority:
        of = f"{plural(len(ranks), 'rank')} of {compared} ({rank_names(ranks)})"
        return f"{of}: {_value(row.other_value)}, the others {_value(row.majority_value)}"
    if row.values == compared:
        return f"each of {compared} ranks has its own: {_value(row.other_value)} in rank {ranks[0]}"
    return f"{row.values} values among {compared} ranks, none in most: {_value(row.other_value)} in one"


def _value(text: str | None) -> str:
    return "no such field" if text is None else short(text, _VALUE)
