"""Frames of a saved scope that somebody changed: one value in, what is said of it out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import cachescope
from cachescope.columns import STORED
from cachescope.errors import SourceError
from cachescope.frames.described import FRAMES
from cachescope.readers.json_record import MOST_NS, MOST_NS_OF_A_DURATION, MOST_OF_A_COLUMN
from cachescope.readers.parquet_folder import read_batches, read_frames, read_table
from cachescope.rows import TEXT, TUPLE, WHOLE, columns_of
from tests.made import aot, entry, fx, run, scope_of
from tests.vllm_folders import make_folder

NAMES = ("runs", "lookups", "entries", "contexts", "problems")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """The frames of two lookups, an entry and the contexts of their run."""
    folder = tmp_path_factory.mktemp("made") / "scope"
    details = {"gm": "g", "x": "1"}
    scope = scope_of(
        run(aot("a1", details=details, at=0), fx("f1", details=details, at=1, took=1.0)),
        entries=[entry("fxgraph", "f1", details, at=2)],
    )
    scope.save(folder)
    snapshot = folder / "snapshot.json"
    snapshot.write_text(json.dumps({"runtime_context": {}, "compile_context": {}}))
    cachescope.read(snapshot).save(folder / "context")
    places = {name: folder / "context" if name == "contexts" else folder for name in NAMES}
    return {name: parquet.read_table(place / f"{name}.parquet") for name, place in places.items()}


def said(tables: dict[str, pa.Table], folder: Path, frame: str, **changed: Any) -> str | None:
    # What others refer to, and the contexts, which are always asked for.
    names = tuple(dict.fromkeys(("runs", "contexts", frame)))
    for name in names:
        table = tables[name]
        for column, values in changed.items() if name == frame else ():
            kind = table.schema.field(column).type
            own = values if isinstance(values, pa.Array) else pa.array(values, kind)
            table = table.set_column(table.column_names.index(column), column, own)
        parquet.write_table(table, folder / f"{name}.parquet")
    try:
        read_frames(folder, names, 1)
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("frame", "column", "values", "wrong"), [
    ("lookups", "lookup", [0, 2], "does not count its rows"),
    ("lookups", "lookup", [1, 0], "does not count its rows"),
    ("lookups", "lookup", [0, None], "does not count its rows"),
    ("lookups", "lookup", [None, 1], "does not count its rows"),
    ("runs", "run", [1], "does not count its rows"),
    ("lookups", "cache", [None, "fxgraph"], "has missing values"),
    ("lookups", "cache_key", [None, None], None),
    ("lookups", "cache", ["other", "fxgraph"], "has words that are not among its own"),
    ("lookups", "outcome", ["hit", "bypass"], None),
    ("lookups", "outcome", ["hit", "other"], "has words that are not among its own"),
    ("lookups", "direction", ["forward", None], None),
    ("lookups", "direction", ["forward", "up"], "has words that are not among its own"),
    ("lookups", "run", [0, 1], "points nowhere"),
    ("lookups", "run", [0, -1], "points nowhere"),
    ("lookups", "aot_lookup", [None, 1], None),
    ("lookups", "aot_lookup", [None, 2], "points nowhere"),
    ("lookups", "detail_set", [None, 0], None),
    ("lookups", "detail_set", [None, 1], "points nowhere"),
    ("entries", "status", ["torn"], "has words that are not among its own"),
    ("entries", "detail_set", [1], "points nowhere"),
    ("entries", "fx_detail_sets", pa.array([[0]], pa.list_(pa.int64())), None),
    ("entries", "fx_detail_sets", pa.array([[0, 1]], pa.list_(pa.int64())), "points nowhere"),
    ("entries", "fx_detail_sets", pa.array([[None]], pa.list_(pa.int64())), "points nowhere"),
    ("lookups", "time_taken_ns", [-MOST_NS_OF_A_DURATION, MOST_NS_OF_A_DURATION], None),
    ("lookups", "time_taken_ns", [None, MOST_NS_OF_A_DURATION + 1], f"has values beyond {-MOST_NS_OF_A_DURATION} and {MOST_NS_OF_A_DURATION}"),
    ("lookups", "time_taken_ns", [-MOST_NS_OF_A_DURATION - 1, None], f"has values beyond {-MOST_NS_OF_A_DURATION} and {MOST_NS_OF_A_DURATION}"),
    ("lookups", "time_taken_ns", [None, None], None),
    ("lookups", "segment", [-MOST_OF_A_COLUMN, MOST_OF_A_COLUMN], None),
    ("lookups", "segment", [-MOST_OF_A_COLUMN - 1, 0], f"has values beyond {-MOST_OF_A_COLUMN} and {MOST_OF_A_COLUMN}"),
    ("lookups", "outcome", pa.array([1, 2], pa.int64()), "holds int64, not large_string"),
    ("lookups", "outcome", pa.array(["hit", "hit"], pa.large_string()), None),
    ("lookups", "outcome", pa.array(["hit", "hit"], pa.string()), None),
    ("lookups", "segment", pa.array(["a", "b"], pa.string()), "holds string, not int64"),
    ("runs", "sources", pa.array([[b"a"]], pa.list_(pa.binary())), "holds list<element: binary>, not lists of text"),
    ("lookups", "order", pa.array([0, 1], pa.int32()), "holds int32, not int64"),
    ("runs", "sources", pa.array([["a", "b"]], pa.list_(pa.string())), None),
    ("runs", "sources", pa.array([[]], pa.list_(pa.null())), None),
    ("runs", "sources", pa.array([["a"]], pa.large_list(pa.large_string())), None),
    ("runs", "sources", pa.array([[1]], pa.list_(pa.int64())), "holds list<element: int64>, not lists of text"),
    ("runs", "sources", pa.array([None], pa.list_(pa.string())), "holds list<element: string>, not lists of text"),
    ("runs", "sources", pa.array(["text"]), "holds string, not lists of text"),
    ("contexts", "settings", [json.dumps({"a": "b"})], None),
    ("contexts", "settings", [json.dumps({"a": 1, "b": "c"})], "holds no JSON objects of texts"),
    ("contexts", "settings", ["[]"], "holds no JSON objects"),
    ("contexts", "torch_manifest", [json.dumps({"files": {"a": "1"}})], None),
    ("contexts", "torch_manifest", ["{}"], "holds no files"),
    ("contexts", "torch_manifest", [json.dumps({"files": {"a": 1}})], "holds no files"),
    ("contexts", "torch_manifest", ["3"], "holds no JSON objects"),
    ("contexts", "inductor_configs", ["[1]"], None),
    ("contexts", "source", [None], "has missing values"),
])  # fmt: skip
def test_a_value_that_no_reader_returns(
    frame: str, column: str, values: Any, wrong: str | None, tables: dict[str, pa.Table], tmp_path: Path
) -> None:
    found = said(tables, tmp_path, frame, **{column: values})
    assert found == (None if wrong is None else f"{frame}.parquet: {column} {wrong}")


@pytest.mark.parametrize(("env", "wrong"), [
    ("{}", None),
    ('{"a": 1}', None),
    ("[]", "vllm_factors.parquet: env holds no JSON objects"),
    ("3", "vllm_factors.parquet: env holds no JSON objects"),
    ("no JSON", "a saved scope that cannot be read"),
])  # fmt: skip
def test_the_variables_that_vllm_counts_are_an_object(env: str, wrong: str | None, tmp_path: Path) -> None:
    make_folder(tmp_path / "torch_compile_cache")
    folder = tmp_path / "scope"
    cachescope.read(tmp_path / "torch_compile_cache").save(folder)
    table = parquet.read_table(folder / "vllm_factors.parquet")
    assert table.num_rows == 1
    at = table.column_names.index("env")
    parquet.write_table(table.set_column(at, "env", pa.array([env])), folder / "vllm_factors.parquet")
    if wrong is None:
        assert json.loads(cachescope.read(folder).vllm_factors["env"][0]) == json.loads(env)
    else:
        with pytest.raises(SourceError, match=wrong):
            cachescope.read(folder)


def test_times_are_of_an_age_that_a_column_holds(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    kind = tables["lookups"].schema.field("time").type
    for moment, is_fine in ((0, True), (MOST_NS, True), (MOST_NS + 1, False), (-1, False)):
        values = pa.array([moment, None], pa.int64()).cast(kind)
        wrong = f"lookups.parquet: time has values beyond 0 and {MOST_NS}"
        assert said(tables, tmp_path, "lookups", time=values) == (None if is_fine else wrong)


@pytest.mark.parametrize(
    ("numbers", "is_fine"),
    [([], True), ([0, 1], True), ([2], False), ([0, 2], False), ([-1], False), ([0, None], False)],
)
def test_the_lookups_of_a_compile_are_there(
    numbers: list[int | None], is_fine: bool, tables: dict[str, pa.Table], tmp_path: Path
) -> None:
    filled = {
        TUPLE: pa.array([[]], pa.list_(pa.string())),
        TEXT: pa.array(["first"], pa.large_string()),
        WHOLE: pa.array([0], pa.int64()),
    }
    columns = {
        column.name: filled.get(column.dtype, pa.nulls(1, STORED.get(column.dtype)))
        for column in columns_of(FRAMES["compiles"])
    }
    known = {"lookups": pa.array([numbers], pa.list_(pa.int64()))}
    parquet.write_table(pa.table(columns | known), tmp_path / "compiles.parquet")
    for name in ("runs", "lookups", "contexts"):
        parquet.write_table(tables[name], tmp_path / f"{name}.parquet")
    names = ("runs", "lookups", "contexts", "compiles")
    if is_fine:
        assert read_frames(tmp_path, names, 1)["compiles"]["lookups"].tolist() == [tuple(numbers)]
        return
    with pytest.raises(ValueError, match=r"compiles\.parquet: lookups points nowhere"):
        read_frames(tmp_path, names, 1)


def test_a_column_is_there_once(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    lacking = {**tables, "runs": tables["runs"].drop_columns(["pid"])}
    assert said(lacking, tmp_path, "runs") == "runs.parquet: pid is not there, or not once"


@pytest.mark.parametrize("read", [read_table, lambda file, columns: list(read_batches(file, columns))])
def test_a_changed_byte_of_a_page_is_not_believed(
    read: Callable[[Path, list[str]], object], tmp_path: Path
) -> None:
    file, value = tmp_path / "numbers.parquet", (0x1234567).to_bytes(4, "little")
    table = pa.table({"number": pa.array([0x1234567], pa.int32())})
    plain = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
    parquet.write_table(table, file, write_page_checksum=True, **plain)
    read(file, ["number"])
    data = file.read_bytes()
    assert data.count(value) == 1
    file.write_bytes(data.replace(value, (0x1234566).to_bytes(4, "little")))
    with pytest.raises(OSError, match=r"checksum|CRC"):
        read(file, ["number"])


@pytest.mark.slow
def test_one_value_in_a_million_rows_is_refused(tmp_path: Path) -> None:
    cachescope.read(cachescope.sample("entry_truncated")).save(tmp_path / "scope")
    file = tmp_path / "scope" / "problems.parquet"
    one = parquet.read_table(file).slice(0, 1)
    parquet.write_table(pa.concat_tables([one] * 1_000_000).combine_chunks(), file)
    with pytest.raises(SourceError, match="unpacks to more than 200 times its size"):
        cachescope.read(tmp_path / "scope")
