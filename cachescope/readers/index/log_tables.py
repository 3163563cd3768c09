"""The contents of a log as plain columns: for the results of workers, for the index and for the folder of a fleet.

One log is one line of JSON. Its hash details remain integer codes into its own texts until the log is merged. Then each
distinct text gets the same code as if the logs had been read one after the other.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import chain, islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

from cachescope.component_sets import Codes
from cachescope.details import HashDetails
from cachescope.frames.compile_rows import IN_NO_TEXT_LOG, CompileRow
from cachescope.frames.recorded_rows import OF_A_RUN, OF_ALL_LOGS, LookupRow, ProblemRow
from cachescope.readers.reading import Compile, Process, Reading

_TYPES: Final[dict[str, type]] = {"str": str, "int": int, "bool": bool, "Time": int, "tuple[str,": list}
_STORED_CODES: Final = np.dtype("<i4")


def _columns(row: type, without: Sequence[str]) -> dict[str, type]:
    """The fields of a row and their types, from its annotations: a new field needs no change here."""
    return {f.name: _TYPES[str(f.type).split()[0]] for f in fields(row) if f.name not in without}


OF_A_PROCESS: Final = {"lookups": LookupRow, "compiles": Compile, "compiled": CompileRow}
"""Lists of rows: of those of a process, its row says how many there are."""
# Every row of a log has the source of the log.
COLUMNS: Final = {
    "processes": _columns(Process, ("source", "kinds", *OF_A_RUN, *OF_A_PROCESS))
    | dict.fromkeys(OF_A_PROCESS, int),
    "lookups": _columns(LookupRow, OF_ALL_LOGS),
    "compiles": _columns(Compile, ()),
    "compiled": _columns(CompileRow, IN_NO_TEXT_LOG),
    "problems": _columns(ProblemRow, ["source"]),
}


MAY_BE_MISSING: Final = {
    name: {f.name for f in fields(row) if "None" in str(f.type)}
    for name, row in zip(COLUMNS, (Process, *OF_A_PROCESS.values(), ProblemRow), strict=True)
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
        rows = {name: [getattr(process, name) for process in self.processes] for name in OF_A_PROCESS}
        counts = {name: list(map(len, of_each)) for name, of_each in rows.items()}
        codes = b"".join(np.asarray(own, _STORED_CODES).tobytes() for own in self.sets)
        held = {
            "source": self.source,
            "processes": _by_column(self.processes, COLUMNS["processes"]) | counts,
            **{name: _by_column([*chain(*of_each)], COLUMNS[name]) for name, of_each in rows.items()},
            "problems": _by_column(self.problems, COLUMNS["problems"]),
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
        rows = {name: _made(kind, _rows(held, name)) for name, kind in OF_A_PROCESS.items()}
        processes = [
            Process(source=own, **told | {name: list(islice(rows[name], told[name])) for name in rows})
            for told in _rows(held, "processes")
        ]
        problems = [ProblemRow(own, **told) for told in _rows(held, "problems")]
        ends = np.cumsum(held["set_sizes"], dtype=np.int64)
        sets = np.split(codes_of(held), ends[:-1]) if held["set_sizes"] else []
        return cls(own, processes, problems, held["components"], sets)


def codes_of(held: dict[str, Any]) -> npt.NDArray[np.int32]:
    """The codes of all sets of a log, one set after the other."""
    return np.frombuffer(b64decode(held["set_codes"], validate=True), _STORED_CODES).astype(np.int32)


def _by_column(rows: Sequence[object], names: Iterable[str]) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in names}


def _made(kind: type, rows: Iterable[dict[str, Any]]) -> Iterator[Any]:
    return (kind(**told) for told in rows)


def _rows(held: dict[str, Any], name: str) -> Iterable[dict[str, Any]]:
    columns = held[name] | {
        column: list(map(tuple, held[name][column])) for column, kind in COLUMNS[name].items() if kind is list
    }
    return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
