"""The rows of a frame as objects, each made when it is asked for: a fleet has a million lookups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.columns import plain_columns

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SomeRow = TypeVar("SomeRow", bound="DataclassInstance")
Places = npt.NDArray[np.intp]

# Rows that are turned into Python's values together, and how many such blocks are kept.
_AT_ONCE: Final = 4096
_BLOCKS_AT_HAND: Final = 64


class Rows(Mapping[int, SomeRow]):
    """Rows by their id; missing values None, times in nanoseconds.

    Parameters
    ----------
    frame : DataFrame
    kind : type
        The dataclass of a row, whose fields are columns.
    key : str
        The column with the ids.
    """

    def __init__(self, frame: pd.DataFrame, kind: type[SomeRow], key: str) -> None:
        self.frame = frame
        self._kind = kind
        self._ids = frame[key].to_numpy(dtype=np.int64)
        self._order = np.argsort(self._ids, kind="stable")
        self._sorted = self._ids[self._order]

    def __getitem__(self, number: int) -> SomeRow:
        return self._row(self.place(number))

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

    def places(self, numbers: npt.NDArray[np.int64]) -> Places:
        """Where in the frame the rows of some ids are; each is there."""
        places: Places = self._order[self._sorted.searchsorted(numbers)]
        return places

    def at(self, places: Places) -> Sequence[SomeRow]:
        """The rows at some places, each made when it is looked at."""
        return _Chosen(self._row, places)

    def _row(self, place: int) -> SomeRow:
        number, at = divmod(place, _AT_ONCE)
        return self._kind(*(values[at] for values in self._block(number)))

    @cached_property
    def _block(self) -> Callable[[int], list[list[Any]]]:
        return lru_cache(_BLOCKS_AT_HAND)(self._read_block)

    def _read_block(self, number: int) -> list[list[Any]]:
        some = self.frame.iloc[number * _AT_ONCE : (number + 1) * _AT_ONCE]
        return list(plain_columns(some, [field.name for field in fields(self._kind)]).values())


class PlacesOf:
    """The positions of each number in a column, in row order."""

    def __init__(self, numbers: npt.NDArray[np.int64]) -> None:
        self._order = np.argsort(numbers, kind="stable")
        self._sorted = numbers[self._order]

    def __getitem__(self, number: int) -> Places:
        first, end = self._sorted.searchsorted([number, number + 1])
        return self._order[first:end]


class _Chosen(Sequence[SomeRow]):
    def __init__(self, row: Callable[[int], SomeRow], places: Places) -> None:
        self._row = row
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> SomeRow: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[SomeRow]: ...
    def __getitem__(self, at: int | slice) -> SomeRow | Sequence[SomeRow]:
        if isinstance(at, slice):
            return _Chosen(self._row, self._places[at])
        return self._row(int(self._places[at]))
