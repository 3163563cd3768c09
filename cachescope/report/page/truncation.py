"""How much of a large thing a page shows, a table above all. Pure functions; each reports what it left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from cachescope.report.page.parts import LONGEST, Column, Head, Table
from cachescope.wording import and_more, file_size, harmless

T = TypeVar("T")

MOST_ROWS: Final = 300
_DIFF_LINES: Final = 120
_DIFF_LINE: Final = 1000


def first_of(
    rows: Sequence[T], what: str, all_of_them: str, most: int = MOST_ROWS
) -> tuple[tuple[T, ...], str]:
    """The first rows, and a sentence on what was cut and where all of them are.

    Examples
    --------
    >>> first_of([1, 2, 3], "misses by time lost", "scope.misses", most=2)
    ((1, 2), 'The first 2 of 3 misses by time lost; scope.misses has all.')
    >>> first_of([1], "misses by time lost", "scope.misses")
    ((1,), '')
    """
    kept = tuple(rows[:most])
    if len(kept) == len(rows):
        return kept, ""
    return kept, cut_note(len(kept), len(rows), what, all_of_them)


def cut_note(kept: int, every: int, what: str, all_of_them: str) -> str:
    """The note on how many are shown, and where all are."""
    return f"The first {kept:,} of {every:,} {what}; {all_of_them} has all."


def bounded(text: str | None) -> str | None:
    """A text cut to the length that a page keeps.

    Examples
    --------
    >>> bounded("x" * 30_000)[-30:]
    'xxxxxx… 10,000 more characters'
    """
    if text is None or len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… {len(text) - LONGEST:,} more characters"


def diff_lines(diff: str, most: int = _DIFF_LINES) -> tuple[tuple[str, ...], str]:
    """The lines of a unified diff without its two lines of names, and the note on what was cut."""
    lines = diff.split("\n")[2:]
    kept = tuple(line[:_DIFF_LINE] for line in lines[:most])
    more = len(lines) - len(kept)
    return kept, and_more(more, "line") if more else ""


def shortened(text: str, limit: int) -> str:
    r"""A text on one line, of at most about `limit` characters, control characters made visible.

    Examples
    --------
    >>> shortened("a\n  b\x1b", 10)
    'a b\\x1b'
    >>> shortened("x" * 20_000, 5)
    'xxxx… (20.0 kB)'
    """
    # Cut first: a value may be a megabyte.
    line = " ".join(harmless(text[: 4 * limit]).split())
    if len(line) <= limit and len(text) <= 4 * limit:
        return line
    return f"{line[: limit - 1]}… ({file_size(len(text.encode('utf-8', 'replace')))})"


def table(
    name: str,
    columns: Sequence[Column],
    rows: Sequence[Any],
    what: str,
    all_of_them: str,
    most: int = MOST_ROWS,
) -> Table:
    """A table with a limited number of rows.

    Examples
    --------
    >>> columns = (Column("Run", "name", abs), Column("Rank", "name", lambda run: None, is_optional=True))
    >>> found = table("Runs", columns, [0, 1], "runs", "scope.runs", most=1)
    >>> [head.title for head in found.heads], found.rows, found.note
    (['Run'], ((0,),), 'The first 1 of 2 runs; scope.runs has all.')
    """
    kept, note = first_of(rows, what, all_of_them, most)
    made = [(one, one.cells(kept)) for one in columns]
    shown = [(one, cells) for one, cells in made if not one.is_optional or cells.count(None) < len(cells)]
    heads = tuple(Head(one.title, one.kind) for one, _ in shown)
    return Table(name, heads, tuple(zip(*(cells for _, cells in shown), strict=True)), note)
