"""Sets of hash details of a saved scope: written and read some at a time."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import cachescope
from cachescope.errors import SourceError
from cachescope.readers import parquet_folder as reading
from cachescope.readers.parquet_folder import FORMAT
from cachescope.report import parquet_folder
from cachescope.scope import Scope
from tests.made import fx, run, scope_of

SETS = [{"gm": f"g{number}", **{f"x[{at}]": "1" for at in range(number)}} for number in range(5)]


def made() -> Scope:
    return scope_of(run(*(fx(f"f{at}", details=details, at=at) for at, details in enumerate(SETS))))


@pytest.mark.parametrize("at_once", [1, 2, 4096])
def test_sets_of_lookups_come_back(at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_folder, "_SETS_AT_ONCE", 3)
    monkeypatch.setattr(reading, "_ROWS_AT_ONCE", at_once)
    made().save(tmp_path / "saved")
    scope = cachescope.read(tmp_path / "saved")
    found = [scope.hash_details(lookup=number) for number in range(5)]
    assert [dict(zip(one["field"], one["value_text"], strict=True)) for one in found] == SETS


INT64 = pa.list_(pa.int64())


@pytest.mark.parametrize(("column", "wrong"), [
    (pa.array([[0], None], INT64), "components has missing values"),
    (pa.array([[0, None]], INT64), "components has missing values"),
    (pa.array([[0.5]], pa.list_(pa.float64())), "components has another type"),
    (pa.array([0, 1]), "components has another type"),
    (pa.array([[-1]], INT64), "set 0 has components that are not there"),
    (pa.array([[10]], INT64), "set 0 has components that are not there"),
    (pa.array([[0], [0]], INT64), "set 1 is there twice"),
])  # fmt: skip
def test_other_sets_are_refused(column: pa.Array, wrong: str, tmp_path: Path) -> None:
    made().save(tmp_path / "saved")
    parquet.write_table(pa.table({"components": column}), tmp_path / "saved" / "detail_sets.parquet")
    with pytest.raises(SourceError, match=f"a saved scope that cannot be read: .*{wrong}"):
        cachescope.read(tmp_path / "saved")


@pytest.mark.parametrize(("manifest", "wrong"), [
    ('{"format": 4}', f"was saved in format 4; this cachescope reads {FORMAT}"),
    ("{}", "was saved in format None"),
    ("[5]", "was saved in format None"),
    ("5", "was saved in format None"),
    ('{"format": NaN}', "was saved in format nan"),
    ("{", "a saved scope that cannot be read"),
    ("", "a saved scope that cannot be read"),
    ("\0", "a saved scope that cannot be read"),
    ("9" * 5_000, "a saved scope that cannot be read"),
    ('{"format": 2, "x": ' + "[" * 100_000, "a saved scope that cannot be read"),
], ids=range(10))  # fmt: skip
def test_a_scope_of_another_format_is_refused(manifest: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "cachescope.json").write_text(manifest)
    with pytest.raises(SourceError, match=wrong):
        cachescope.read(tmp_path)


def test_a_text_that_is_none_is_refused(tmp_path: Path) -> None:
    made().save(tmp_path / "saved")
    file = tmp_path / "saved" / "components.parquet"
    table = parquet.read_table(file)
    kept = (text.as_py().encode() for text in table["component"][1:])
    texts = pa.array([b"\xff", *kept])
    whole = pa.LargeStringArray.from_buffers(
        len(texts), texts.cast(pa.large_binary()).buffers()[1], texts.cast(pa.large_binary()).buffers()[2]
    )
    parquet.write_table(pa.table({"component": whole}), file)
    with pytest.raises(SourceError, match=r"a saved scope that cannot be read: .*UTF8"):
        cachescope.read(tmp_path / "saved")


@pytest.mark.slow
def test_whole_numbers_of_any_width_are_read(tmp_path: Path) -> None:
    """As pandas wrote them before: 64 bits."""
    cachescope.read(cachescope.sample("config_flip")).save(tmp_path / "saved")
    file = tmp_path / "saved" / "detail_sets.parquet"
    table = parquet.read_table(file)
    parquet.write_table(pa.table({"components": table["components"].cast(pa.list_(pa.int64()))}), file)
    assert len(cachescope.read(tmp_path / "saved").tables.hash_details.sets) == table.num_rows
