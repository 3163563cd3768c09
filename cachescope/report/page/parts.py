"""The parts of a page: plain data without HTML. Texts are whole here, within bounds; they are shortened when shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Head:
    """A column of a table. ``word`` stays on one line, ``code`` is code, ``long`` opens if it is long.

    An optional one is left out of a table in which it has no value; ``name`` is a number that names something.
    """

    title: str
    kind: Literal["text", "word", "code", "number", "name", "long"] = "text"
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table that can be sorted and searched.

    Attributes
    ----------
    name : str
        The items it lists; its caption.
    note : str
        The note on what was cut; empty if nothing was.
    """

    name: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


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
    """A figure that is drawn when the page is written: its data can be redacted before.

    Attributes
    ----------
    name : str
        What it shows, as its caption and for those who do not see it.
    draw : function
        One of `cachescope.figures`.
    frames : tuple of DataFrame
        Its arguments.
    """

    name: str
    draw: Callable[..., Any]
    frames: tuple[pd.DataFrame, ...]


@dataclass(frozen=True, slots=True)
class WorkItem:
    """An item of a worklist.

    Attributes
    ----------
    title, cost, where : str
        What is to be looked at, what it cost, and where it struck.
    share : float or None
        Its share of the time lost, drawn as a bar.
    changes : tuple of ChangeText
        What changed, and what to do about each; the field is empty where the title names it.
    advice : str or None
        What can be done.
    anchor : str or None
        The group that explains it.
    """

    title: str
    cost: str
    where: str
    share: float | None
    changes: tuple[ChangeText, ...]
    advice: str | None
    anchor: str | None


@dataclass(frozen=True, slots=True)
class WorkItems:
    """A worklist, the costliest on top."""

    name: str
    items: tuple[WorkItem, ...]


@dataclass(frozen=True, slots=True)
class Toggle:
    """A field, or a context form with its fields, that can be left out of the keys.

    Attributes
    ----------
    place : int or None
        Its place among the fields or forms of the codes; None for the fields that no form has.
    name, note : str
    fields : tuple of Toggle
        Those of a form.
    saves : str
        What leaving it out saves by itself.
    told : Alone
        The text once it is left out.
    """

    place: int | None
    name: str
    note: str
    fields: tuple[Toggle, ...] = ()
    saves: str = ""
    told: Alone = NOTHING_TOLD


@dataclass(frozen=True, slots=True)
class Replayable:
    """The lookups as codes, which the page replays without what is unticked.

    Attributes
    ----------
    forms : tuple of Toggle
    codes : dict
        Numbers without any text: nothing in them needs to be redacted.
    """

    forms: tuple[Toggle, ...]
    codes: JsonObject


@dataclass(frozen=True, slots=True)
class LookupTable:
    """Lookups that the page sorts, filters and explains.

    Attributes
    ----------
    frame : DataFrame
        A row for each; see `cachescope.report.page.lookups`.
    note : str
        The note on what was cut; empty if nothing was.
    """

    frame: pd.DataFrame
    note: str = ""


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
