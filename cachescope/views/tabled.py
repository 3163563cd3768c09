"""A figure with the rows it is drawn from: a button below it shows them as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ipywidgets
import pandas as pd
from traitlets.utils.bunch import Bunch

from cachescope.views.controls import Pane
from cachescope.views.frame_rows import FrameRows
from cachescope.views.plot import Plot
from cachescope.views.table import Head, Table
from cachescope.wording import duration, file_size, percent

_SHOW: Final = "Show as a table"
_TEXTS: Final[dict[str, Callable[[Any], str]]] = {"_ns": duration, "_bytes": file_size, "_rate": percent}
_UNITS: Final = ("_ns", "_bytes")


class Tabled(Pane):
    """A figure and, once it is asked for, its table.

    Parameters
    ----------
    plot : Plot
    frame : callable
        Returns the rows that the figure is drawn from.
    """

    def __init__(self, plot: Plot, frame: Callable[[], pd.DataFrame]) -> None:
        self._plot, self._frame = plot, frame
        self.table: Table | None = None
        self.show = ipywidgets.ToggleButton(
            False,
            description=_SHOW,
            tooltip=f"The rows of: {plot.label}",
            layout=ipywidgets.Layout(width="auto"),
            _dom_classes=("cs-as-table",),
        )
        self.show.observe(self._toggled, "value")
        super().__init__([plot, self.show])

    def redraw(self) -> None:
        """Draw the figure again, and its table if it is shown."""
        self._plot.redraw()
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
            self.table = Table(_rows(self._frame()), self._plot.label, page_size=20)
        self.children = [self._plot, self.show, *([self.table] if self.table is not None else [])]


def _rows(frame: pd.DataFrame) -> FrameRows:
    numbered = frame.reset_index(drop=True)
    numbered.insert(0, "row", range(1, len(frame) + 1))
    heads = [_head(name, numbered[name]) for name in numbered.columns]
    return FrameRows(numbered, heads, {head.name: _text_of(head.name) for head in heads})


def _head(name: str, column: pd.Series[Any]) -> Head:
    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    unit = next((unit for unit in _UNITS if name.endswith(unit)), "")
    label = name.removesuffix(unit).replace("_", " ")
    return Head(name, f"{label[0].upper()}{label[1:]}", number=is_number)


def _text_of(name: str) -> Callable[[Any], str]:
    return next((text for unit, text in _TEXTS.items() if name.endswith(unit)), _text)


def _text(value: Any) -> str:
    if isinstance(value, pd.Timestamp):
        return f"{value:%Y-%m-%d %H:%M:%S.%f}"[:-3]
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
