"""The rows of a frame as plain dictionaries, each made when it is asked for: a fleet has a million lookups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.columns import plain_columns

Row = dict[str, Any]
Places = npt.NDArray[np.intp]


class Rows(Mapping[int, Row]):
    """Rows by their id; missing values None, times in nanoseconds.

    Parameters
    ----------
    frame : DataFrame
    key : str
        The column with the ids.
    """

    def __init__(self, frame: pd.DataFrame, key: str) -> None:
        self.frame = frame
        self._ids = frame[key].to_numpy(dtype=np.int64)
        self._order = np.argsort(self._ids, kind="stable")
        self._sorted = self._ids[self._order]

    def __getitem__(self, number: int) -> Row:
        at = self.place(number)
        return {name: values[at] for name, values in self._columns.items()}

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids.tolist())

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, number: object) -> bool:
        try:
            self.place(number)
        except KeyError:
            return False
        return True

    def place(self, number: object) -> int:
        """Where in the frame the row of an id is.

        Raises
        ------
        KeyError
            If there is no such id.
        """
        if isinstance(number, (int, np.integer)):
            at = int(self._sorted.searchsorted(number))
            if at < len(self._sorted) and self._sorted[at] == number:
                return int(self._order[at])
        raise KeyError(number)

    def at(self, places: Places) -> Sequence[Row]:
        """The rows at some places, each made when it is looked at."""
        return _Chosen(self._columns, places)

    @cached_property
    def _columns(self) -> dict[str, list[Any]]:
        return plain_columns(self.frame)


class _Chosen(Sequence[Row]):
    def __init__(self, columns: dict[str, list[Any]], places: Places) -> None:
        self._columns = columns
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        if isinstance(at, slice):
            return _Chosen(self._columns, self._places[at])
        place = self._places[at]
        return {name: values[place] for name, values in self._columns.items()}
