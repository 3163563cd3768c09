"""Tables of the page and of the explorer: their columns, and cells that show a text and are sorted and copied by a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

from cachescope.wording import duration, file_size, file_time, percent


@dataclass(frozen=True, slots=True)
class Sorted:
    """A cell that shows a text, and is sorted and copied by a number: a share, or one with a unit."""

    text: str
    value: float
    unit: Literal["", "ns", "B", "UTC"] = ""
    """``UTC`` is a moment, in nanoseconds since 1970."""


Cell = str | int | float | Sorted | None


def cell_text(cell: Cell) -> str:
    """What a cell shows."""
    return "–" if cell is None else cell.text if isinstance(cell, Sorted) else str(cell)


Kind = Literal["text", "word", "code", "number", "name", "long", "key"]
"""``word`` stays on one line, ``code`` is code, ``long`` opens if it is long, ``name`` is a number that names something, ``key`` is cut at the edge."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its cells: a field of the rows, or what is made of a row.

    An optional one is left out of a table in which it has no value.
    """

    title: str
    kind: Kind
    of: str | Callable[[Any], Cell]
    is_optional: bool = False
    colours: Mapping[str, str] = field(default_factory=dict)
    """Of texts, the colour of a mark beside them."""

    @property
    def cell(self) -> Callable[[Any], Cell]:
        """What makes its cell of a row."""
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
