"""Reads frames stored as Parquet and checks them against their declarations: anyone may have changed the files.

A frame that passes has its columns and types, its numbers are in the range that readers return, and its references to
another frame point to a row of that frame.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cachescope.columns import STORED, pandas_type
from cachescope.errors import SourceError
from cachescope.frames.described import FRAMES
from cachescope.readers.json_record import MOST_NS, MOST_NS_OF_A_DURATION, MOST_OF_A_COLUMN
from cachescope.rows import REAL, TEXT, TIME, TUPLE, WHOLE, Column, columns_of
from cachescope.terms import CACHES, OUTCOMES, VLLM

# The number of a row is its position.
_NUMBERS: Final = {"runs": "run", "lookups": "lookup", "entries": "entry", "contexts": "context"}
_REFERENCES: Final = {
    "lookups": {"run": "runs", "aot_lookup": "lookups", "detail_set": "sets"},
    "entries": {"detail_set": "sets"},
    "contexts": {"run": "runs"},
    "kernels": {"entry": "entries"},
    "autotune": {"entry": "entries"},
    "vllm_factors": {"entry": "entries"},
    "vllm_starts": {"lookup": "lookups"},
    "phases": {"run": "runs"},
    "compiles": {"run": "runs"},
    "symbols": {"run": "runs"},
}
# Columns of lists of numbers; other lists are lists of texts.
_LISTED: Final = {("compiles", "lookups"): "lookups"}
_WORDS: Final = {
    ("lookups", "cache"): frozenset({*CACHES, VLLM}),
    ("lookups", "outcome"): frozenset(OUTCOMES),
    ("lookups", "direction"): frozenset({"forward", "backward", "inference"}),
    ("lookups", "details"): frozenset({"recorded", "from_entry", "from_log", "incomplete", "not_recorded"}),
    ("vllm_starts", "outcome"): frozenset({"loaded", "compiled", "not_known"}),
    ("compiles", "kind"): frozenset({"first", "recompile", "resume", "backward", "limit"}),
    ("entries", "status"): frozenset({"ok", "damaged", "unreadable", "temporary", "foreign"}),
}
# Columns of the frame contexts that contain JSON: any value, an object, or an object of texts.
_JSON: Final = ("inductor_configs", "torch_determinism_configs", "cuda_matmul_precision_configs")
_JSON_OBJECTS: Final = ("torch_manifest",)
_JSON_TEXTS: Final = ("settings", "environment", "key_fields", "aot_key_fields")

_ROWS_AT_ONCE: Final = 4096


@contextlib.contextmanager
def failures_of(source: str, what: str) -> Iterator[None]:
    """Turn every failure to read a damaged or wrong Parquet file into an error of one line."""
    try:
        yield
    except (
        OSError,
        ValueError,
        OverflowError,
        MemoryError,
        RecursionError,
        KeyError,
        pa.ArrowException,
    ) as error:
        said = " ".join(str(error).split())[:300]
        raise SourceError(source, f"{what} that cannot be read: {said}") from error


def read_table(file: Path | str, columns: list[str] | None = None) -> pa.Table:
    """Read a whole Parquet file and check every text and every offset; to be used within `failures_of`."""
    from pyarrow import parquet

    with parquet.ParquetFile(file, page_checksum_verification=True) as stored:
        table = stored.read(columns=columns)
    table.validate(full=True)
    return table


def read_batches(file: Path | str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """As `read_table`, some rows at a time."""
    from pyarrow import parquet

    with parquet.ParquetFile(file, page_checksum_verification=True) as stored:
        for batch in stored.iter_batches(_ROWS_AT_ONCE, columns=columns):
            batch.validate(full=True)
            yield batch


def read_frames(folder: Path, names: tuple[str, ...], sets: int) -> dict[str, pd.DataFrame]:
    """Read the frames of a saved scope with `sets` sets of hash details; to be used within `failures_of`."""
    found = {name: _frame(folder, name) for name in names}
    sizes = {name: len(frame) for name, frame in found.items()} | {"sets": sets}
    for name, frame in found.items():
        if (number := _NUMBERS.get(name)) is not None:
            _need(
                frame[number].fillna(-1).tolist() == list(range(len(frame))),
                name,
                number,
                "does not count its rows",
            )
        for declared in columns_of(FRAMES[name]):
            if declared.missing == "never":
                _need(bool(frame[declared.name].notna().all()), name, declared.name, "has missing values")
        for column, into in _REFERENCES.get(name, {}).items():
            _need(
                bool(frame[column].between(0, sizes[into] - 1).fillna(True).all()),
                name,
                column,
                "points nowhere",
            )
        for (of, column), into in _LISTED.items():
            if of == name:
                numbers = (number for listed in frame[column] for number in listed)
                are_rows = all(number is not None and 0 <= number < sizes[into] for number in numbers)
                _need(are_rows, name, column, "points nowhere")
        for (of, column), words in _WORDS.items():
            if of == name:
                _need(
                    set(frame[column].dropna()) <= words, name, column, "has words that are not among its own"
                )
    _check_json(found["contexts"])
    if "vllm_factors" in found:
        are_objects = all(isinstance(json.loads(text), dict) for text in found["vllm_factors"]["env"])
        _need(are_objects, "vllm_factors", "env", "holds no JSON objects")
    return found


def _frame(folder: Path, name: str) -> pd.DataFrame:
    table = read_table(folder / f"{name}.parquet")
    return pd.DataFrame({column.name: _series(table, column, name) for column in columns_of(FRAMES[name])})


def _series(table: pa.Table, column: Column, frame: str) -> pd.Series[Any]:
    _need(table.column_names.count(column.name) == 1, frame, column.name, "is not there, or not once")
    values = table[column.name]
    if column.dtype == TUPLE:
        return pd.Series(_tuples(values, column, frame), dtype=object, index=range(table.num_rows))
    stored = STORED[column.dtype]
    is_text = column.dtype == TEXT and (
        pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    )
    _need(is_text or values.type == stored, frame, column.name, f"holds {values.type}, not {stored}")
    _check_range(values, column, frame)
    # The same types as in `frame_of`.
    series: pd.Series[Any] = values.to_pandas(types_mapper=lambda _: pandas_type(column.dtype))
    return series


def _tuples(values: pa.ChunkedArray, column: Column, frame: str) -> list[tuple[Any, ...]]:
    if not len(values):
        # Without rows, the type of the lists is unknown.
        return []
    is_list = pa.types.is_list(values.type) or pa.types.is_large_list(values.type)
    inner = values.type.value_type if is_list else values.type
    is_text = pa.types.is_string(inner) or pa.types.is_large_string(inner)
    fits = pa.types.is_null(inner) or (pa.types.is_int64(inner) if column.is_of_numbers else is_text)
    _need(
        is_list and fits and not values.null_count,
        frame,
        column.name,
        f"holds {values.type}, not lists of {'numbers' if column.is_of_numbers else 'text'}",
    )
    return [tuple(listed) for listed in values.to_pylist()]


def _check_range(values: pa.ChunkedArray, column: Column, frame: str) -> None:
    least, most = -MOST_OF_A_COLUMN, MOST_OF_A_COLUMN
    if column.dtype == TIME:
        values, least, most = values.cast(pa.int64()), 0, MOST_NS
    elif column.unit == "ns":
        least, most = -MOST_NS_OF_A_DURATION, MOST_NS_OF_A_DURATION
    elif column.dtype == REAL:
        _need(
            not pc.any(pc.invert(pc.is_finite(values))).as_py(),
            frame,
            column.name,
            "has numbers that are none",
        )
        return
    elif column.dtype != WHOLE:
        return
    found = pc.min_max(values).as_py()
    fits = found["min"] is None or (least <= found["min"] and found["max"] <= most)
    _need(fits, frame, column.name, f"has values beyond {least} and {most}")


def _check_json(contexts: pd.DataFrame) -> None:
    for column in (*_JSON, *_JSON_OBJECTS, *_JSON_TEXTS):
        for text in contexts[column].dropna():
            value = json.loads(text)
            if column not in _JSON:
                _need(isinstance(value, dict), "contexts", column, "holds no JSON objects")
            if column in _JSON_TEXTS:
                _need(_are_texts(value), "contexts", column, "holds no JSON objects of texts")
            if column == "torch_manifest":
                _need(_are_texts(value.get("files")), "contexts", column, "holds no files")


def _are_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())


def _need(is_so: bool, frame: str, column: str, otherwise: str) -> None:
    if not is_so:
        raise ValueError(f"{frame}.parquet: {column} {otherwise}")
