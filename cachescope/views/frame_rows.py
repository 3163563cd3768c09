"""The rows of a frame for a table: only the page shown becomes text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from cachescope.columns import plain_columns
from cachescope.views.table import Head, Whole


class FrameRows:
    """Rows of a frame, sorted by its values and shown as text.

    Parameters
    ----------
    frame : DataFrame
        With a column for each head; the first is the id of the row.
    heads : sequence of Head
    texts : mapping of column to callable
        How to write a value if ``str`` is not enough. A missing value is a dash.
    """

    def __init__(
        self, frame: pd.DataFrame, heads: Sequence[Head], texts: Mapping[str, Callable[[Any], str]]
    ) -> None:
        self.heads = heads
        self._frame, self._texts = frame, texts

    def order(self, column: str, ascending: bool) -> None:
        """Sort by a column; rows without a value come last."""
        if column in self._frame:
            self._frame = self._frame.sort_values(column, ascending=ascending, kind="stable")

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._frame)

    def page(self, first: int, count: int) -> list[tuple[int, list[str]]]:
        """Some rows, each with its id and its cells as text."""
        names = [head.name for head in self.heads]
        rows = self._frame.iloc[first : first + count][names].astype(object)
        rows = rows.where(rows.notna(), None)
        return [
            (int(row[0]), [self._text(n, v) for n, v in zip(names, row, strict=True)])
            for row in rows.to_numpy()
        ]

    def whole(self, first: int = 0, count: int | None = None) -> Whole:
        """The columns of the frame and the values in them; without `count` of all rows."""
        rows = self._frame.iloc[first : None if count is None else first + count]
        return whole(rows, [head.name for head in self.heads])

    def _text(self, name: str, value: Any) -> str:
        if value is None:
            return "–"
        return self._texts.get(name, str)(value)


def whole(frame: pd.DataFrame, names: list[str]) -> Whole:
    """Some columns of a frame, to be copied."""
    return names, zip(*plain_columns(frame, names).values(), strict=True)
