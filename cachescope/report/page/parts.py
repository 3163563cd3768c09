"""The parts of a page: plain data without HTML. Texts are whole here, within bounds; they are shortened when shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal

import pandas as pd

from cachescope.json_types import JsonObject
from cachescope.report.layout import Line
from cachescope.report.page.toggle_texts import NOTHING_TOLD, Alone
from cachescope.report.worklist import ChangeText

# Nobody reads more of a text in a page; a value in a log can be a megabyte.
LONGEST: Final = 20_000


@dataclass(frozen=True, slots=True)
class Sorted:
    """A cell that shows a text and is sorted by a number."""

    text: str
    order: float


Cell = str | int | float | Sorted | None


Kind = Literal["text", "word", "code", "number", "name", "long"]
"""``word`` stays on one line, ``code`` is code, ``long`` opens if it is long, ``name`` is a number that names something."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column of a table."""

    title: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its cells: a field of the rows, or what is made of a row.

    An optional one is left out of a table in which it has no value.
    """

    title: str
    kind: Kind
    of: str | Callable[[Any], Cell]
    is_optional: bool = False

    def cells(self, rows: Iterable[Any]) -> list[Cell]:
        """The cells of some rows."""
        return list(map(attrgetter(self.of) if isinstance(self.of, str) else self.of, rows))


@dataclass(frozen=True, slots=True)
class Table:
    """A table that can be sorted and searched."""

    name: str  # the items it lists; its caption
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""  # on what was cut; empty if nothing was


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str
    kind: Literal["plain", "strong", "faint", "warn"] = "plain"


@dataclass(frozen=True, slots=True)
class Items:
    """A list of sentences."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Numbers:
    """Large numbers side by side: label, number, and what it consists of."""

    cells: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines laid out as in the other reports."""

    lines: tuple[Line, ...]


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
    frames: tuple[pd.DataFrame, ...]  # its arguments


@dataclass(frozen=True, slots=True)
class WorkItem:
    """An item of a worklist."""

    title: str  # what is to be looked at, what it cost, and where it struck
    cost: str
    where: str
    share: float | None  # its share of the time lost, drawn as a bar
    # What changed, and what to do about each; the field is empty where the title names it.
    changes: tuple[ChangeText, ...]
    advice: str | None  # what can be done
    anchor: str | None  # the group that explains it


@dataclass(frozen=True, slots=True)
class WorkItems:
    """A worklist, the costliest on top."""

    name: str
    items: tuple[WorkItem, ...]


@dataclass(frozen=True, slots=True)
class Toggle:
    """A field, or a context form with its fields, that can be left out of the keys."""

    # Its place among the fields or forms of the codes; None for the fields that no form has.
    place: int | None
    name: str
    note: str
    fields: tuple[Toggle, ...] = ()  # those of a form
    saves: str = ""  # what leaving it out saves by itself
    told: Alone = NOTHING_TOLD  # the text once it is left out


@dataclass(frozen=True, slots=True)
class Replayable:
    """The lookups as codes, which the page replays without what is unticked."""

    forms: tuple[Toggle, ...]
    codes: JsonObject  # numbers without any text: nothing in them needs to be redacted


@dataclass(frozen=True, slots=True)
class LookupTable:
    """Lookups that the page sorts, filters and explains."""

    frame: pd.DataFrame  # A row for each; see `cachescope.report.page.lookups`
    note: str = ""  # the note on what was cut; empty if nothing was


@dataclass(frozen=True, slots=True)
class Group:
    """A part of a section under a heading of its own."""

    anchor: str
    title: str
    parts: tuple[Part, ...]


Part = Text | Items | Numbers | Lines | Diff | Table | Drawing | WorkItems | Replayable | LookupTable | Group


@dataclass(frozen=True, slots=True)
class Section:
    """One question: its heading, a sentence that explains the content, and the answer."""

    anchor: str
    title: str
    sentence: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The whole report."""

    title: str
    headline: str
    about: str
    sections: tuple[Section, ...]
