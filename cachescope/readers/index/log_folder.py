"""The logs of a fleet: a folder of logs in columns, to which many processes write, each its own file.

One line is one log. Lists refer to each other by counts and codes; after the check, every reference is valid.
"""

from __future__ import annotations

import io
import os
import re
import uuid
from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import Any, Final

import orjson

from cachescope.errors import SourceError
from cachescope.readers.index.log_tables import COLUMNS, MAY_BE_MISSING, OF_A_PROCESS, LogTables, codes_of
from cachescope.readers.json_record import MOST_NS, MOST_NS_OF_A_DURATION, MOST_OF_A_COLUMN
from cachescope.readers.kinds import LOGS_SUFFIX
from cachescope.readers.logs.byte_source import FAILURES, open_bytes, zstd
from cachescope.readers.reading import Reading
from cachescope.terms import OUTCOMES

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
_WORDS: Final = {
    ("processes", "kind"): ("trace", "text"),
    ("lookups", "cache"): ("aotautograd", "fxgraph"),
    ("lookups", "outcome"): tuple(OUTCOMES),
    ("compiled", "kind"): ("first", "recompile", "resume", "backward", "limit"),
}
_OTHERS: Final = {"source": str, "components": list, "set_sizes": list, "set_codes": str}
_OF_ANOTHER_VERSION: Final = "was written by another version of cachescope: collect the logs again"
_NOT_OF_A_NAME: Final = re.compile(r"[^\w.-]+")
_MOST_OF_A_NAME: Final = 100


def is_of_this_version(held: Any) -> bool:
    """Whether what a line holds has the columns of a log."""
    if not isinstance(held, dict) or held.keys() != COLUMNS.keys() | _OTHERS.keys():
        return False
    return all(isinstance(held[name], dict) and held[name].keys() == COLUMNS[name].keys() for name in COLUMNS)


def check_log(held: dict[str, Any]) -> None:
    """Check that a reader could have returned what a line holds, which is of this version."""
    for name, kind in _OTHERS.items():
        _need(name, f"is no {kind.__name__}", type(held[name]) is kind)
    for name in COLUMNS:
        _check_columns(name, held[name])
    for name in OF_A_PROCESS:
        rows = len(next(iter(held[name].values())))
        _need(name, "are not as many as said", sum(held["processes"][name]) == rows)
    sizes, components = held["set_sizes"], held["components"]
    _need("set_sizes", "has what is no size", all(type(one) is int and one >= 0 for one in sizes))
    _need("components", "has what is no text", set(map(type, components)) <= {str})
    codes = codes_of(held)
    _need("set_codes", "are not as many as said", sum(sizes) == len(codes))
    are_valid = not len(codes) or (codes.min() >= 0 and codes.max() < len(components))
    _need("set_codes", "point nowhere", bool(are_valid))
    named = held["lookups"]["detail_set"]
    _need("detail_set", "point nowhere", all(one is None or one < len(sizes) for one in named))


def _check_columns(name: str, columns: dict[str, Any]) -> None:
    _need(name, "has what is no list", all(type(values) is list for values in columns.values()))
    _need(name, "has columns of several lengths", len(set(map(len, columns.values()))) == 1)
    for column, kind in COLUMNS[name].items():
        values = columns[column]
        if column not in MAY_BE_MISSING[name]:
            _need(name, f"has no {column} in a row", None not in values)
        _need(name, f"has a {column} of another type", set(map(type, values)) <= {kind, NoneType})
        if (words := _WORDS.get((name, column))) is not None:
            _need(name, f"has a {column} that is none", set(values) <= {*words})
        if kind is list:
            are_texts = {type(one) for own in values for one in own} <= {str}
            _need(name, f"has a {column} with what is no text", are_texts)
        if kind is int:
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
