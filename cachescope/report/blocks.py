"""The blocks of which every answer is made: plain data, which terminal, notebook, page, panes and Markdown render.

A line of text is one (`layout.Line`). Texts are whole here, within bounds; they are shortened when shown. What leaves
something out says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from cachescope.json_types import JsonObject
from cachescope.report.layout import Line
from cachescope.report.tables import Cell, Column, Kind
from cachescope.wording import and_more, file_size, harmless

T = TypeVar("T")
Hiding = Callable[[Any, str], Any]

# Words of the page itself, which its style and its links depend on; none of them is hidden.
_OURS: Final = frozenset({"anchor", "kind", "unit"})

# Nobody reads more of a text; a value in a log can be a megabyte.
LONGEST: Final = 20_000
MOST_ROWS: Final = 300
_DIFF_LINES: Final = 120
_DIFF_LINE: Final = 1000


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column of a table."""

    title: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """A table; a page sorts and searches it."""

    name: str  # the items it lists; its caption
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""  # on what was cut; empty if nothing was


@dataclass(frozen=True, slots=True)
class Numbers:
    """Large numbers side by side: label, number, and what it consists of."""

    cells: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """The lines of a unified diff."""

    name: str
    lines: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure that is drawn when the page is written: its data can be redacted before."""

    name: str  # what it shows, as its caption and for those who do not see it
    draw: Callable[..., Any]  # one of `cachescope.figures`
    rows: tuple[Sequence[Any], ...]  # its arguments


@dataclass(frozen=True, slots=True)
class CardText:
    """A cause in words."""

    cause: int
    lookup: int  # the first of its misses
    title: str  # what is to be looked at, and how it changed where that is one thing
    cost: str  # seconds, what they were spent on, and misses
    where: str
    changes: tuple[tuple[str, str], ...]  # the fields that changed, and how, where the title does not say it
    lines: tuple[str, ...]  # what gives them their earlier values, to copy
    advice: str | None
    evidence: tuple[Block, ...] | None = None  # what is folded behind it; None where the pane Why has that


@dataclass(frozen=True, slots=True)
class WorkItems:
    """Cards, the costliest on top."""

    name: str
    cards: tuple[CardText, ...]
    start: int = 1  # the number of the first


@dataclass(frozen=True, slots=True)
class Toggle:
    """A field, or a context form with its fields, that can be left out of the keys."""

    name: str  # what it is left out by; empty for the fields that no form has
    label: str
    note: str = ""  # what is known about leaving it out
    saves: str = ""  # what leaving it out saves by itself
    varies: bool = False
    idle: bool = False  # one of those that are behind a line, because they save nothing
    # Once it is left out: keys that would become one and hold different code, so they would whatever else is left out;
    # and if it is the only one, which misses would hit, and why the others would not.
    warnings: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    # Of a form:
    section: str = ""
    is_form: bool = False
    fields: tuple[Toggle, ...] = ()


@dataclass(frozen=True, slots=True)
class Replayable:
    """The lookups as codes, which the page replays without what is unticked."""

    groups: tuple[Toggle, ...]  # the forms with their fields
    codes: JsonObject  # numbers without any text: nothing in them needs to be redacted


@dataclass(frozen=True, slots=True)
class Group:
    """A part of a section under a heading of its own."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that open on demand."""

    title: str
    blocks: tuple[Block, ...]


Block = Line | Numbers | Diff | Table | Drawing | WorkItems | Replayable | Group | Fold


@dataclass(frozen=True, slots=True)
class Section:
    """One question: its heading, a sentence that explains the content, and the answer."""

    anchor: str
    title: str
    sentence: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The whole report: the first section is the answer, and the others open on demand."""

    title: str
    headline: str
    about: str
    sections: tuple[Section, ...]


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


def shortened(text: str, limit: int, *, keeps_blanks: bool = False) -> str:
    r"""A text on one line, of at most about `limit` characters, control characters made visible, blanks in a row one unless they are kept.

    Examples
    --------
    >>> shortened("a\n  b\x1b", 10)
    'a b\\x1b'
    >>> shortened("x" * 20_000, 5)
    'xxxx… (20.0 kB)'
    """
    # Cut first: a value may be a megabyte.
    shown = harmless(text[: 4 * limit])
    parts = filter(None, map(str.strip, shown.splitlines())) if keeps_blanks else shown.split()
    line = " ".join(parts)
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
    shown = [one for one in columns if not one.is_optional or one.has_values(kept)]
    heads = tuple(Head(one.title, one.kind) for one in shown)
    return Table(name, heads, tuple(tuple(one.cell(row) for one in shown) for row in kept), note)


def hidden(page: T, redaction: Hiding) -> T:
    """The same blocks, or page, with stand-ins; equal texts get equal ones, in figures and tables alike."""
    if isinstance(page, str):
        return redaction(page, "")  # type: ignore[no-any-return]
    if isinstance(page, tuple | list):
        return type(page)(hidden(item, redaction) for item in page)
    if isinstance(page, Drawing):
        rows = tuple([_HiddenRow(row, redaction) for row in one] for one in page.rows)
        return replace(page, name=redaction(page.name, ""), rows=rows)
    if is_dataclass(page) and not isinstance(page, type):
        values = {field.name: getattr(page, field.name) for field in fields(page)}
        made = {name: value if name in _OURS else hidden(value, redaction) for name, value in values.items()}
        return type(page)(**made)
    return page


class _HiddenRow:
    """A row with stand-ins in what a figure reads of it."""

    def __init__(self, row: Any, redaction: Hiding) -> None:
        self._row, self._redaction = row, redaction

    def __getattr__(self, name: str) -> Any:
        return self._redaction(getattr(self._row, name), name)
