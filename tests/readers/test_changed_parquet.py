"""Saved scopes and collected logs that somebody changed: one line says what is wrong, whatever it is."""

import contextlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import cachescope
from cachescope.errors import NotFoundError, SourceError
from cachescope.readers.sources import logs_in
from tests.sampling import sampled

pytestmark = pytest.mark.slow

COPIES = 150
# Of the columns of all files, for each change of one; `CACHESCOPE_DAMAGES=all` for every one.
_OFTEN = 40


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "scope"
    cachescope.read(cachescope.sample("entry_truncated")).save(folder)
    return folder


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collected")
    cachescope.collect(cachescope.sample("config_flip") / "trace", folder=folder)
    return folder


def use(folder: Path) -> None:
    """All of it, so that nothing is left that fails when it is asked for."""
    scope = cachescope.read(folder)
    recorded = ("lookups", "misses", "causes", "contexts", "past_misses")
    for frame in (*recorded, "entries", "guards", "links", "orphans"):
        getattr(scope, frame)
    with contextlib.suppress(NotFoundError):
        scope.hash_details(lookup=0)


def is_refused(folder: Path) -> bool:
    try:
        use(folder)
    except SourceError as error:
        return "\n" not in str(error)
    return False


CHANGES: dict[str, Callable[[pa.Table, int], pa.Table]] = {
    "gone": lambda table, at: table.remove_column(at),
    "twice": lambda table, at: table.append_column(table.field(at), table.column(at)),
    "texts": lambda table, at: put(table, at, pa.array(["x"] * len(table))),
    "numbers": lambda table, at: put(table, at, pa.array([7] * len(table))),
    "huge numbers": lambda table, at: put(table, at, pa.array([2**64 - 1] * len(table), pa.uint64())),
    "negative": lambda table, at: put(table, at, pa.array([-7] * len(table))),
    "bytes": lambda table, at: put(table, at, pa.array([b"\xff"] * len(table))),
    "nothing": lambda table, at: put(table, at, pa.nulls(len(table), table.field(at).type)),
    "NaN": lambda table, at: put(table, at, pa.array([float("nan")] * len(table))),
    "no UTF-8": lambda table, at: put(table, at, pa.array([b"\xff\xfe"] * len(table)).view(pa.string())),
    "lists of numbers": lambda table, at: put(table, at, pa.array([[2**40]] * len(table))),
    "years": lambda table, at: put(table, at, pa.array([2**62] * len(table), pa.timestamp("ns", "UTC"))),
    "dictionary": lambda table, at: put(table, at, pa.array(["x"] * len(table)).dictionary_encode()),
}


def put(table: pa.Table, at: int, values: pa.Array) -> pa.Table:
    return table.set_column(at, table.field(at).name, values)


@pytest.mark.sweep
@pytest.mark.parametrize("change", CHANGES)
def test_a_saved_scope_with_another_column_is_refused_or_whole(
    change: str, saved: Path, tmp_path: Path
) -> None:
    refused = 0
    tables = {file.name: parquet.read_table(file) for file in sorted(saved.glob("*.parquet"))}
    columns = [(name, at) for name, table in tables.items() if len(table) for at in range(table.num_columns)]
    folder = tmp_path / "scope"
    shutil.copytree(saved, folder)
    for name, at in sampled(columns, _OFTEN, change):
        parquet.write_table(CHANGES[change](tables[name], at), folder / name)
        refused += is_refused(folder)
        shutil.copy(saved / name, folder / name)
    assert refused > 3


@pytest.mark.parametrize(
    "manifest",
    ["", "[]", "7", '{"format": NaN}', "{", '{"format": 2, "x": ' + "[" * 100_000, "\x00", "9" * 5_000],
)
def test_a_manifest_that_is_none(manifest: str, saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "scope")
    (tmp_path / "scope" / "cachescope.json").write_text(manifest)
    with pytest.raises(SourceError):
        cachescope.read(tmp_path / "scope")


def test_the_rest_is_collected_where_one_log_cannot_be_read(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(cachescope.sample("config_flip") / "trace", logs)
    whole = cachescope.read(logs)
    # A link that leads nowhere, and compression that is none: by name and by its first bytes a log all the same.
    (logs / "gone.log").symlink_to(tmp_path / "nowhere")
    count = cachescope.collect(logs, folder=tmp_path / "fleet")
    assert count == 3
    there = cachescope.read(tmp_path / "fleet")
    pd.testing.assert_frame_equal(there.tables.lookups.frame, whole.tables.lookups.frame)
    with pytest.raises(SourceError):
        cachescope.collect(tmp_path / "nowhere.log", logs, folder=tmp_path / "fleet")


def test_a_log_that_goes_while_others_are_collected_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(cachescope.sample("config_flip") / "trace", logs)
    _, second, _ = sorted(logs.iterdir())
    # The package shows the function of the same name.
    module = sys.modules["cachescope.scope.collect"]
    found = logs_in

    def and_one_goes(*given: Any) -> Any:
        told = found(*given)
        second.unlink()
        return told

    monkeypatch.setattr(module, "logs_in", and_one_goes)
    assert cachescope.collect(logs, folder=tmp_path / "fleet") == 2
    problems = cachescope.read(tmp_path / "fleet").problems
    assert problems["source"].tolist() == [str(second)]
    assert json.loads(problems.to_json())["kind"] == {"0": "unreadable"}


def test_one_value_in_a_million_rows_is_refused(saved: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(saved, tmp_path / "scope")
    file = copied / "problems.parquet"
    one = parquet.read_table(file).slice(0, 1)
    parquet.write_table(pa.concat_tables([one] * 1_000_000).combine_chunks(), file)
    with pytest.raises(SourceError, match="unpacks to more than 200 times its size"):
        cachescope.read(copied)
