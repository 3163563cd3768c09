"""The parts in folders of several trees: made by hand, and asked for by what a log names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.vllm.starts import Part, Parts
from cachescope.columns import rows_of
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.vllm import FactorsRow
from tests.analysis.vllm.test_started import started
from tests.vllm_folders import make_folder

BACKBONE = Part(0, 0, "backbone")


@pytest.mark.parametrize("name", [None, "0123456789"], ids=["follows from its factors", "does not"])
def test_of_several_trees_the_one_is_taken_that_a_log_names(name: str | None, tmp_path: Path) -> None:
    for tree in ("one", "two"):
        folder = make_folder(tmp_path / tree, name=name)
    make_folder(tmp_path, prefix="encoder")
    scope = cachescope.read(tmp_path)
    parts = Parts(rows_of(scope.vllm_factors, FactorsRow), rows_of(scope.entries, EntryRow))
    paths = [
        str(tmp_path / tree / "torch_compile_cache" / folder / "rank_0_0" / "backbone")
        for tree in ("one", "two")
    ]
    start = started(folder).row
    for path, wanted in (
        (paths[0], paths[:1]),
        (paths[1] + "/", paths[1:]),
        ("/c/elsewhere", paths),
        (None, paths),
    ):
        found = parts.of(replace(start, path=path), BACKBONE)
        assert [one.path for one in found] == wanted
        sources = scope.entries.set_index("entry")["path"]
        assert [Path(sources[one.entry]).parent for one in found] == [Path(one) for one in wanted]
    assert not parts.of(start, Part(1, 0, "backbone"))
    assert not parts.of(started("ffffffffff").row, BACKBONE)
    of_parts = [Part(0, 0, prefix) for prefix in ("backbone", "encoder", "eagle_head")]
    assert [parts.has(part) for part in of_parts] == [True, True, False]
