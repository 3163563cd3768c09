"""The logs of a fleet: a folder of logs as columns, to which many processes write, each its own file.

One row, and one row group, is one log. Extra columns hold a hash and the direction of each set of hash details. These
are enough to join and count lookups; the details themselves are read when something needs them.

Lists refer to each other by counts and codes; after the check, every reference is valid.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from cachescope.details import HashDetails
from cachescope.errors import SourceError
from cachescope.readers.index.log_tables import SCHEMA, LogTables, to_arrow
from cachescope.readers.json_record import MOST_NS, MOST_NS_OF_A_DURATION, MOST_OF_A_COLUMN
from cachescope.readers.kinds import LOGS_SUFFIX
from cachescope.readers.parquet_folder import failures_of, read_table
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
    "problems": ("where", "kind", "message"),
}
_WORDS: Final = {
    ("processes", "kind"): ("trace", "text"),
    ("lookups", "cache"): ("aotautograd", "fxgraph"),
    ("lookups", "outcome"): tuple(OUTCOMES),
}
_DIRECTIONS: Final = ("forward", "backward", "inference")
_WHAT: Final = "collected logs"
_HASH_BYTES: Final = 16
_DETAILS: Final = ("components", "set_sizes", "set_codes")
_BESIDE: Final = pa.schema(
    {"set_hashes": pa.list_(pa.binary(_HASH_BYTES)), "set_directions": pa.list_(pa.string())}
)
_SCHEMA: Final = pa.unify_schemas([SCHEMA, _BESIDE])


def check_logs(table: pa.Table) -> None:
    """Check the columns of `log_tables.SCHEMA` that are present, and the extra columns."""
    columns = {
        name: values.combine_chunks() for name, values in zip(table.column_names, table.columns, strict=True)
    }
    for name, values in columns.items():
        _need(name, "is missing in a log", not values.null_count)
    for name in ("processes", "lookups", "problems"):
        if name in columns:
            _check_rows(name, columns[name].flatten())
    lookups = columns["processes"].flatten().field("lookups")
    said = _sums(columns["processes"], lookups).tolist()
    _need("lookups", "are not as many as said", said == _sizes(columns["lookups"]).tolist())
    sets = columns.get("set_hashes", columns.get("set_sizes"))
    if sets is not None:
        _need("sets", "are missing", not sets.flatten().null_count)
        codes = columns["lookups"].flatten().field("detail_set")
        _points(columns["lookups"], codes, _sizes(sets), "detail_set")
    if "set_directions" in columns and sets is not None:
        directions = columns["set_directions"]
        are_as_many = _sizes(directions).tolist() == _sizes(sets).tolist()
        _need("set_directions", "are not as many as sets", are_as_many)
        _need("set_directions", "are no directions", _are_among(directions.flatten(), _DIRECTIONS))
    if "set_codes" in columns and "components" in columns and "set_sizes" in columns:
        _check_details(columns)


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


def _check_details(columns: Mapping[str, Any]) -> None:
    sizes, codes, components = columns["set_sizes"], columns["set_codes"], columns["components"]
    for name in ("set_sizes", "set_codes", "components"):
        _need(name, "has missing values", not columns[name].flatten().null_count)
    least = pc.min(sizes.flatten()).as_py()
    _need("set_sizes", "has a negative one", least is None or least >= 0)
    said = _sums(sizes, sizes.flatten()).tolist()
    _need("set_codes", "are not as many as said", said == _sizes(codes).tolist())
    _points(codes, codes.flatten(), _sizes(components), "set_codes")


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
    """Read one file of such a folder into `reading`, including hash details."""
    for table in _rows(path):
        for log in LogTables.from_arrow(table):
            with failures_of(path, _WHAT):
                log.merge_into(reading)


def write_logs(folder: Path, logs: Iterable[LogTables]) -> int:
    """Add one file with these logs to a folder, under a unique name, and return the number of logs."""
    folder.mkdir(parents=True, exist_ok=True)
    name = uuid.uuid4().hex
    # Until it is complete, the file has a name that is not read.
    unfinished = folder / f"{name}.unfinished"
    count = 0
    try:
        with parquet.ParquetWriter(
            unfinished, _SCHEMA, compression="zstd", write_page_checksum=True
        ) as writer:
            for log in logs:
                writer.write_table(_row(log))
                count += 1
        unfinished.rename(folder / f"{name}{LOGS_SUFFIX}")
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return count


def read_log_folder(path: str, *, strict: bool = False) -> Reading:
    """Read all logs of a folder, in the order of their names; hash details stay in the files until they are needed."""
    files = sorted(str(file) for file in Path(path).glob(f"*{LOGS_SUFFIX}"))
    small = [name for name in _SCHEMA.names if name not in _DETAILS]
    with failures_of(path, _WHAT):
        for file in files:
            _check(file)
        places = [(file, row) for file in files for row in range(parquet.read_metadata(file).num_row_groups)]
        table = pa.concat_tables([read_table(file, small) for file in files])
        if len(table) != len(places):
            raise ValueError("a row group that is not one log")
        check_logs(table)
    sources = table["source"].to_pylist()
    order = sorted(range(len(places)), key=lambda at: (sources[at], at))
    details = StoredDetails([places[at] for at in order])
    reading = Reading(strict=strict, details=details)
    table = table.take(order)
    bare = table.select(small[: len(SCHEMA) - len(_DETAILS)])
    for name in _DETAILS:
        nothing = pa.array([[]] * len(order), SCHEMA.field(name).type)
        bare = bare.append_column(SCHEMA.field(name), nothing)
    hashes, directions = table["set_hashes"].to_pylist(), table["set_directions"].to_pylist()
    for log, *sets in zip(LogTables.from_arrow(bare), hashes, directions, strict=True):
        log.append_to(reading, details.expect(*sets))
    return reading


class StoredDetails(HashDetails):
    """Hash details that stay in the files of a folder until one of them is needed."""

    def __init__(self, places: list[tuple[str, int]]) -> None:
        # No super().__init__(): `__getattr__` reads from the files the attributes that it would set.
        self._places = places
        self._expected: dict[bytes, int] = {}
        self._codes: list[list[int]] = []
        self._directions: list[str | None] = []

    def expect(self, hashes: list[bytes], directions: list[str | None]) -> list[int]:
        """Add the sets of the next log by their hashes, and return the codes that they will have."""
        for own, direction in zip(hashes, directions, strict=True):
            if own not in self._expected:
                self._expected[own] = len(self._expected)
                self._directions.append(direction)
        self._codes.append([self._expected[own] for own in hashes])
        return self._codes[-1]

    def direction(self, set_code: int) -> str | None:
        """Like `HashDetails.direction`, but without reading the details."""
        return self._directions[set_code]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_places" not in self.__dict__ or "components" in self.__dict__:
            raise AttributeError(name)
        self._fill()
        return getattr(self, name)

    def _fill(self) -> None:
        details = HashDetails()
        for (file, row), expected in zip(self._places, self._codes, strict=True):
            for table in _rows(file, [row]):
                for log in LogTables.from_arrow(table):
                    with failures_of(file, _WHAT):
                        if log.add_details_to(details) != expected:
                            raise ValueError("hash details that are not those of their hashes")
        self.__dict__.update(details.__dict__)


def _rows(file: str, rows: Sequence[int] | None = None) -> Iterator[pa.Table]:
    with failures_of(file, _WHAT):
        _check(file)
        with parquet.ParquetFile(file, page_checksum_verification=True) as stored:
            for row in range(stored.num_row_groups) if rows is None else rows:
                table = stored.read_row_group(row, columns=SCHEMA.names)
                table.validate(full=True)
                check_logs(table)
                yield table


def _check(file: str) -> None:
    if not parquet.read_schema(file).equals(_SCHEMA):
        raise SourceError(file, "was written by another version of cachescope: collect the logs again")


def _row(log: LogTables) -> pa.Table:
    table = to_arrow([log])
    if table is None:
        raise SourceError(log.source, "holds a value that no column can: read it by itself")
    details = HashDetails()
    codes = log.add_details_to(details)
    hashes = [hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).digest() for text in log.components]
    table = table.append_column(
        _BESIDE.field(0), pa.array([[_hash_of(own, hashes) for own in log.sets]], _BESIDE.types[0])
    )
    return table.append_column(
        _BESIDE.field(1), pa.array([[details.direction(code) for code in codes]], _BESIDE.types[1])
    )


def _hash_of(codes: Iterable[int], hashes: list[bytes]) -> bytes:
    return hashlib.blake2b(b"".join([hashes[code] for code in codes]), digest_size=_HASH_BYTES).digest()
