"""What was read, of one grain: between the rooms go its rows, and its frame is made for whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import pandas as pd

SomeRow = TypeVar("SomeRow")


class Table(Generic[SomeRow]):
    """The rows of one grain, and their frame: each is made of the other when it is first asked for.

    Parameters
    ----------
    kind : type
        The class of the rows.
    rows : list, optional
        The rows.
    frame : DataFrame, optional
        The frame, where there are no rows yet, as of a saved scope.
    """

    def __init__(
        self, kind: type[SomeRow], rows: list[SomeRow] | None = None, *, frame: pd.DataFrame | None = None
    ) -> None:
        self.kind = kind
        self._rows = rows
        self._frame = frame

    @property
    def rows(self) -> list[SomeRow]:
        """The rows; nobody changes them."""
        if self._rows is None:
            from cachescope.columns import rows_of

            assert self._frame is not None
            self._rows = rows_of(self._frame, self.kind)  # type: ignore[type-var]
        return self._rows

    @property
    def frame(self) -> pd.DataFrame:
        """The frame; nobody changes it."""
        if self._frame is None:
            from cachescope.columns import frame_of

            self._frame = frame_of(self.rows, self.kind)
        return self._frame

    def copied(self) -> pd.DataFrame:
        """A copy of the frame, which its user may change."""
        from cachescope.columns import DEEP

        return self.frame.copy(deep=DEEP)

    def __len__(self) -> int:
        return len(self.rows if self._frame is None else self._frame)


def tabled(kind: type[SomeRow], rows: Callable[[Any], list[SomeRow]]) -> cached_property[Table[SomeRow]]:
    """A property that is the table of rows of a class, worked out when it is first asked for."""
    return cached_property(lambda one: Table(kind, rows(one)))


class Copied(property):
    """A frame that its user may change."""

    if TYPE_CHECKING:

        def __get__(self, instance: Any, owner: type | None = None) -> pd.DataFrame: ...  # type: ignore[override]


def copied(table: Callable[[Any], Table[Any] | None], meaning: str) -> Copied:
    """A property that is a copy of the frame of a table, None where there is none, and its docstring."""

    def frame(self: Any) -> pd.DataFrame | None:
        found = table(self)
        return None if found is None else found.copied()

    return Copied(frame, doc=meaning)
