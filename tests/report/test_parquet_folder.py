"""Sets of hash details of a saved scope: written and read some at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import cachescope
from cachescope.errors import SourceError
from cachescope.readers import stored_frames
from cachescope.report import parquet_folder


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 2, 3, 4096])
def test_sets_come_back_however_many_are_written_and_read_at_a_time(
    at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_folder, "_SETS_AT_ONCE", at_once)
    monkeypatch.setattr(stored_frames, "_ROWS_AT_ONCE", at_once)
    scope = cachescope.read(cachescope.sample("config_flip"))
    scope.save(tmp_path / "saved")
    sets, again = (one.tables.hash_details.sets for one in (scope, cachescope.read(tmp_path / "saved")))
    assert len(again) == len(sets) > 3
    assert all(np.array_equal(one, other) for one, other in zip(sets, again, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "column",
    [
        pytest.param(pa.array([[0], None], pa.list_(pa.int64())), id="a missing set"),
        pytest.param(pa.array([[0, None]], pa.list_(pa.int64())), id="a missing component"),
        pytest.param(pa.array([[0.5]], pa.list_(pa.float64())), id="no whole numbers"),
        pytest.param(pa.array([0, 1]), id="no lists"),
        pytest.param(pa.array([[-1]], pa.list_(pa.int64())), id="before the first"),
        pytest.param(pa.array([[1 << 40]], pa.list_(pa.int64())), id="beyond the last"),
        pytest.param(pa.array([[0], [0]], pa.list_(pa.int64())), id="one set twice"),
    ],
)
def test_sets_that_are_none_are_refused(column: pa.Array, tmp_path: Path) -> None:
    cachescope.read(cachescope.sample("config_flip")).save(tmp_path / "saved")
    parquet.write_table(pa.table({"components": column}), tmp_path / "saved" / "detail_sets.parquet")
    with pytest.raises(SourceError, match="cannot be read"):
        cachescope.read(tmp_path / "saved")


@pytest.mark.slow
def test_whole_numbers_of_any_width_are_read(tmp_path: Path) -> None:
    """As pandas wrote them before: 64 bits."""
    cachescope.read(cachescope.sample("config_flip")).save(tmp_path / "saved")
    file = tmp_path / "saved" / "detail_sets.parquet"
    table = parquet.read_table(file)
    wide = table["components"].cast(pa.list_(pa.int64()))
    parquet.write_table(pa.table({"components": wide}), file)
    assert len(cachescope.read(tmp_path / "saved").tables.hash_details.sets) == table.num_rows
