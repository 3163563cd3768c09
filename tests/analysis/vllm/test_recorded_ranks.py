"""Two ranks of one real engine of vLLM, and torch upgraded: each folder's name recomputed, each declared change named."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.scope import Scope
from tests.vllm_recordings import Recorded, recorded_ranks

# The steps of which a rank compiled, and did not load a whole compiled model; `<step>_<rank>`.
COMPILED = {
    "first_0", "first_1", "on_one_1", "ports_0", "ports_1", "torch_0", "torch_1", "alone_0", "alone_torch_0",
}  # fmt: skip
# In what alone the folder of a step differs from the one that is nearest before it; of several as near, that is the latest.
CHANGED = {
    "on_one_1": ("first_0", ("env[VLLM_USE_TRITON_AWQ]",)),
    "ports_0": ("first_0", ("env[VLLM_NIXL_SIDE_CHANNEL_PORT]",)),
    "ports_1": ("ports_0", ("env[VLLM_NIXL_SIDE_CHANNEL_PORT]",)),
    # With two ranks files of torch are traced, with one rank none.
    "torch_0": ("first_0", ("code_hash", "compiler_hash")),
    # The number of ranks is of the configuration.
    "alone_0": ("first_0", ("code_hash", "config_hash")),
    "alone_torch_0": ("alone_0", ("compiler_hash",)),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded_ranks(tmp_path_factory.mktemp("vllm"))


@pytest.fixture(scope="module")
def scope(told: Recorded) -> Scope:
    return cachescope.read(told.cache)


def with_factors(scope: Scope) -> pd.DataFrame:
    folders = scope.vllm_folders
    return folders[folders["entry"].notna()]


def test_each_rank_wrote_where_its_log_says(told: Recorded, scope: Scope) -> None:
    assert set(told.factors) == COMPILED
    logged = {(told.folder(step), int(step.rpartition("_")[2])) for step in COMPILED}
    folders = with_factors(scope)
    assert set(zip(folders["folder"], folders["rank"], strict=True)) == logged
    assert set(folders["name_is"]) == {"recomputed"}
    assert scope.problems.empty


def test_ranks_of_equal_factors_share_a_folder(told: Recorded) -> None:
    for step in ("first", "torch"):
        assert told.folder(f"{step}_0") == told.folder(f"{step}_1")
    assert told.folder("ports_0") != told.folder("ports_1")


def test_what_was_changed_is_named_and_nothing_else(told: Recorded, scope: Scope) -> None:
    folders = with_factors(scope).drop_duplicates("folder").set_index("folder")
    changed = {told.folder(step): (told.folder(before), names) for step, (before, names) in CHANGED.items()}
    assert {
        folder: (row["baseline"], row["changed"]) for folder, row in folders.iterrows() if row["changed"]
    } == changed


def test_only_ranks_that_were_given_other_values_stand_apart(told: Recorded, scope: Scope) -> None:
    rows = {row.folder: row for row in scope.vllm_ranks.itertuples()}
    one, port = rows.pop(told.folder("on_one_1")), rows.pop(told.folder("ports_1"))
    assert not rows
    assert (one.ranks, one.baseline, one.baseline_ranks) == (
        ("rank_1_0",),
        told.folder("first_0"),
        ("rank_0_0", "rank_1_0"),
    )
    assert (one.factor, one.before, one.after, one.is_of_a_rank) == (
        "env[VLLM_USE_TRITON_AWQ]",
        "false",
        "true",
        False,
    )
    assert (port.ranks, port.baseline, port.baseline_ranks) == (
        ("rank_1_0",),
        told.folder("ports_0"),
        ("rank_0_0",),
    )
    assert (port.before, port.after, port.differs_by, port.is_of_a_rank) == ("5701", "5702", ("port",), True)


def test_logs_of_both_ranks_are_rows_of_the_right_rank(told: Recorded) -> None:
    starts = cachescope.read(told.logs).vllm_starts
    ranks = {"Worker_TP0": 0, "Worker_TP1": 1, "Worker": 0}
    found = {}
    for row in starts.itertuples():
        assert row.rank == ranks[row.process]
        found[f"{Path(row.source).stem}_{row.rank}"] = row
    assert len(found) == len(starts) == sum(step["ranks"] for step in told.steps.values())
    assert {name for name, row in found.items() if row.outcome == "compiled"} == COMPILED
    assert {row.outcome for name, row in found.items() if name not in COMPILED} == {"loaded"}
    assert {name: found[name].folder for name in COMPILED} == {name: told.folder(name) for name in COMPILED}


def test_whole_compiled_models_are_of_the_torch_of_their_step(told: Recorded, scope: Scope) -> None:
    models = scope.entries[scope.entries["cache"] == "vllm_aot"].set_index("path")
    saved = {}
    for name, step in told.steps.items():
        for line in (told.logs / f"{name}.log").read_text().splitlines():
            if (match := re.search(r"saved AOT compiled function to (\S+)$", line)) is not None:
                saved[match[1].partition("/cache/")[2]] = step["torch"]
    assert len(saved) == len(COMPILED)
    assert {
        path.partition("/cache/")[2]: row["detail"].partition("torch ")[2].partition(",")[0].partition("+")[0]
        for path, row in models.iterrows()
    } == saved
    for path, row in models.iterrows():
        is_new = Path(str(path)).read_bytes().startswith(b"PT2AOT")
        assert is_new == ("torch 2.15.0" in row["detail"])
        assert (row["status"], row["device_types"]) == ("ok", ("cpu",))
        assert row["name"].startswith("Model.forward at ")
