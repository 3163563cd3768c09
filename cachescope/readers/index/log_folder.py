"""The logs of a fleet: a folder of logs as columns, to which many processes write, each its own file.

One row, and one row group, is one log. Extra columns hold a hash and the direction of each set of hash details. These
are enough to join and count lookups; the details themselves are read when something needs them.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from cachescope.details import HashDetails
from cachescope.errors import SourceError
from cachescope.readers.index.log_table_check import check_logs
from cachescope.readers.index.log_tables import SCHEMA, LogTables, to_arrow
from cachescope.readers.reading import Reading
from cachescope.readers.stored_frames import failures_of, read_table

if TYPE_CHECKING:
    import numpy as np

_SUFFIX: Final = ".logs.parquet"
_MAGIC: Final = b"PAR1"
_WHAT: Final = "collected logs"
_HASH_BYTES: Final = 16
_DETAILS: Final = ("components", "set_sizes", "set_codes")
_BESIDE: Final = pa.schema(
    {"set_hashes": pa.list_(pa.binary(_HASH_BYTES)), "set_directions": pa.list_(pa.string())}
)
_SCHEMA: Final = pa.unify_schemas([SCHEMA, _BESIDE])


def is_log_folder(path: str) -> bool:
    """Whether a folder contains a file that `write_logs` wrote."""
    try:
        return any(is_log_file(os.path.join(path, name)) for name in os.listdir(path))
    except OSError:
        return False


def is_log_file(path: str) -> bool:
    """Whether `write_logs` wrote a file."""
    if not path.endswith(_SUFFIX):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def read_log_file(path: str, reading: Reading) -> None:
    """Read one file of such a folder into `reading`, including hash details.

    Raises
    ------
    SourceError
        If it is damaged, or if another version of cachescope wrote it.
    """
    for table in _rows(path):
        for log in LogTables.from_arrow(table):
            with failures_of(path, _WHAT):
                log.merge_into(reading)


def write_logs(folder: Path, logs: Iterable[LogTables]) -> int:
    """Add one file with these logs to a folder, under a unique name, and return the number of logs.

    Raises
    ------
    SourceError
        If a log contains a value that does not fit a column.
    OSError
        If the folder cannot be written.
    """
    from pyarrow import parquet

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
        unfinished.rename(folder / f"{name}{_SUFFIX}")
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return count


def read_log_folder(path: str, *, strict: bool = False) -> Reading:
    """Read all logs of a folder, in the order of their names; hash details stay in the files until they are needed.

    Raises
    ------
    SourceError
        If a file is damaged, or if another version of cachescope wrote it.
    RecordError
        At the first problem, if `strict`.
    """
    from pyarrow import parquet

    files = sorted(str(file) for file in Path(path).glob(f"*{_SUFFIX}"))
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
    from pyarrow import parquet

    with failures_of(file, _WHAT):
        _check(file)
        with parquet.ParquetFile(file, page_checksum_verification=True) as stored:
            for row in range(stored.num_row_groups) if rows is None else rows:
                table = stored.read_row_group(row, columns=SCHEMA.names)
                table.validate(full=True)
                check_logs(table)
                yield table


def _check(file: str) -> None:
    from pyarrow import parquet

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


def _hash_of(codes: np.ndarray[Any, Any], hashes: list[bytes]) -> bytes:
    return hashlib.blake2b(b"".join([hashes[code] for code in codes]), digest_size=_HASH_BYTES).digest()
