"""A figure in the browser that is made when it is seen, reports clicks, and shows its rows as a table. plotly.js would take seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import ipywidgets
import pandas as pd
import traitlets
from traitlets.utils.bunch import Bunch

from cachescope.columns import frame_of, plain_columns
from cachescope.figures.canvas import empty
from cachescope.figures.picture import Picture, drawing_js
from cachescope.report.blocks import Block, Cell, Column, Drawing, Group, Sorted, shared, sized, timed
from cachescope.views.controls import STYLE, Control, Pane, heading, markup, script
from cachescope.views.table import ListedRows, Table

_TEXTS: Final[dict[str, Callable[[Any], Cell]]] = {"_ns": timed, "_bytes": sized, "_rate": shared}


class Plot(Control):
    """A figure, in the theme of the page."""

    _esm = drawing_js() + script("make.js", "plot.js")
    _css = STYLE

    label = traitlets.Unicode().tag(sync=True)
    figure = traitlets.Unicode("").tag(sync=True)
    seen = traitlets.Bool(False).tag(sync=True)
    clicked = traitlets.Dict().tag(sync=True)
    zoomed = traitlets.List(traitlets.Float()).tag(sync=True)
    """The visible range of the first axis; empty if all of it is visible."""

    def __init__(
        self, make: Callable[[], Picture], label: str, on_click: Callable[[Any], None] | None = None
    ) -> None:
        self._make = make
        super().__init__(label=label)
        self.observe(lambda change: self.redraw(), "seen")
        if on_click is not None:
            self.observe(lambda change: on_click(change["new"].get("data")), "clicked")

    def redraw(self) -> None:
        """Make the figure again if it is seen."""
        if not self.seen:
            return
        try:
            drawn = self._make().drawn()
        except Exception as error:  # whatever it is, the user must see it, and the rest of the pane
            drawn = empty(f"This figure could not be drawn: {type(error).__name__}: {error}").drawn()
        self.figure = json.dumps(drawn)

    def __repr__(self) -> str:
        return f"Plot({self.label})"


def first_number(data: object) -> int | None:
    """The first of a point's custom data, if it is a whole number."""
    first = data[0] if isinstance(data, list) and data else data
    return int(first) if isinstance(first, (int, float)) else None


class Tabled(Pane):
    """A figure as in `Plot`, with its table once somebody asks for it."""

    def __init__(
        self,
        make: Callable[[], Picture],
        label: str,
        frame: Callable[[], pd.DataFrame],
        on_click: Callable[[Any], None] | None = None,
    ) -> None:
        self.plot, self._frame = Plot(make, label, on_click), frame
        self.table: Table | None = None
        told = {"description": "Show as a table", "tooltip": f"The rows of: {label}"}
        look = {"layout": ipywidgets.Layout(width="auto"), "_dom_classes": ("cs-as-table",)}
        self.show = ipywidgets.ToggleButton(False, **told, **look)
        self.show.observe(self._toggled, "value")
        super().__init__(self.plot, self.show)

    def redraw(self) -> None:
        """Draw the figure again, and its table if it is shown."""
        self.plot.redraw()
        self.list_again()

    def list_again(self) -> None:
        """Update the rows of the table, if it is shown."""
        if self.table is not None:
            self.table.show(_rows(self._frame()))

    def _toggled(self, change: Bunch) -> None:
        if self.table is not None:
            self.table.close()
            self.table = None
        if change["new"]:
            self.table = Table(_rows(self._frame()), self.plot.label, page_size=20)
        self.children = [self.plot, self.show, *([self.table] if self.table is not None else [])]


def pictured(blocks: Iterable[Block]) -> Iterator[ipywidgets.Widget]:
    """Blocks below each other, in which figures have their rows as tables."""
    for kind, group in groupby(blocks, type):
        if kind not in (Drawing, Group):
            yield markup(*group)
            continue
        for block in group:
            if isinstance(block, Group):
                yield from (markup(block._replace(blocks=())), *pictured(block.blocks))
            elif isinstance(block, Drawing):
                rows = block.rows[0]
                frame = partial(frame_of, rows, type(rows[0]))
                figure = Tabled(partial(block.draw, *block.rows), block.name, frame)
                yield Pane(heading(block.name), figure)


def _rows(frame: pd.DataFrame) -> ListedRows:
    columns = [_column(at, name, frame[name]) for at, name in enumerate(map(str, frame), 1)]
    rows = enumerate(zip(*plain_columns(frame).values(), strict=True), 1)
    return ListedRows([Column("Row", "name", itemgetter(0)), *columns], [(n, (n, *row)) for n, row in rows])


def _column(at: int, name: str, values: pd.Series[Any]) -> Column:
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    text = next((text for unit, text in _TEXTS.items() if name.endswith(unit)), _text)
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        text = _moment
    label = name.removesuffix("_ns").removesuffix("_bytes").replace("_", " ")
    title = f"{label[0].upper()}{label[1:]}"
    return Column(title, "number" if is_number else "word", lambda row: text(row[at]))


def _moment(ns: int | None) -> Cell:
    if ns is None:
        return None
    return Sorted(f"{pd.Timestamp(ns, tz='UTC'):%Y-%m-%d %H:%M:%S.%f}"[:-3], ns, "UTC")


def _text(value: Any) -> Cell:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return Sorted(f"{value:.4g}", value)
    return value if value is None or isinstance(value, (int, str)) else str(value)
