"""Tables from rows: long ones are cut with a note, and optional columns without values are left out."""

from __future__ import annotations

from collections.abc import Sequence

from cachescope.report.page.cuts import MOST_ROWS, first_of
from cachescope.report.page.parts import Cell, Head, Table


def table(
    name: str,
    heads: Sequence[Head],
    rows: Sequence[tuple[Cell, ...]],
    what: str,
    all_of_them: str,
    most: int = MOST_ROWS,
) -> Table:
    """A table with a limited number of rows.

    Parameters
    ----------
    name : str
        What the table lists.
    heads : sequence of Head
        Its columns.
    rows : sequence of tuple
        Its rows, the most important first.
    what, all_of_them : str
        What the rows are, in words, and the expression that returns all of them, for the note on what was cut.
    most : int
        The number of rows kept.

    Examples
    --------
    >>> heads = (Head("Run"), Head("Rank", is_optional=True))
    >>> found = table("Runs", heads, [(0, None), (1, None)], "runs", "scope.runs", most=1)
    >>> [head.title for head in found.heads], found.rows, found.note
    (['Run'], ((0,),), 'The first 1 of 2 runs; scope.runs has all.')
    """
    kept, note = first_of(rows, what, all_of_them, most)
    shown = [
        at
        for at, head in enumerate(heads)
        if not head.is_optional or any(row[at] is not None for row in kept)
    ]
    return Table(
        name, tuple(heads[at] for at in shown), tuple(tuple(row[at] for at in shown) for row in kept), note
    )
