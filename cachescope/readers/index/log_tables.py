"""The contents of a log as plain columns: for the results of workers, for the index and for the folder of a fleet.

One log is one line of JSON. Its hash details remain integer codes into its own texts until the log is merged. Then each
distinct text gets the same code as if the logs had been read one after the other.

The folder of a fleet is one of logs in columns, to which many processes write, each its own file. Lists refer to each other by counts and
codes; after the check, every reference is valid.
"""

from __future__ import annotations

import io
import os
import re
import uuid
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import chain, islice
from pathlib import Path
from types import NoneType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

from cachescope.component_sets import Codes
from cachescope.details import HashDetails
from cachescope.errors import SourceError
from cachescope.frames.compile_rows import IN_NO_TEXT_LOG, CompileRow
from cachescope.frames.recorded_rows import OF_A_RUN, OF_ALL_LOGS, LookupRow, ProblemRow
from cachescope.readers.json_record import MOST_NS, MOST_NS_OF_A_DURATION, MOST_OF_A_COLUMN
from cachescope.readers.kinds import LOGS_SUFFIX
from cachescope.readers.logs.byte_source import FAILURES, open_bytes, zstd
from cachescope.readers.reading import Compile, Process, Reading
from cachescope.rows import columns_of

_TYPES: Final = {
    "str": str, "int": int, "bool": bool, "Time": int, "tuple[str, ...]": list, "None": NoneType,
}  # fmt: skip
_STORED_CODES: Final = np.dtype("<i4")


def _columns(row: type, without: Sequence[str]) -> dict[str, set[type]]:
    """The fields of a row and the types of their values, from its annotations: a new field needs no change here."""
    kept = (one for one in fields(row) if one.name not in without)
    return {one.name: {_TYPES[part] for part in str(one.type).split(" | ")} for one in kept}


_OF_A_PROCESS: Final = {"lookups": LookupRow, "compiles": Compile, "compiled": CompileRow}
"""Lists of rows: of those of a process, its row says how many there are."""
# Every row of a log has the source of the log.
_COLUMNS: Final = {
    "processes": _columns(Process, ("source", "kinds", *OF_A_RUN, *_OF_A_PROCESS))
    | {name: {int} for name in _OF_A_PROCESS},
    "lookups": _columns(LookupRow, OF_ALL_LOGS),
    "compiles": _columns(Compile, ()),
    "compiled": _columns(CompileRow, IN_NO_TEXT_LOG),
    "problems": _columns(ProblemRow, ["source"]),
}


@dataclass(frozen=True, slots=True)
class LogTables:
    """One log, read on its own: its processes with their lookups, its problems, and its own table of hash details."""

    source: str
    processes: list[Process]
    problems: list[ProblemRow]
    components: list[str]
    sets: Sequence[Codes | npt.NDArray[np.int32]]

    @classmethod
    def of(cls, source: str, reading: Reading) -> LogTables:
        """The contents of a reading that read only this log."""
        details = reading.details
        return cls(source, reading.processes, reading.problems, details.components, details.sets)

    def merge_into(self, reading: Reading) -> None:
        """Append the log as if it had been read into `reading`, which then owns its rows."""
        self.add_details_to(reading.details)
        for problem in self.problems:
            reading.problem(*astuple(problem))
        reading.processes += self.processes

    def add_details_to(self, details: HashDetails) -> None:
        """Add its hash details to another store, to which its lookups then refer."""
        # All of them are hash details: they come from such a store.
        codes = details.add_components(self.components)
        if None in codes:
            raise ValueError("components that are no hash details")
        own = np.array(codes, dtype=np.int32)
        sets = [details.sets.add(own[np.asarray(one)].tobytes()) for one in self.sets]
        for lookup in (lookup for process in self.processes for lookup in process.lookups):
            if lookup.detail_set is not None:
                lookup.detail_set = sets[lookup.detail_set]

    def to_json(self) -> bytes | None:
        """The log as one line, without its end; None if it has a value that fits no column, such as a huge pid."""
        rows = {name: [getattr(process, name) for process in self.processes] for name in _OF_A_PROCESS}
        counts = {name: list(map(len, of_each)) for name, of_each in rows.items()}
        codes = b"".join(np.asarray(own, _STORED_CODES).tobytes() for own in self.sets)
        held = {
            "source": self.source,
            "processes": _by_column(self.processes, _COLUMNS["processes"]) | counts,
            **{name: _by_column([*chain(*of_each)], _COLUMNS[name]) for name, of_each in rows.items()},
            "problems": _by_column(self.problems, _COLUMNS["problems"]),
            "components": self.components,
            "set_sizes": [len(own) for own in self.sets],
            "set_codes": b64encode(codes).decode(),
        }
        try:
            return orjson.dumps(held)
        except TypeError:
            return None

    @classmethod
    def from_json(cls, held: dict[str, Any], source: str | None = None) -> LogTables:
        """The log in what a line holds, with the source that it is read from now."""
        own = held["source"] if source is None else source
        rows = {name: _made(kind, _rows(held, name)) for name, kind in _OF_A_PROCESS.items()}
        processes = [
            Process(source=own, **told | {name: list(islice(rows[name], told[name])) for name in rows})
            for told in _rows(held, "processes")
        ]
        problems = [ProblemRow(own, **told) for told in _rows(held, "problems")]
        ends = np.cumsum(held["set_sizes"], dtype=np.int64)
        sets = np.split(_codes_of(held), ends[:-1]) if held["set_sizes"] else []
        return cls(own, processes, problems, held["components"], sets)


def _codes_of(held: dict[str, Any]) -> npt.NDArray[np.int32]:
    """The codes of all sets of a log, one set after the other."""
    return np.frombuffer(b64decode(held["set_codes"], validate=True), _STORED_CODES).astype(np.int32)


def _by_column(rows: Sequence[object], names: Iterable[str]) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in names}


def _made(kind: type, rows: Iterable[dict[str, Any]]) -> Iterator[Any]:
    return (kind(**told) for told in rows)


def _rows(held: dict[str, Any], name: str) -> Iterable[dict[str, Any]]:
    of_tuples = [column for column, kinds in _COLUMNS[name].items() if list in kinds]
    columns = held[name] | {column: list(map(tuple, held[name][column])) for column in of_tuples}
    return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


_YEAR_US: Final = 400 * 86_400_000_000
_DURATION: Final = -MOST_NS_OF_A_DURATION, MOST_NS_OF_A_DURATION
# What a number of a column is at least and at most, if not 0 and the most that a column holds.
_RANGES: Final = {
    **dict.fromkeys(("time", "end_time", "logged_time", "start_time"), (0, MOST_NS)),
    **dict.fromkeys(("command_start_time", "command_end_time"), (0, MOST_NS)),
    **dict.fromkeys(("time_taken_ns", "time_saved_ns"), _DURATION),
    **dict.fromkeys(("clock_first_us", "clock_last_us"), (0, _YEAR_US)),
    "exit_status": (-MOST_OF_A_COLUMN, MOST_OF_A_COLUMN),
}
_WORDS: Final = {("processes", "kind"): frozenset({"trace", "text"})} | {
    (name, one.name): one.words for name, row in _OF_A_PROCESS.items() for one in columns_of(row) if one.words
}
_OTHERS: Final = {"source": str, "components": list, "set_sizes": list, "set_codes": str}
_OF_ANOTHER_VERSION: Final = "was written by another version of cachescope: collect the logs again"
_NOT_OF_A_NAME: Final = re.compile(r"[^\w.-]+")
_MOST_OF_A_NAME: Final = 100


def is_of_this_version(held: Any) -> bool:
    """Whether what a line holds has the columns of a log."""
    if not isinstance(held, dict) or held.keys() != _COLUMNS.keys() | _OTHERS.keys():
        return False
    return all(
        isinstance(held[name], dict) and held[name].keys() == _COLUMNS[name].keys() for name in _COLUMNS
    )


def check_log(held: dict[str, Any]) -> None:
    """Check that a reader could have returned what a line holds, which is of this version."""
    for name, kind in _OTHERS.items():
        _need(name, f"is no {kind.__name__}", type(held[name]) is kind)
    for name in _COLUMNS:
        _check_columns(name, held[name])
    for name in _OF_A_PROCESS:
        rows = len(next(iter(held[name].values())))
        _need(name, "are not as many as said", sum(held["processes"][name]) == rows)
    sizes, components = held["set_sizes"], held["components"]
    _need("set_sizes", "has what is no size", all(type(one) is int and one >= 0 for one in sizes))
    _need("components", "has what is no text", set(map(type, components)) <= {str})
    codes = _codes_of(held)
    _need("set_codes", "are not as many as said", sum(sizes) == len(codes))
    are_valid = not len(codes) or (codes.min() >= 0 and codes.max() < len(components))
    _need("set_codes", "point nowhere", bool(are_valid))
    named = held["lookups"]["detail_set"]
    _need("detail_set", "point nowhere", all(one is None or one < len(sizes) for one in named))


def _check_columns(name: str, columns: dict[str, Any]) -> None:
    _need(name, "has what is no list", all(type(values) is list for values in columns.values()))
    _need(name, "has columns of several lengths", len(set(map(len, columns.values()))) == 1)
    for column, kinds in _COLUMNS[name].items():
        values = columns[column]
        _need(name, f"has no {column} in a row", NoneType in kinds or None not in values)
        _need(name, f"has a {column} of another type", set(map(type, values)) <= kinds)
        if (words := _WORDS.get((name, column))) is not None:
            _need(name, f"has a {column} that is none", set(values) <= words)
        if list in kinds:
            are_texts = {type(one) for own in values for one in own} <= {str}
            _need(name, f"has a {column} with what is no text", are_texts)
        if int in kinds:
            least, most = _RANGES.get(column, (0, MOST_OF_A_COLUMN))
            known = [value for value in values if value is not None]
            fits = not known or (least <= min(known) and max(known) <= most)
            _need(name, f"has a {column} beyond {least} and {most}", fits)


def _need(name: str, otherwise: str, is_so: bool) -> None:
    if not is_so:
        raise ValueError(f"{name} {otherwise}")


def read_log_file(path: str, reading: Reading) -> None:
    """Read one file of such a folder into `reading`."""
    try:
        with io.BufferedReader(open_bytes(path)) as lines:  # type: ignore[type-var]
            for line in lines:
                held = orjson.loads(line)
                if not is_of_this_version(held):
                    raise SourceError(path, _OF_ANOTHER_VERSION)
                check_log(held)
                LogTables.from_json(held).merge_into(reading)
    except (*FAILURES, ValueError, OverflowError, MemoryError) as error:
        said = " ".join(str(error).split())[:300]
        raise SourceError(path, f"collected logs that cannot be read: {said}") from error


def write_logs(folder: Path, logs: Iterable[LogTables]) -> int:
    """Add one file with these logs to a folder, and return the number of logs.

    Its name is unique, and begins with that of the first log: files are read in the order of their names, as logs are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Until it is complete, the file has a name that is not read.
    unfinished = folder / f"{uuid.uuid4().hex}.unfinished"
    first, count = "", 0
    options: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
    try:
        with open(unfinished, "wb") as file:
            for log in logs:
                line = log.to_json()
                if line is None:
                    raise SourceError(log.source, "holds a value that no column can: read it by itself")
                # Each by itself: of many equal ones, so little would be left that a reader would take it for a bomb.
                file.write(zstd.compress(line + b"\n", options=options))
                first = os.path.basename(log.source) if not count else first
                count += 1
        name = f"{_NOT_OF_A_NAME.sub('_', first)[:_MOST_OF_A_NAME]}-{unfinished.stem}{LOGS_SUFFIX}"
        unfinished.rename(folder / name)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return count
