"""The blocks that every answer consists of: plain data, rendered by terminal, notebook, page, panes and Markdown.

The columns of a table make cells that show a text, and are sorted and copied by a value.
A line of text is one (`layout.Line`). Texts are whole here, within bounds; they are shortened when shown. What leaves
something out says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, TypeVar

from cachescope.json_types import JsonObject
from cachescope.report.layout import Line
from cachescope.wording import and_more, duration, file_size, file_time, harmless, percent

T = TypeVar("T")
Hiding = Callable[[Any, str], Any]

# Words of the page itself, on which its style and its links depend. None of them is hidden.
_OURS: Final = frozenset({"anchor", "kind", "style", "unit"})

# Nobody reads more of a text. A value in a log may be a megabyte.
LONGEST: Final = 20_000
MOST_ROWS: Final = 300
_DIFF_LINE: Final = 1000


class Sorted(NamedTuple):
    """A cell that shows a text, but is sorted and copied by a number: a share, or one with a unit."""

    text: str
    value: float
    unit: Literal["", "ns", "B", "UTC"] = ""
    """``UTC`` is a moment, in nanoseconds since 1970."""


Cell = str | int | float | Sorted | None


def cell_text(cell: Cell) -> str:
    """The text that a cell shows."""
    return "–" if cell is None else cell.text if isinstance(cell, Sorted) else str(cell)


Kind = Literal["text", "word", "code", "number", "name", "long", "whole", "key"]
"""``word`` stays on one line, ``code`` is code, ``name`` is a number that names something, ``key`` is cut at the edge.

``long`` opens if it is long; so does ``whole``, which a terminal leaves out.
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its cells, a field of the rows or made from a row; an optional one is left out if it has no value."""

    title: str
    kind: Kind
    of: str | Callable[[Any], Cell]
    is_optional: bool = False
    colours: Mapping[str, str] = field(default_factory=dict)
    """For texts, the colour of a mark beside them."""

    @property
    def cell(self) -> Callable[[Any], Cell]:
        """Makes the cell of a row."""
        return attrgetter(self.of) if isinstance(self.of, str) else self.of

    def has_values(self, rows: Iterable[Any]) -> bool:
        """Whether it has something to show."""
        return any(cell not in (None, "") for cell in map(self.cell, rows))


def timed(ns: int | None) -> Sorted | None:
    """A time as people write it."""
    return None if ns is None else Sorted(duration(ns), ns, "ns")


def sized(count: int | None) -> Sorted | None:
    """A size as people write it."""
    return None if count is None else Sorted(file_size(count), count, "B")


def shared(share: float | None) -> Sorted | None:
    """A share as people write it."""
    return None if share is None else Sorted(percent(share), share)


def written(ns: int | None) -> Sorted | None:
    """A moment as people write it."""
    return Sorted(file_time(ns), ns, "UTC") if ns else None


class Head(NamedTuple):
    """The head of a column of a table."""

    title: str
    kind: Kind = "text"


class Table(NamedTuple):
    """A table; a page sorts and searches it."""

    name: str  # the items it lists; its caption
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""  # a note on what was cut; empty if nothing was


class Numbers(NamedTuple):
    """Large numbers side by side: label, number, and what it consists of."""

    cells: tuple[tuple[str, str, str], ...]


class Diff(NamedTuple):
    """The lines of a unified diff."""

    name: str
    lines: tuple[str, ...]
    note: str = ""


class Drawing(NamedTuple):
    """A figure that is drawn when the page is written, so that its data can be redacted before."""

    name: str  # what it shows: its caption, also for those who do not see it
    draw: Callable[..., Any]  # one of `cachescope.figures`
    rows: tuple[Sequence[Any], ...]  # its arguments


class CardText(NamedTuple):
    """A cause in words."""

    cause: int
    lookup: int  # the first of its misses
    title: str  # what to look at, and how it changed if that is one thing
    cost: str  # seconds, what they were spent on, and misses
    where: str
    changes: tuple[tuple[str, str], ...]  # the changed fields, if the title does not say how
    # For forms that cannot fold the evidence behind the card: the change of its code, and the evidence in short.
    code: Diff | None
    told: tuple[str, ...]
    # How to give them their earlier values: what to do where, and the line to copy.
    lines: tuple[tuple[str, str], ...]
    advice: str | None
    evidence: tuple[Block, ...] | None = None  # what is folded behind it; None if the pane Why has that


class WorkItems(NamedTuple):
    """Cards, the costliest on top."""

    name: str
    cards: tuple[CardText, ...]
    start: int = 1  # the number of the first


class Toggle(NamedTuple):
    """A field, or a context form with its fields, that can be left out of the keys."""

    name: str  # the name by which it is left out; empty for fields of no form
    label: str
    note: str = ""  # what is known about leaving it out
    saves: str = ""  # what leaving it out saves by itself
    varies: bool = False
    idle: bool = False  # whether it is folded away, because it saves nothing
    # If it is left out: the keys that would become one though they hold different code, whatever else is left out. If only it is
    # left out: the misses that would hit, and why the others would not.
    warnings: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    # Of a form:
    section: str = ""
    is_form: bool = False
    fields: tuple[Toggle, ...] = ()

    def as_json(self) -> JsonObject:
        """Its data for the page's script."""
        return self._asdict() | {"fields": [one.as_json() for one in self.fields]}


class Replayable(NamedTuple):
    """The lookups as codes, which the page replays without what is unticked."""

    groups: tuple[Toggle, ...]  # the forms with their fields
    codes: JsonObject  # numbers without any text: nothing in them needs to be redacted


class Group(NamedTuple):
    """Blocks under a heading of their own."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]
    is_folded: bool = False  # whether they open on demand


Block = Line | Numbers | Diff | Table | Drawing | WorkItems | Replayable | Group


class Section(NamedTuple):
    """One question: its heading, a sentence that explains the content, and the answer."""

    anchor: str
    title: str
    sentence: str
    blocks: tuple[Block, ...]


class Page(NamedTuple):
    """The whole report: the first section is the answer, and the others open on demand."""

    title: str
    headline: str
    about: str
    sections: tuple[Section, ...]


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


def diff_lines(diff: str, most: int = 120) -> tuple[tuple[str, ...], str]:
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
    kept, note = rows[:most], ""
    if len(kept) < len(rows):
        note = f"The first {len(kept):,} of {len(rows):,} {what}; {all_of_them} has all."
    shown = [one for one in columns if not one.is_optional or one.has_values(kept)]
    heads = tuple(Head(one.title, one.kind) for one in shown)
    return Table(name, heads, tuple(tuple(one.cell(row) for one in shown) for row in kept), note)


def hidden(page: T, redaction: Hiding) -> T:
    """The same blocks, or page, with stand-ins. Equal texts get equal stand-ins, in figures as in tables."""
    if isinstance(page, str):
        return redaction(page, "")  # type: ignore[no-any-return]
    if isinstance(page, Drawing):
        rows = tuple([_HiddenRow(row, redaction) for row in one] for one in page.rows)
        return page._replace(name=redaction(page.name, ""), rows=rows)
    if isinstance(page, tuple) and hasattr(page, "_asdict"):
        values = page._asdict().items()
        return type(page)(
            **{name: value if name in _OURS else hidden(value, redaction) for name, value in values}
        )
    return type(page)(hidden(item, redaction) for item in page) if isinstance(page, tuple | list) else page


class _HiddenRow:
    """A row with stand-ins in the fields that a figure reads."""

    def __init__(self, row: Any, redaction: Hiding) -> None:
        self._row, self._redaction = row, redaction

    def __getattr__(self, name: str) -> Any:
        return self._redaction(getattr(self._row, name), name)
