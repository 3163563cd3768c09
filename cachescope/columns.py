"""Frames: DataFrames made of rows, and rows and plain values read from DataFrames."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from cachescope.rows import FLAG, REAL, TEXT, TIME, TUPLE, WHOLE, columns_of, names_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    SomeRow = TypeVar("SomeRow", bound=DataclassInstance)

# The dtype that pandas 3 calls "str" (Arrow texts with NaN) has another name in pandas 2.2. And pandas 2.2 copies at
# once what pandas 3 copies on write. Nothing else here depends on the version.
_IS_PANDAS_2: Final = pd.__version__.startswith("2.")
DEEP: Final = _IS_PANDAS_2
"""How to copy a frame before returning it: ``frame.copy(deep=DEEP)``."""

_MASKED: Final = (pd.Int64Dtype, pd.Float64Dtype, pd.BooleanDtype)

STORED: Final = {
    WHOLE: pa.int64(), TEXT: pa.large_string(), FLAG: pa.bool_(), REAL: pa.float64(), TIME: pa.timestamp("ns", tz="UTC"),
}  # fmt: skip
"""The Arrow type in which each dtype is stored; tuples are lists."""


def frame_of(rows: Iterable[object], kind: type) -> pd.DataFrame:
    """The frame of rows of a class: its columns and types, even without rows; times in nanoseconds, missing values None."""
    listed = list(rows)
    return _made(listed, kind) if listed else _without_rows(kind).copy(deep=DEEP)


@cache
def _without_rows(kind: type) -> pd.DataFrame:
    # Most frames of a small recording are empty, and a copy takes a tenth of the time.
    return _made([], kind)


def _made(rows: list[object], kind: type) -> pd.DataFrame:
    # Of arrays, not of Series: pandas aligns and copies those, which takes five times as long for a few rows.
    return pd.DataFrame(
        {c.name: _array(list(map(attrgetter(c.name), rows)), c.dtype) for c in columns_of(kind)}, copy=False
    )


def pandas_type(dtype: str) -> Any:
    """The pandas dtype of a column with a declared type."""
    if dtype == TEXT and _IS_PANDAS_2:
        return pd.StringDtype("pyarrow_numpy")
    return pd.api.types.pandas_dtype(dtype)


_TYPES: Final = {dtype: pandas_type(dtype) for dtype in STORED}


def _array(values: list[Any], dtype: str) -> Any:
    if dtype == TUPLE:
        return np.fromiter(values, dtype=object, count=len(values))
    # pandas itself inspects each value several times: ten times slower if most are missing.
    return _TYPES[dtype].__from_arrow__(pa.array(values, type=STORED[dtype], from_pandas=True))


def rows_of(frame: pd.DataFrame, kind: type[SomeRow]) -> list[SomeRow]:
    """The rows of a frame as objects of their class, or of any dataclass whose fields are columns of it.

    Values are plain Python values: times in nanoseconds, missing values None.
    """
    return list(map(kind, *plain_columns(frame, names_of(kind)).values()))


def records(frame: pd.DataFrame, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Rows as dictionaries of plain Python values; times as nanoseconds, missing values as None."""
    columns = plain_columns(frame, names)
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def plain_columns(frame: pd.DataFrame, names: Iterable[str] | None = None) -> dict[str, list[Any]]:
    """Like `records`, by column. Equal texts of a column are one object, so a million rows share a few texts."""
    return {str(name): _plain_values(frame[name]) for name in (frame.columns if names is None else names)}


def _plain_values(series: pd.Series[Any]) -> list[Any]:
    if isinstance(series.dtype, pd.StringDtype):
        stored = pa.array(series.array)
        known = (
            stored.combine_chunks() if isinstance(stored, pa.ChunkedArray) else stored
        ).dictionary_encode()
        texts = [*known.dictionary.to_pylist(), None]
        return [texts[code] for code in known.indices.fill_null(len(texts) - 1).to_pylist()]
    if isinstance(series.dtype, _MASKED):
        return [None if value != value else value for value in pa.array(series.array).to_pylist()]
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        times = pd.DatetimeIndex(series.array).asi8.tolist()
        return [None if time == pd.NaT.value else time for time in times]
    if not series.isna().any():
        return series.tolist()
    return [None if _is_missing(value) else value for value in series.tolist()]


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and value != value)
