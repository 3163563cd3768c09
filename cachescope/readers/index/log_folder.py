"""The logs of a fleet: a folder of logs as columns, to which many processes write, each its own file.

One row, and one row group, is one log. Lists refer to each other by counts and codes; after the check, every reference is valid.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from cachescope.errors import SourceError
from cachescope.readers.index.log_tables import SCHEMA, LogTables, to_arrow
from cachescope.readers.json_record import MOST_NS, MOST_NS_OF_A_DURATION, MOST_OF_A_COLUMN
from cachescope.readers.kinds import LOGS_SUFFIX
from cachescope.readers.parquet_folder import failures_of
from cachescope.readers.reading import Reading
from cachescope.terms import OUTCOMES

_YEAR_US: Final = 400 * 86_400_000_000
_MOMENTS: Final = (
    "time", "end_time", "logged_time", "start_time_ns", "command_start_ns", "command_end_ns",
)  # fmt: skip
_DURATIONS: Final = ("time_taken_ns", "time_saved_ns")
_CLOCKS: Final = ("clock_first_us", "clock_last_us")
_MAY_BE_NEGATIVE: Final = ("exit_status",)
_NEVER_MISSING: Final = {
    "processes": ("kind", "is_cut", "looked_up", "lookups"),
    "lookups": ("cache", "outcome", "segment", "is_details_cut"),
    "problems": ("where", "kind", "message", "count"),
}
_WORDS: Final = {
    ("processes", "kind"): ("trace", "text"),
    ("lookups", "cache"): ("aotautograd", "fxgraph"),
    ("lookups", "outcome"): tuple(OUTCOMES),
}
_WHAT: Final = "collected logs"
_NOT_OF_A_NAME: Final = re.compile(r"[^\w.-]+")
_MOST_OF_A_NAME: Final = 100


def check_logs(table: pa.Table) -> None:
    """Check the columns of `log_tables.SCHEMA`."""
    columns = {
        name: values.combine_chunks() for name, values in zip(table.column_names, table.columns, strict=True)
    }
    for name, values in columns.items():
        _need(name, "is missing in a log", not values.null_count)
    for name in ("processes", "lookups", "problems"):
        _check_rows(name, columns[name].flatten())
    lookups = columns["processes"].flatten().field("lookups")
    said = _sums(columns["processes"], lookups).tolist()
    _need("lookups", "are not as many as said", said == _sizes(columns["lookups"]).tolist())
    sizes, codes, components = columns["set_sizes"], columns["set_codes"], columns["components"]
    for name in ("set_sizes", "set_codes", "components"):
        _need(name, "has missing values", not columns[name].flatten().null_count)
    least = pc.min(sizes.flatten()).as_py()
    _need("set_sizes", "has a negative one", least is None or least >= 0)
    said = _sums(sizes, sizes.flatten()).tolist()
    _need("set_codes", "are not as many as said", said == _sizes(codes).tolist())
    _points(codes, codes.flatten(), _sizes(components), "set_codes")
    of_lookups = columns["lookups"].flatten().field("detail_set")
    _points(columns["lookups"], of_lookups, _sizes(sizes), "detail_set")


def _check_rows(name: str, rows: pa.StructArray) -> None:
    _need(name, "has missing rows", not rows.null_count)
    for field in rows.type:
        values = rows.field(field.name)
        if field.name in _NEVER_MISSING[name]:
            _need(name, f"has no {field.name} in a row", not values.null_count)
        if (words := _WORDS.get((name, field.name))) is not None:
            _need(name, f"has a {field.name} that is none", _are_among(values, words))
        if pa.types.is_integer(field.type):
            least, most = _range(field.name)
            found = pc.min_max(values).as_py()
            fits = found["min"] is None or (least <= found["min"] and found["max"] <= most)
            _need(name, f"has a {field.name} beyond {least} and {most}", fits)


def _range(name: str) -> tuple[int, int]:
    if name in _MOMENTS:
        return 0, MOST_NS
    if name in _DURATIONS:
        return -MOST_NS_OF_A_DURATION, MOST_NS_OF_A_DURATION
    if name in _CLOCKS:
        return 0, _YEAR_US
    return (-MOST_OF_A_COLUMN if name in _MAY_BE_NEGATIVE else 0), MOST_OF_A_COLUMN


def _points(lists: Any, values: pa.Array, sizes: np.ndarray[Any, Any], name: str) -> None:
    """Check that the values in each log's list are valid indices into a list of the log's size."""
    most = pa.array(np.repeat(sizes, _sizes(lists)))
    # Missing values are skipped.
    are_valid = pc.all(pc.and_(pc.greater_equal(values, 0), pc.less(values, most)), min_count=0)
    _need(name, "point nowhere", are_valid.as_py())


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


def _need(name: str, otherwise: str, is_so: bool) -> None:
    if not is_so:
        raise ValueError(f"{name} {otherwise}")


def read_log_file(path: str, reading: Reading) -> None:
    """Read one file of such a folder into `reading`."""
    with failures_of(path, _WHAT):
        if not parquet.read_schema(path).equals(SCHEMA):
            raise SourceError(path, "was written by another version of cachescope: collect the logs again")
        with parquet.ParquetFile(path, page_checksum_verification=True) as stored:
            for row in range(stored.num_row_groups):
                table = stored.read_row_group(row)
                table.validate(full=True)
                check_logs(table)
                for log in LogTables.from_arrow(table):
                    log.merge_into(reading)


def write_logs(folder: Path, logs: Iterable[LogTables]) -> int:
    """Add one file with these logs to a folder, and return the number of logs.

    Its name is unique, and begins with that of the first log: files are read in the order of their names, as logs are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rest = iter(logs)
    some = list(islice(rest, 1))
    first = os.path.basename(some[0].source) if some else ""
    name = f"{_NOT_OF_A_NAME.sub('_', first)[:_MOST_OF_A_NAME]}-{uuid.uuid4().hex}"
    # Until it is complete, the file has a name that is not read.
    unfinished = folder / f"{name}.unfinished"
    count = 0
    try:
        with parquet.ParquetWriter(
            unfinished, SCHEMA, compression="zstd", write_page_checksum=True
        ) as writer:
            for log in chain(some, rest):
                table = to_arrow([log])
                if table is None:
                    raise SourceError(log.source, "holds a value that no column can: read it by itself")
                writer.write_table(table)
                count += 1
        unfinished.rename(folder / f"{name}{LOGS_SUFFIX}")
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return count
