"""A table in the browser that holds one page of rows; the rest stays in the kernel, however much it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

import anywidget
import traitlets
from traitlets.utils.bunch import Bunch

from cachescope.json_types import JsonObject
from cachescope.wording import harmless

_HERE: Final = Path(__file__).parent
_CELL: Final = 300


@dataclass(frozen=True, slots=True)
class Head:
    """One column: its name, its heading and its layout: `wide` is wrapped, `fills` is cut at the edge."""

    name: str
    label: str
    number: bool = False
    wide: bool = False
    fills: bool = False
    sortable: bool = True


class Rows(Protocol):
    """The source of a table's pages."""

    @property
    def heads(self) -> Sequence[Head]:
        """The columns."""

    def order(self, column: str, ascending: bool) -> None:
        """Sort the rows."""

    def __len__(self) -> int:
        """The number of rows."""

    def page(self, first: int, count: int) -> list[tuple[int, list[str]]]:
        """Some rows, each with its id and its cells as text."""


class Table(anywidget.AnyWidget):
    """Rows in pages. A row that is clicked, or on which Enter is pressed, is `chosen`.

    Parameters
    ----------
    rows : Rows
    label : str
        What the rows are, for screen readers.
    empty : str
        The text shown if there are no rows.
    on_choose : callable, optional
        Called with the id of the row.
    """

    _esm = _HERE / "table.js"
    _css = _HERE / "style.css"

    label = traitlets.Unicode().tag(sync=True)
    columns: Any = traitlets.List().tag(sync=True)
    rows: Any = traitlets.List().tag(sync=True)
    ids: Any = traitlets.List().tag(sync=True)
    total = traitlets.Int(0).tag(sync=True)
    page = traitlets.Int(0).tag(sync=True)
    page_size = traitlets.Int(50).tag(sync=True)
    sort = traitlets.List(["", True]).tag(sync=True)
    selected = traitlets.Int(None, allow_none=True).tag(sync=True)
    chosen: Any = traitlets.List().tag(sync=True)
    """The id of the row, and a number that makes choosing the same row again a change."""
    empty = traitlets.Unicode("nothing to show").tag(sync=True)

    def __init__(
        self,
        rows: Rows,
        label: str,
        empty: str = "nothing to show",
        on_choose: Callable[[int], None] | None = None,
        page_size: int = 50,
    ) -> None:
        self._source = rows
        super().__init__(label=label, empty=empty, page_size=page_size, columns=_columns(rows))
        self.observe(self._sorted, "sort")
        self.observe(self._turned, "page")
        if on_choose is not None:
            self.observe(lambda change: on_choose(change["new"][0]), "chosen")
        self.refresh()

    def show(self, rows: Rows) -> None:
        """Show other rows."""
        self._source = rows
        with self.hold_sync():
            self.columns = _columns(rows)
            self.page = 0
            self.refresh()

    def refresh(self) -> None:
        """Fetch the page again after its data changed."""
        with self.hold_sync():
            self.total = len(self._source)
            self.page = min(self.page, max(0, (self.total - 1) // self.page_size))
            found = self._source.page(self.page * self.page_size, self.page_size)
            self.ids = [row for row, _ in found]
            self.rows = [[_cell(text) for text in cells] for _, cells in found]

    def _sorted(self, change: Bunch) -> None:
        column, ascending = change["new"]
        self._source.order(column, ascending)
        self.page = 0
        self.refresh()

    def _turned(self, change: Bunch) -> None:
        self.refresh()

    def __repr__(self) -> str:
        return f"Table({self.label}: {self.total} rows)"


class ListedRows:
    """Rows few enough to keep as text."""

    def __init__(self, heads: Sequence[Head], rows: Sequence[tuple[int, list[Any]]]) -> None:
        self.heads = [replace(h, sortable=h.sortable and len(rows) > 1) for h in heads]
        self._rows = list(rows)

    def order(self, column: str, ascending: bool) -> None:
        """Sort by value, not by printed text: a cell may be ``Shown``."""
        at = next((i for i, head in enumerate(self.heads) if head.name == column), None)
        if at is None:
            return
        known = [row for row in self._rows if row[1][at] is not None]
        missing = [row for row in self._rows if row[1][at] is None]
        known.sort(key=lambda row: _sort_key(row[1][at]), reverse=not ascending)
        self._rows = known + missing

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._rows)

    def page(self, first: int, count: int) -> list[tuple[int, list[str]]]:
        """Some rows, each with its id and its cells as text."""
        return [(row, [_text(cell) for cell in cells]) for row, cells in self._rows[first : first + count]]


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell that is sorted by another value than its text."""

    text: str
    value: float


def _sort_key(cell: Any) -> tuple[int, Any]:
    if isinstance(cell, Shown):
        return 0, cell.value
    return (0, cell) if isinstance(cell, (int, float)) else (1, str(cell))


def _text(cell: Any) -> str:
    if cell is None:
        return "–"
    return cell.text if isinstance(cell, Shown) else str(cell)


def _cell(text: str) -> str:
    flat = harmless(" ".join(text[: 2 * _CELL].split()))
    return flat if len(text) <= _CELL else f"{flat[:_CELL]}…"


def _columns(rows: Rows) -> list[JsonObject]:
    return [asdict(h) for h in rows.heads]
