"""What was built under equal keys: recorded, with what was set before each run as the truth; and made by hand."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from tests.conftest import Directory, unpacked

pytestmark = pytest.mark.slow

RECORDED = sorted((Path(__file__).parents[2] / "data" / "built").glob("*.tar.xz"))


@pytest.fixture(scope="module", params=RECORDED, ids=lambda path: path.name.removesuffix(".tar.xz"))
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(request.param, tmp_path_factory.mktemp("built"))


def results(before: Path, after: Path) -> pd.DataFrame:
    comparison = cachescope.compare(before, after)
    assert comparison.graphs is not None
    assert not comparison.graphs.groups
    assert comparison.built is not None
    return comparison.built


def test_what_was_built_anew_is_the_same(built: Path) -> None:
    assert sorted(results(built / "first", built / "again")["result"]) == ["same", "same", "times"]


def test_a_pass_that_keeps_its_uuid_makes_other_code_under_one_key(built: Path) -> None:
    found = results(built / "first", built / "other_pass")
    (row,) = found[found["result"] == "code"].itertuples()
    assert row.cache == "fxgraph"
    assert "tanh" in row.evidence
    sources = [
        {path.read_text() for path in (built / side).glob(f"*/{key}.py")}
        for side, key in (("first", row.before), ("other_pass", row.after))
    ]
    assert ["tanh" in "".join(texts) for texts in sources] == [False, True]
    assert sorted(found["result"]) == ["code", "same", "times"]


def test_another_choice_is_told_apart_from_other_times(built: Path) -> None:
    found = results(built / "first", built / "other_choice")
    (row,) = found[found["cache"] == "autotune"].itertuples()
    assert (row.result, row.name) == ("choice", "packed_linear")
    assert row.before.startswith("_mkl_linear")
    assert row.after.startswith("Cpp")
    assert set(found[found["cache"] == "fxgraph"]["result"]) == {"same"}


def test_an_entry_holds_its_code_itself(built: Path, tmp_path: Path) -> None:
    for side in ("first", "other_pass"):
        shutil.copytree(built / side, tmp_path / side)
        for path in (tmp_path / side).rglob("*.py"):
            path.unlink()
    found = results(tmp_path / "first", tmp_path / "other_pass")
    assert sorted(found["result"]) == ["code", "same", "times"]


@pytest.mark.parametrize(("changed", "result"), [
    ({}, "same"), ({"XBLOCK": 16}, "choice"), ({"num_warps": 4}, "choice"),
    # How long the search took, and what its candidates were.
    ({"time_taken_ms": 70}, "same"), ({"configs_hash": "0" * 64}, "same"),
    # The same configuration, found another way.
    ({"found_by_coordesc": True}, "same"),
], ids=str)  # fmt: skip
def test_a_kernel_that_is_tuned_differently(
    changed: dict[str, object], result: str, directory: Directory, tmp_path: Path
) -> None:
    """One file of a recorded directory is edited by hand."""
    recorded = directory("triton_kernels") / "cache_t2100"
    shutil.copytree(recorded, tmp_path / "other")
    edited, *others = sorted((tmp_path / "other").glob("*/*.best_config"))
    edited.write_text(json.dumps(json.loads(edited.read_text()) | changed))
    found = results(recorded, tmp_path / "other")
    configurations = found[found["cache"] == "best_config"]
    found = dict(zip(configurations["cache_key"], configurations["result"], strict=True))
    assert found == {edited.stem: result, **{path.stem: "same" for path in others}}


def test_several_entries_of_one_key_and_equal_guards_are_not_compared(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built / "other_pass", tmp_path / "other")
    for entry in (tmp_path / "other" / "fxgraph").glob("*/*/*"):
        shutil.copy(entry, entry.with_name("another"))
    assert set(results(built / "first", tmp_path / "other")["cache"]) == {"autotune"}


def test_logs_hold_nothing_that_was_built() -> None:
    sample = cachescope.sample("config_flip")
    assert cachescope.compare("run:0", "run:1", within=cachescope.read(sample)).built is None
