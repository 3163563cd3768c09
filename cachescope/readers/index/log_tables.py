"""The contents of a log as columns: for the results of workers, for the index and for the folder of a fleet.

One log is one row. Its hash details remain integer codes into its own texts until the log is merged. Then each
distinct text gets the same code as if the logs had been read one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from dataclasses import astuple, dataclass, fields
from itertools import accumulate, chain, islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cachescope.component_sets import Codes
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import OF_ALL_LOGS, LookupRow, ProblemRow
from cachescope.readers.reading import Process, Reading

_TYPES: Final = {
    "str": pa.string(),
    "int": pa.int64(),
    "bool": pa.bool_(),
    "Time": pa.int64(),
    "tuple[str,": pa.list_(pa.string()),
}


def _columns(row: type, without: Sequence[str]) -> dict[str, pa.DataType]:
    """The fields of a row and their types, from its annotations: a new field needs no change here."""
    return {f.name: _TYPES[str(f.type).split()[0]] for f in fields(row) if f.name not in without}


# Every row of a log has the source of the log.
_PROCESS: Final = _columns(Process, ["source", "lookups", "sources", "kinds"])
_LOOKUP: Final = _columns(LookupRow, OF_ALL_LOGS)
_PROBLEM: Final = _columns(ProblemRow, ["source"])


def _list_of(columns: dict[str, pa.DataType], **more: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct(list((columns | more).items())))


SCHEMA: Final = pa.schema(
    {
        "source": pa.string(),
        "processes": _list_of(_PROCESS, lookups=pa.int64()),
        "lookups": _list_of(_LOOKUP),
        "problems": _list_of(_PROBLEM),
        "components": pa.large_list(pa.large_string()),
        "set_sizes": pa.list_(pa.int32()),
        "set_codes": pa.large_list(pa.int32()),
    }
)


class KnownCodes:
    """The codes, in one store, of logs that were read together: each later log contains only new components and sets."""

    def __init__(self) -> None:
        self.components = np.empty(0, dtype=np.int32)
        self.sets: list[int] = []


@dataclass(frozen=True, slots=True)
class LogTables:
    """One log, read on its own: its processes with their lookups, its problems, and its own table of hash details.

    If one worker reads several logs together, each but the first builds on the hash details of those before it: `known` has
    their codes in the store that the logs are merged into, and those of this log are added.
    """

    source: str
    processes: list[Process]
    problems: list[ProblemRow]
    components: list[str]
    sets: Sequence[Codes | npt.NDArray[np.int32]]
    known: KnownCodes | None = None

    @classmethod
    def of(cls, source: str, reading: Reading, components: int = 0, sets: int = 0) -> LogTables:
        """The contents of a reading that read only this log, without the first hash details, which came from others."""
        details = reading.details
        return cls(
            source, reading.processes, reading.problems, details.components[components:], details.sets[sets:]
        )

    def merge_into(self, reading: Reading) -> None:
        """Append the log as if it had been read into `reading`, which then owns its rows."""
        self.append_to(reading, self.add_details_to(reading.details))

    def add_details_to(self, details: HashDetails) -> list[int]:
        """Add its hash details to another store, and return the codes of its sets there."""
        known = KnownCodes() if self.known is None else self.known
        # All of them are hash details: they come from such a store.
        codes = details.add_components(self.components)
        if None in codes:
            raise ValueError("components that are no hash details")
        new = np.array(codes, dtype=np.int32)
        known.components = np.concatenate((known.components, new))
        known.sets += [details.add_codes(known.components[np.asarray(own)].tobytes()) for own in self.sets]
        return known.sets

    def append_to(self, reading: Reading, codes: Sequence[int]) -> None:
        """Append its rows, with these codes for its sets of hash details."""
        for process in self.processes:
            for lookup in process.lookups:
                if lookup.detail_set is not None:
                    lookup.detail_set = codes[lookup.detail_set]
        for problem in self.problems:
            reading.problem(*astuple(problem))
        reading.processes += self.processes

    @classmethod
    def from_arrow(cls, table: pa.Table, source: str | None = None) -> Iterator[LogTables]:
        """Yield the logs of a table of `SCHEMA`, row by row, with the source they are read from now."""
        for at, row in enumerate(table.drop_columns(["set_codes"]).to_pylist()):
            own = row["source"] if source is None else source
            lookups = iter([LookupRow(**told) for told in row["lookups"]])
            processes = []
            for told in row["processes"]:
                count = told.pop("lookups")
                processes.append(Process(own, lookups=list(islice(lookups, count)), **told))
            problems = [ProblemRow(own, **told) for told in row["problems"]]
            # Not as a list: these are hundreds for each lookup.
            codes = table["set_codes"][at].values.to_numpy()
            sets = np.split(codes, np.cumsum(row["set_sizes"])[:-1]) if row["set_sizes"] else []
            yield cls(own, processes, problems, row["components"], sets)


def to_arrow(logs: Sequence[LogTables]) -> pa.Table | None:
    """A table of `SCHEMA` with a row for each log; None if a log has a value that fits no column, such as a huge pid."""
    lookups = [[lookup for process in log.processes for lookup in process.lookups] for log in logs]
    counts = [len(process.lookups) for log in logs for process in log.processes]
    components = [log.components for log in logs]
    sizes = [[len(own) for own in log.sets] for log in logs]
    # A log without sets has nothing to concatenate.
    codes = [np.concatenate(log.sets) if log.sets else np.empty(0, dtype=np.int32) for log in logs]
    try:
        columns = [
            pa.array([log.source for log in logs]),
            _rows([log.processes for log in logs], _PROCESS, lookups=counts),
            _rows(lookups, _LOOKUP),
            _rows([log.problems for log in logs], _PROBLEM),
            _lists(components, pa.array(list(chain(*components)), pa.large_string()), pa.LargeListArray),
            _lists(sizes, pa.array(list(chain(*sizes)), pa.int32()), pa.ListArray),
            _lists(codes, pa.array(np.concatenate(codes)), pa.LargeListArray),
        ]
    except (pa.ArrowException, OverflowError, UnicodeError):
        return None
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _rows(
    rows: Sequence[Sequence[object]], columns: dict[str, pa.DataType], **more: list[int]
) -> pa.ListArray:
    flat = list(chain(*rows))
    arrays = [pa.array([getattr(row, name) for row in flat], kind) for name, kind in columns.items()]
    arrays += [pa.array(values, pa.int64()) for values in more.values()]
    return _lists(rows, pa.StructArray.from_arrays(arrays, names=[*columns, *more]), pa.ListArray)


def _lists(rows: Sequence[Sized], values: pa.Array, kind: Any) -> pa.Array:
    """A column of lists: the values in order, split by the lengths of the rows."""
    return kind.from_arrays([0, *accumulate(map(len, rows))], values)
