"""Saved scopes and collected logs that somebody changed: one line says what is wrong, whatever it is."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import cachescope
from cachescope.errors import SourceError
from cachescope.readers.sources import logs_in

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "scope"
    cachescope.read(cachescope.sample("entry_truncated")).save(folder)
    return folder


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
