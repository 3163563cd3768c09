"""What one log told, as columns: what a worker returns, what the index keeps and what a fleet's folder holds.

One log is one row. Its hash details stay integer codes into its own texts until it is merged, where each
distinct text gets the code that reading the same logs one after the other would have given it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import pyarrow as pa

from cachescope.details import Codes, HashDetails
from cachescope.readers.reading import Lookup, Problem, Process, Reading

_TYPES: Final = {"str": pa.string(), "int": pa.int64(), "bool": pa.bool_()}


def _columns(row: type, without: Sequence[str]) -> dict[str, pa.DataType]:
    """The fields of a row and their types, read off its annotations: a new field is carried without a word here."""
    return {f.name: _TYPES[str(f.type).split()[0]] for f in fields(row) if f.name not in without}


# Every row of a log has the source of the log.
_PROCESS: Final = _columns(Process, ["source", "lookups"])
_LOOKUP: Final = _columns(Lookup, [])
_PROBLEM: Final = _columns(Problem, ["source"])


def _rows_of(columns: dict[str, pa.DataType], **more: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct(list((columns | more).items())))


SCHEMA: Final = pa.schema(
    {
        "source": pa.string(),
        "processes": _rows_of(_PROCESS, lookups=pa.int64()),
        "lookups": _rows_of(_LOOKUP),
        "problems": _rows_of(_PROBLEM),
        "components": pa.large_list(pa.large_string()),
        "set_sizes": pa.list_(pa.int32()),
        "set_codes": pa.large_list(pa.int32()),
    }
)


class Met:
    """The codes that a store gave to what logs read together have told so far: each tells only what is new in it."""

    def __init__(self) -> None:
        self.components = np.empty(0, dtype=np.int32)
        self.sets: list[int] = []


@dataclass(frozen=True, slots=True)
class LogTables:
    """One log, read alone: its processes with their lookups, its problems, and its own table of hash details.

    Of logs read together by one worker, each but the first builds on the hash details of those before it.
    """

    source: str
    processes: list[Process]
    problems: list[Problem]
    components: list[str]
    sets: list[Codes]

    @classmethod
    def of(cls, source: str, reading: Reading) -> LogTables:
        """What a reading holds that read this one log."""
        return cls.behind(source, reading, 0, 0)

    @classmethod
    def behind(cls, source: str, reading: Reading, components: int, sets: int) -> LogTables:
        """The same without so many components and sets, which logs before it told."""
        details = reading.details
        return cls(
            source, reading.processes, reading.problems, details.components[components:], details.sets[sets:]
        )

    def merge_into(self, reading: Reading, met: Met | None = None) -> None:
        """Append the log, as if it had been read into `reading`; its rows are `reading`'s from then on.

        `met` is what the logs told that were read together with it, and from then on what it told as well.

        Raises
        ------
        RecordError
            At its first problem, where `reading` is strict.
        """
        self.append_to(reading, self.add_details_to(reading.details, met))

    def add_details_to(self, details: HashDetails, met: Met | None = None) -> list[int]:
        """Keep its hash details in another store; the codes of its sets there."""
        met = Met() if met is None else met
        # Every one of them is a hash detail: it was kept as one.
        new = np.array([details.add_component(text) for text in self.components], dtype=np.int32)
        met.components = np.concatenate((met.components, new))
        met.sets += [details.add_codes(met.components[own].tobytes()) for own in self.sets]
        return met.sets

    def append_to(self, reading: Reading, codes: Sequence[int]) -> None:
        """Append its rows, with these codes for its sets of hash details."""
        for process in self.processes:
            for lookup in process.lookups:
                if lookup.details is not None:
                    lookup.details = codes[lookup.details]
        for problem in self.problems:
            reading.problem(problem.source, problem.where, problem.kind, problem.message)
        reading.processes += self.processes

    def to_arrow(self) -> pa.Table | None:
        """One row of `SCHEMA`; None where a damaged log holds a value that its column cannot, such as a huge pid."""
        lookups = [lookup for process in self.processes for lookup in process.lookups]
        sizes = [len(codes) for codes in self.sets]
        try:
            row = [
                pa.array([self.source]),
                _rows(self.processes, _PROCESS, lookups=[len(p.lookups) for p in self.processes]),
                _rows(lookups, _LOOKUP),
                _rows(self.problems, _PROBLEM),
                _one(pa.array(self.components, pa.large_string()), pa.LargeListArray),
                _one(pa.array(sizes, pa.int32()), pa.ListArray),
                _one(pa.array(_joined(self.sets)), pa.LargeListArray),
            ]
        except (pa.ArrowException, OverflowError, UnicodeError):
            return None
        return pa.Table.from_arrays(row, schema=SCHEMA)

    @classmethod
    def from_arrow(cls, table: pa.Table, source: str | None = None) -> Iterator[LogTables]:
        """The logs of a table of `SCHEMA`, row by row, under the source they are read from now."""
        for number in range(table.num_rows):
            yield cls._from_row(table.slice(number, 1).combine_chunks(), source)

    @classmethod
    def _from_row(cls, table: pa.Table, source: str | None) -> LogTables:
        named = source if source is not None else table["source"][0].as_py()
        column = {name: table[name].chunk(0).flatten() for name in SCHEMA.names[1:]}
        lookups = iter(list(map(Lookup, *_values(column["lookups"], _LOOKUP))))
        processes = []
        *values, counts = _values(column["processes"], [*_PROCESS, "lookups"])
        for count, *told in zip(counts, *values, strict=True):
            own = [next(lookups) for _ in range(count)]
            processes.append(Process(named, lookups=own, **dict(zip(_PROCESS, told, strict=True))))
        problems = [
            Problem(named, *told) for told in zip(*_values(column["problems"], _PROBLEM), strict=True)
        ]
        ends = np.cumsum(column["set_sizes"].to_numpy(), dtype=np.int64)
        sets = np.split(column["set_codes"].to_numpy(), ends[:-1]) if len(ends) else []
        return cls(named, processes, problems, _texts(column["components"]), sets)


def _rows(rows: Sequence[object], columns: dict[str, pa.DataType], **more: list[int]) -> pa.Array:
    arrays = [pa.array([getattr(row, name) for row in rows], kind) for name, kind in columns.items()]
    arrays += [pa.array(values, pa.int64()) for values in more.values()]
    return _one(pa.StructArray.from_arrays(arrays, names=[*columns, *more]), pa.ListArray)


def _one(values: pa.Array, kind: Any) -> pa.Array:
    """A column of one row that holds all the values."""
    return kind.from_arrays([0, len(values)], values)


def _joined(sets: Sequence[Codes]) -> Codes:
    return np.concatenate(sets) if sets else np.empty(0, dtype=np.int32)


def _values(rows: pa.StructArray, names: Sequence[str] | dict[str, pa.DataType]) -> list[list[Any]]:
    return [
        _texts(values) if pa.types.is_string(values.type) else values.to_pylist()
        for values in map(rows.field, list(names))
    ]


def _texts(values: pa.Array) -> list[Any]:
    # Several times as fast as to_pylist; a missing text is None here as well.
    texts: list[Any] = values.to_numpy(zero_copy_only=False).tolist()
    return texts
