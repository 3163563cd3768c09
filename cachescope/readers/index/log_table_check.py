"""Checks that logs stored as columns are such as a reader of logs returns: anyone may have changed them.

Lists refer to each other by counts and codes; after the check, every reference is valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cachescope.readers.json_record import MOST_NS, MOST_NS_OF_A_DURATION, MOST_OF_A_COLUMN
from cachescope.terms import OUTCOMES

_YEAR_US: Final = 400 * 86_400_000_000
_MOMENTS: Final = (
    "time_ns",
    "end_time_ns",
    "logged_ns",
    "start_time_ns",
    "command_start_ns",
    "command_end_ns",
)
_DURATIONS: Final = ("time_taken_ns", "time_saved_ns")
_CLOCKS: Final = ("clock_first_us", "clock_last_us")
_MAY_BE_NEGATIVE: Final = ("exit_status",)
_NEVER_MISSING: Final = {
    "processes": ("kind", "is_cut", "looked_up", "lookups"),
    "lookups": ("cache", "outcome", "segment", "is_details_cut"),
    "problems": ("where", "kind", "message"),
}
_WORDS: Final = {
    ("processes", "kind"): ("trace", "text"),
    ("lookups", "cache"): ("aotautograd", "fxgraph"),
    ("lookups", "outcome"): tuple(OUTCOMES),
}
_DIRECTIONS: Final = ("forward", "backward", "inference")


def check_logs(table: pa.Table) -> None:
    """Check the columns of `log_tables.SCHEMA` that are present, and the extra columns.

    Raises
    ------
    ValueError
        If no reader could have returned them.
    """
    columns = {
        name: values.combine_chunks() for name, values in zip(table.column_names, table.columns, strict=True)
    }
    for name, values in columns.items():
        _need(not values.null_count, name, "is missing in a log")
    for name in ("processes", "lookups", "problems"):
        if name in columns:
            _check_rows(name, columns[name].flatten())
    lookups = columns["processes"].flatten().field("lookups")
    _need(
        _sums(columns["processes"], lookups).tolist() == _sizes(columns["lookups"]).tolist(),
        "lookups",
        "are not as many as said",
    )
    sets = columns.get("set_hashes", columns.get("set_sizes"))
    if sets is not None:
        _need(not sets.flatten().null_count, "sets", "are missing")
        _points(columns["lookups"], columns["lookups"].flatten().field("details"), _sizes(sets), "details")
    if "set_directions" in columns and sets is not None:
        directions = columns["set_directions"]
        _need(
            _sizes(directions).tolist() == _sizes(sets).tolist(), "set_directions", "are not as many as sets"
        )
        _need(_are_among(directions.flatten(), _DIRECTIONS), "set_directions", "are no directions")
    if "set_codes" in columns and "components" in columns and "set_sizes" in columns:
        _check_details(columns)


def _check_rows(name: str, rows: pa.StructArray) -> None:
    _need(not rows.null_count, name, "has missing rows")
    for field in rows.type:
        values = rows.field(field.name)
        if field.name in _NEVER_MISSING[name]:
            _need(not values.null_count, name, f"has no {field.name} in a row")
        if (words := _WORDS.get((name, field.name))) is not None:
            _need(_are_among(values, words), name, f"has a {field.name} that is none")
        if pa.types.is_integer(field.type):
            least, most = _range(field.name)
            found = pc.min_max(values).as_py()
            fits = found["min"] is None or (least <= found["min"] and found["max"] <= most)
            _need(fits, name, f"has a {field.name} beyond {least} and {most}")


def _range(name: str) -> tuple[int, int]:
    if name in _MOMENTS:
        return 0, MOST_NS
    if name in _DURATIONS:
        return -MOST_NS_OF_A_DURATION, MOST_NS_OF_A_DURATION
    if name in _CLOCKS:
        return 0, _YEAR_US
    return (-MOST_OF_A_COLUMN if name in _MAY_BE_NEGATIVE else 0), MOST_OF_A_COLUMN


def _check_details(columns: Mapping[str, Any]) -> None:
    sizes, codes, components = columns["set_sizes"], columns["set_codes"], columns["components"]
    for name in ("set_sizes", "set_codes", "components"):
        _need(not columns[name].flatten().null_count, name, "has missing values")
    least = pc.min(sizes.flatten()).as_py()
    _need(least is None or least >= 0, "set_sizes", "has a negative one")
    _need(
        _sums(sizes, sizes.flatten()).tolist() == _sizes(codes).tolist(),
        "set_codes",
        "are not as many as said",
    )
    _points(codes, codes.flatten(), _sizes(components), "set_codes")


def _points(lists: Any, values: pa.Array, sizes: np.ndarray[Any, Any], name: str) -> None:
    """Check that the values in each log's list are valid indices into a list of the log's size."""
    most = pa.array(np.repeat(sizes, _sizes(lists)))
    # Missing values are skipped.
    are_valid = pc.all(pc.and_(pc.greater_equal(values, 0), pc.less(values, most)), min_count=0)
    _need(are_valid.as_py(), name, "point nowhere")


def _sums(lists: Any, values: pa.Array) -> np.ndarray[Any, Any]:
    """The sum of the values in each list."""
    ends = np.cumsum(_sizes(lists))
    totals = np.append(0, np.cumsum(pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.int64)))
    sums: np.ndarray[Any, Any] = totals[ends] - totals[ends - _sizes(lists)]
    return sums


def _sizes(lists: Any) -> np.ndarray[Any, Any]:
    sizes: np.ndarray[Any, Any] = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    return sizes.astype(np.int64)


def _are_among(values: pa.Array, words: tuple[str, ...]) -> bool:
    return set(pc.unique(values).to_pylist()) <= {*words, None}


def _need(is_so: bool, name: str, otherwise: str) -> None:
    if not is_so:
        raise ValueError(f"{name} {otherwise}")
