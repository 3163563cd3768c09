"""A table in the browser that holds one page of rows; the rest stays in the kernel, however much it is, and can be copied."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeVar

import pandas as pd
import traitlets
from traitlets.utils.bunch import Bunch

from cachescope.json_types import JsonObject
from cachescope.report.blocks import Cell, Column, Sorted, cell_text
from cachescope.views.controls import STYLE, Control, script
from cachescope.wording import harmless

SEPARATORS: Final = {"tsv": "\t", "csv": ","}
# A spreadsheet takes a cell that begins so for a formula and runs it.
_FORMULA: Final = ("=", "+", "-", "@")

_CELL: Final = 300

SomeRow = TypeVar("SomeRow")
Whole = tuple[list[str], Iterable[Sequence[Any]]]
"""Names of columns, and the rows below them."""


def delimited(names: Sequence[str], rows: Iterable[Sequence[object]], separator: str) -> str:
    r"""The names and the rows, one a line. Texts come from logs: none is a formula, none steers a terminal.

    Examples
    --------
    >>> delimited(["lookup", "why"], [[0, "=1+1"], [1, None], [-2, "a\tb"]], ",")
    "lookup,why\n0,'=1+1\n1,\n-2,a b\n"
    """
    written = io.StringIO()
    writer = csv.writer(written, delimiter=separator, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_delimited_cell(value) for value in row] for row in rows)
    return written.getvalue()


def _delimited_cell(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    # One line and one cell wherever it is pasted.
    text = " ".join(harmless(str(value)).split())
    return f"'{text}" if text.startswith(_FORMULA) else text


class Table(Control):
    """Rows in pages. A row that is clicked, or on which Enter is pressed, is `chosen`.

    The page asks for the rows to be copied, and gets them as text: only the kernel has all. The `label` says what the
    rows are to screen readers; `empty` is shown where there are none, and `on_choose` is called with the id of a row.
    """

    _esm = script("make.js", "column_summaries.js", "clipboard.js", "focus.js", "table.js")
    _css = STYLE

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
    opens = traitlets.Bool(False).tag(sync=True)
    """Whether choosing a row does something."""
    folds: Any = traitlets.List().tag(sync=True)
    folded: Any = traitlets.List().tag(sync=True)
    """The id of the row to open or close, and a number that makes it a change."""
    summaries: Any = traitlets.List().tag(sync=True)
    empty = traitlets.Unicode("nothing to show").tag(sync=True)

    def __init__(
        self,
        rows: ListedRows,
        label: str,
        empty: str = "nothing to show",
        on_choose: Callable[[int], None] | None = None,
        page_size: int = 50,
    ) -> None:
        self._source = rows
        super().__init__(label=label, empty=empty, page_size=page_size, columns=rows.heads)
        self.observe(self._sorted, "sort")
        self.observe(lambda change: self.refresh(), "page")
        self.observe(lambda change: self._fold(change["new"][0]), "folded")
        self.on_msg(self._copy)
        if on_choose is not None:
            self.opens = True
            self.observe(lambda change: on_choose(change["new"][0]), "chosen")
        self.refresh()

    def show(self, rows: ListedRows) -> None:
        """Show other rows."""
        self._source = rows
        with self.hold_sync():
            self.columns = rows.heads
            self.page = 0
            self.refresh()

    def refresh(self) -> None:
        """Fetch the page again after its data changed."""
        with self.hold_sync():
            self.total = len(self._source)
            self.page = min(self.page, max(0, (self.total - 1) // self.page_size))
            first = self.page * self.page_size
            found = self._source.page(first, self.page_size)
            self.folds = self._source.folds(first, self.page_size)
            self.summaries = self._source.summaries()
            self.ids = [row for row, _ in found]
            self.rows = [[_cell(text) for text in cells] for _, cells in found]

    def _sorted(self, change: Bunch) -> None:
        column, ascending = change["new"]
        self._source.order(column, ascending)
        self.page = 0
        self.refresh()

    def _fold(self, row: int) -> None:
        self._source.fold(row)
        self.refresh()

    def _copy(self, _: object, message: JsonObject, __: object) -> None:
        """Answer with the rows of the page, or all of them, as text."""
        separator = SEPARATORS.get(str(message.get("copy")))
        if separator is None:
            return
        bounds = () if message.get("all") else (self.page * self.page_size, self.page_size)
        text = delimited(*self._source.whole(*bounds), separator)
        self.send({"copied": message["copy"]}, buffers=[text.encode("utf-8", "replace")])

    def __repr__(self) -> str:
        return f"Table({self.label}: {self.total} rows)"


class ListedRows:
    """Rows, each with its id; a cell is made when it is shown, or when its column is sorted. Columns have the given names, or those of their titles."""

    missing = cell_text(None)
    """What a cell without a value shows."""

    def __init__(
        self, columns: Sequence[Column] | Mapping[str, Column], rows: Sequence[tuple[int, object]]
    ) -> None:
        values = [row for _, row in rows]
        if not isinstance(columns, Mapping):
            columns = {one.title.lower().replace(" ", "_"): one for one in columns}
        self.columns = {
            name: one for name, one in columns.items() if not one.is_optional or one.has_values(values)
        }
        self._rows: Sequence[tuple[int, Any]] = rows
        self._is_sortable = len(rows) > 1

    @property
    def heads(self) -> list[JsonObject]:
        """The columns as the page lays them out: `wide` ones are wrapped, one that `fills` the row is cut at its edge."""
        return [
            {
                "name": name,
                "label": one.title,
                "number": one.kind in ("number", "name"),
                "wide": one.kind in ("text", "long", "whole"),
                "fills": one.kind == "key",
                "sortable": self._is_sortable,
                "colours": one.colours,
            }
            for name, one in self.columns.items()
        ]

    def order(self, column: str, ascending: bool) -> None:
        """Sort by value, not by printed text; rows without a value come last."""
        if column in self.columns:
            cell = self.columns[column].cell
            self._rows = ordered(self._rows, lambda row: _sort_key(cell(row[1])), ascending)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._rows)

    def page(self, first: int, count: int) -> list[tuple[int, list[str]]]:
        """Some rows, each with its id and its cells as text."""
        cells = [one.cell for one in self.columns.values()]
        return [
            (number, [self.missing if (cell := of(row)) is None else cell_text(cell) for of in cells])
            for number, row in self._rows[first : first + count]
        ]

    def folds(self, first: int, count: int) -> list[JsonObject]:
        """Of the rows of a page the level from 1, how many are folded below, and whether these are seen; nothing where none is folded."""
        return []

    def fold(self, row: int) -> None:
        """Open what is below a row, or close it."""

    def summaries(self) -> list[JsonObject | None]:
        """What each column holds, where that is shown."""
        return []

    def whole(self, first: int = 0, count: int | None = None) -> Whole:
        """The headings with their units, and the values of the cells; without `count` of all rows."""
        rows = self._rows[first : None if count is None else first + count]
        columns = self.columns.values()
        values = ([_value(one.cell(row)) for one in columns] for _, row in rows)
        return list(map(self._heading, columns)), values

    def _heading(self, column: Column) -> str:
        # A column has one unit, if any.
        cell = next((cell for _, row in self._rows if (cell := column.cell(row)) is not None), None)
        unit = cell.unit if isinstance(cell, Sorted) and cell.unit != "UTC" else ""
        return f"{column.title} ({unit})" if unit else column.title


def ordered(rows: Iterable[SomeRow], value_of: Callable[[SomeRow], Any], ascending: bool) -> list[SomeRow]:
    """Rows sorted by a value of each, in their order where it is the same; those without one come last either way."""
    valued = [(value_of(row), row) for row in rows]
    known = [one for one in valued if one[0] is not None]
    known.sort(key=itemgetter(0), reverse=not ascending)
    return [*(row for _, row in known), *(row for value, row in valued if value is None)]


def _sort_key(cell: Cell) -> tuple[int, Any] | None:
    value = cell.value if isinstance(cell, Sorted) else cell
    return None if value is None else (0, value) if isinstance(value, (int, float)) else (1, str(value))


def _value(cell: Cell) -> Any:
    if not isinstance(cell, Sorted):
        return cell
    return pd.Timestamp(cell.value, tz="UTC") if cell.unit == "UTC" else cell.value


def _cell(text: str) -> str:
    flat = harmless(" ".join(text[: 2 * _CELL].split()))
    return flat if len(text) <= _CELL else f"{flat[:_CELL]}…"
