"""Scopes saved by `Scope.save`: a folder of Parquet files and one JSON file that describes them.

Anyone may have changed the files. A frame that passes the check has its declared columns and types, its numbers are in the
range that readers return, and its references to another frame point to a row of that frame.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from cachescope.columns import STORED, pandas_type
from cachescope.details import HashDetails
from cachescope.errors import SourceError
from cachescope.frames.described import FRAMES
from cachescope.readers.assemble import Tables
from cachescope.readers.json_record import MOST_NS, MOST_NS_OF_A_DURATION, MOST_OF_A_COLUMN, are_texts
from cachescope.readers.kinds import MANIFEST
from cachescope.rows import REAL, TEXT, TIME, TUPLE, WHOLE, Column, columns_of
from cachescope.table import Table
from cachescope.terms import RUNTIME_FORMS

FORMAT: Final = 9
SAVED_FRAMES: Final = (
    "runs", "lookups", "entries", "contexts", "problems", "kernels", "autotune", "vllm_factors", "vllm_starts", "phases", "compiles", "symbols",
)  # fmt: skip


def read_saved_scope(path: str) -> Tables:
    """Read a saved scope back, with the same codes; of a damaged or wrong file an error of one line."""
    folder = Path(path)
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        found = manifest.get("format") if isinstance(manifest, dict) else None
        if found != FORMAT:
            message = f"was saved in format {found}; this cachescope reads {FORMAT}: read the sources again"
            raise SourceError(path, message)
        details = _details(folder)
        loaded = read_frames(folder, SAVED_FRAMES, len(details.sets))
    except _FAILURES as error:
        said = " ".join(str(error).split())[:300]
        raise SourceError(path, f"a saved scope that cannot be read: {said}") from error
    tables: dict[str, Table[Any]] = {name: Table(FRAMES[name], frame=frame) for name, frame in loaded.items()}
    return Tables(**tables, hash_details=details)  # type: ignore[arg-type] # of frames alone


def _details(folder: Path) -> HashDetails:
    components = read_table(folder / "components.parquet", ["component"])["component"]
    details = HashDetails()
    details.restore(components.to_pylist(), _sets(folder / "detail_sets.parquet"))
    return details


def _sets(file: Path) -> Iterator[array[int]]:
    """The component codes of each set."""
    for batch in read_batches(file, ["components"], _MOST_TIMES_OF_SETS):
        lists = batch.column(0)
        if not pa.types.is_list(lists.type) or not pa.types.is_integer(lists.type.value_type):
            raise ValueError("detail_sets.parquet: components has another type")
        codes = lists.flatten()
        if lists.null_count or codes.null_count:
            raise ValueError("detail_sets.parquet: components has missing values")
        # Of 64 bits: none may become the number of a component by being cut.
        numbers, ends = array("q", codes.to_numpy().astype(np.int64).tobytes()), lists.offsets.to_numpy()
        yield from (numbers[start:end] for start, end in pairwise((ends - ends[0]).tolist()))


# The number of a row is its position.
_NUMBERS: Final = {"runs": "run", "lookups": "lookup", "entries": "entry", "contexts": "context"}
_OF_LOOKUPS: Final = dict.fromkeys(("lookup", "aot_lookup"), "lookups")
_REFERENCES: Final = {"run": "runs", "entry": "entries", "detail_set": "sets", **_OF_LOOKUPS}
# Columns of lists of numbers; other lists are lists of texts.
_LISTED: Final = {("compiles", "lookups"): "lookups", ("entries", "fx_detail_sets"): "sets"}
# Columns of the frame contexts that contain a JSON object of texts; one more contains an object, and the forms any value.
_JSON_TEXTS: Final = ("settings", "environment", "key_fields", "aot_key_fields", "functorch_config")

_ROWS_AT_ONCE: Final = 4096
_MOST_TIMES: Final = 200
# The sets of lookups that differ in two of 640 fields have 220 times their size.
_MOST_TIMES_OF_SETS: Final = 1_000
_ALWAYS_BYTES: Final = 32 << 20
_FAILURES: Final = (
    OSError, ValueError, OverflowError, MemoryError, RecursionError, KeyError, pa.ArrowException,
)  # fmt: skip
_Need = Callable[[str, bool], None]
"""Takes what is wrong with a column unless something holds."""


def read_table(file: Path | str, columns: list[str] | None = None) -> pa.Table:
    """Read a whole Parquet file and check every text and every offset; any of `_FAILURES` may be raised."""
    with parquet.ParquetFile(file) as stored:
        schema = stored.schema_arrow
    batches = list(read_batches(file, columns))
    return pa.Table.from_batches(batches, None if batches else schema)


def read_batches(
    file: Path | str, columns: list[str] | None, most_times: int = _MOST_TIMES
) -> Iterator[pa.RecordBatch]:
    """As `read_table`, some rows at a time; a value that is stored once may stand in a million rows."""
    most = max(_ALWAYS_BYTES, most_times * os.path.getsize(file))
    with parquet.ParquetFile(file, page_checksum_verification=True) as stored:
        groups = map(stored.metadata.row_group, range(stored.num_row_groups))
        too_much = ValueError(f"unpacks to more than {most_times} times its size")
        if sum(group.total_byte_size for group in groups) > most:
            raise too_much
        for batch in stored.iter_batches(_ROWS_AT_ONCE, columns=columns):
            batch.validate(full=True)
            most -= batch.nbytes
            if most < 0:
                raise too_much
            yield batch


def read_frames(folder: Path, names: tuple[str, ...], sets: int) -> dict[str, pd.DataFrame]:
    """Read the frames of a saved scope with `sets` sets of hash details; any of `_FAILURES` may be raised."""
    found = {name: _frame(folder, name) for name in names}
    sizes = {name: len(frame) for name, frame in found.items()} | {"sets": sets}
    for name, frame in found.items():
        need = partial(_need, name)
        if (number := _NUMBERS.get(name)) is not None:
            counted = frame[number].fillna(-1).tolist()
            need(number, "does not count its rows", counted == list(range(len(frame))))
        for declared in columns_of(FRAMES[name]):
            column, values, words = declared.name, frame[declared.name], declared.words
            if declared.missing == "never":
                need(column, "has missing values", bool(values.notna().all()))
            if column != number and (into := _REFERENCES.get(column)) is not None:
                are_rows = values.between(0, sizes[into] - 1).fillna(True)
                need(column, "points nowhere", bool(are_rows.all()))
            if (into := _LISTED.get((name, column))) is not None:
                numbers = (one for listed in values for one in listed)
                are_all = all(one is not None and 0 <= one < sizes[into] for one in numbers)
                need(column, "points nowhere", are_all)
            need(column, "has words that are not among its own", not words or {*values.dropna()} <= words)
    _check_json(found["contexts"])
    if "vllm_factors" in found:
        are_objects = all(isinstance(json.loads(text), dict) for text in found["vllm_factors"]["env"])
        _need("vllm_factors", "env", "holds no JSON objects", are_objects)
    return found


def _frame(folder: Path, name: str) -> pd.DataFrame:
    table = read_table(folder / f"{name}.parquet")
    return pd.DataFrame({column.name: _series(table, column, name) for column in columns_of(FRAMES[name])})


def _series(table: pa.Table, column: Column, frame: str) -> pd.Series[Any]:
    need = partial(_need, frame, column.name)
    need("is not there, or not once", table.column_names.count(column.name) == 1)
    values = table[column.name]
    if column.dtype == TUPLE:
        return pd.Series(_tuples(values, column, need), dtype=object, index=range(table.num_rows))
    stored = STORED[column.dtype]
    is_text = column.dtype == TEXT and _is_text(values.type)
    need(f"holds {values.type}, not {stored}", is_text or values.type == stored)
    _check_range(values, column, need)
    # The same types as in `frame_of`.
    series: pd.Series[Any] = values.to_pandas(types_mapper=lambda _: pandas_type(column.dtype))
    return series


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _tuples(values: pa.ChunkedArray, column: Column, need: _Need) -> list[tuple[Any, ...]]:
    if not len(values):
        # Without rows, the type of the lists is unknown.
        return []
    is_list = pa.types.is_list(values.type) or pa.types.is_large_list(values.type)
    inner = values.type.value_type if is_list else values.type
    fits = pa.types.is_null(inner) or (pa.types.is_int64(inner) if column.is_of_numbers else _is_text(inner))
    what = "numbers" if column.is_of_numbers else "text"
    need(f"holds {values.type}, not lists of {what}", is_list and fits and not values.null_count)
    return [tuple(listed) for listed in values.to_pylist()]


def _check_range(values: pa.ChunkedArray, column: Column, need: _Need) -> None:
    least, most = -MOST_OF_A_COLUMN, MOST_OF_A_COLUMN
    if column.dtype == TIME:
        values, least, most = values.cast(pa.int64()), 0, MOST_NS
    elif column.unit == "ns":
        least, most = -MOST_NS_OF_A_DURATION, MOST_NS_OF_A_DURATION
    elif column.dtype == REAL:
        need("has numbers that are none", not pc.any(pc.invert(pc.is_finite(values))).as_py())
        return
    elif column.dtype != WHOLE:
        return
    found = pc.min_max(values).as_py()
    fits = found["min"] is None or (least <= found["min"] and found["max"] <= most)
    need(f"has values beyond {least} and {most}", fits)


def _check_json(contexts: pd.DataFrame) -> None:
    for column in (*RUNTIME_FORMS, "torch_manifest", *_JSON_TEXTS):
        for text in contexts[column].dropna():
            value = json.loads(text)
            if column not in RUNTIME_FORMS:
                _need("contexts", column, "holds no JSON objects", isinstance(value, dict))
            if column in _JSON_TEXTS:
                _need("contexts", column, "holds no JSON objects of texts", are_texts(value))
            if column == "torch_manifest":
                _need("contexts", column, "holds no files", are_texts(value.get("files")))


def _need(frame: str, column: str, otherwise: str, is_so: bool) -> None:
    if not is_so:
        raise ValueError(f"{frame}.parquet: {column} {otherwise}")
