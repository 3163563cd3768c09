"""What a column and a frame are: declared types, built from rows, and given back as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

WHOLE: Final = "Int64"
TEXT: Final = "str"
FLAG: Final = "boolean"
REAL: Final = "Float64"
TIME: Final = "datetime64[ns, UTC]"
TUPLE: Final = "object"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a frame."""

    name: str
    dtype: str
    meaning: str
    unit: str = ""
    missing: str = "never"
    torch_name: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame: its name, what one row is, and its columns in order."""

    name: str
    grain: str
    columns: tuple[Column, ...]

    def build(self, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
        """A DataFrame of exactly these columns and types, also when there are no rows."""
        listed = list(rows)
        data = {c.name: _series([row[c.name] for row in listed], c.dtype) for c in self.columns}
        return pd.DataFrame(data)


def _series(values: list[Any], dtype: str) -> pd.Series[Any]:
    if dtype == TIME:
        # Through integers: a float on the way would lose the nanoseconds.
        whole = pd.array(values, dtype="Int64")
        return pd.Series(pd.to_datetime(whole, unit="ns", utc=True)).astype(TIME)
    if dtype == TUPLE:
        return pd.Series(values, dtype=object)
    return pd.Series(values, dtype=dtype)


def records(frame: pd.DataFrame, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Rows as dictionaries of plain Python values; times as nanoseconds, missing values as None.

    Parameters
    ----------
    frame : DataFrame
    names : iterable of str, optional
        Columns to take; all of them by default.
    """
    columns: dict[str, list[Any]] = {}
    for name in frame.columns if names is None else names:
        series = frame[name]
        if isinstance(series.dtype, pd.DatetimeTZDtype):
            present = series.notna()
            series = series.astype("int64").astype("Int64").where(present)
        columns[name] = [None if _is_missing(value) else value for value in series.tolist()]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and value != value)
