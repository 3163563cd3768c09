"""The folders that real vLLM wrote, of one rank and of two, and with torch upgraded: names recomputed, each declared change named, nothing blamed where nothing changed."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

import cachescope
from cachescope.scope import Scope
from tests.vllm_recordings import CHANGED, SAME_FOLDER, VERSIONS, Recorded, recorded_ranks, with_factors


@pytest.fixture(scope="module")
def scope(vllm: Recorded) -> Scope:
    return cachescope.read(vllm.cache)


@pytest.mark.slow
def test_every_name_follows_from_its_factors(scope: Scope, vllm: Recorded) -> None:
    folders = with_factors(scope)
    assert set(folders["name_is"]) == {"recomputed"}
    assert set(folders["folder"]) == {vllm.folder(step) for step in vllm.factors}


def test_hashes_are_those_that_vllm_logged(scope: Scope, vllm: Recorded) -> None:
    rows = scope.vllm_factors
    hashes = ("env_hash", "config_hash", "compiler_hash", "code_hash")
    read = set(zip(*(rows[name] for name in hashes), strict=True))
    assert read == {(one["env"], one["cfg"], one["comp"], one["code"]) for one in vllm.factors.values()}


def test_what_was_changed_is_named_and_nothing_else(scope: Scope, vllm: Recorded) -> None:
    folders = with_factors(scope).set_index("folder")
    found = {step: folders.loc[vllm.folder(step)] for step in CHANGED[vllm.version]}
    assert {step: row["changed"] for step, row in found.items()} == CHANGED[vllm.version]
    assert {row["baseline"] for row in found.values()} == {vllm.folder("first")}


def test_steps_without_a_folder_of_their_own_blame_nothing(scope: Scope, vllm: Recorded) -> None:
    first = vllm.folder("first")
    assert {vllm.folder(step) for step in SAME_FOLDER[vllm.version]} == {first}
    folders = with_factors(scope)
    own = folders[folders["folder"] == first]
    assert sorted(own["rank"]) == [0, 1]
    assert set(own["changed"]) == {()}


def test_a_port_is_called_one(scope: Scope, vllm: Recorded) -> None:
    changes = scope.vllm_changes
    (row,) = changes[changes["folder"] == vllm.folder("port")].itertuples()
    assert (row.before, row.after, row.differs_by) == ("5600", "5601", ("port",))


def test_nothing_is_wrong_with_them(scope: Scope) -> None:
    assert scope.problems.empty
    assert set(scope.entries["status"]) == {"ok"}


def test_a_compiled_model_has_a_name_that_nothing_tells_of(scope: Scope) -> None:
    packages = scope.vllm_folders[scope.vllm_folders["prefix"].isna()]
    assert len(packages)
    assert set(packages["name_is"]) == {"not_known"}
    assert packages["baseline"].isna().all()


def test_artifacts_hold_the_key_that_vllm_noted(scope: Scope, vllm: Recorded) -> None:
    artifacts = scope.entries[scope.entries["cache"] == "vllm_artifact"]
    assert len(artifacts)
    assert all(len(keys) == 1 for keys in artifacts["fx_keys"])
    kept = vllm.cache.rglob("vllm_compile_cache.py")
    noted = [re.findall(r"'(a[a-z2-7]{51})'", path.read_text()) for path in kept]
    if vllm.version == "0.33.0":
        assert set(artifacts["cache_key"]) <= {key for keys in noted for key in keys}


def test_a_tree_is_known_wherever_one_points(vllm: Recorded, scope: Scope) -> None:
    folder = vllm.cache / "torch_compile_cache" / vllm.folder("first")
    for inside in (folder, folder / "rank_0_0", folder / "rank_0_0" / "backbone"):
        names = with_factors(cachescope.read(inside))
        assert set(names["folder"]) == {vllm.folder("first")}
        assert set(names["name_is"]) == {"recomputed"}
    single = cachescope.read(folder / "rank_1_0" / "backbone" / "cache_key_factors.json").vllm_factors
    assert single[["rank", "dp_rank", "prefix"]].values.tolist() == [[1, 0, "backbone"]]


_SAVED = re.compile(r"sav\w+ AOT compiled function to (\S+)")
# What the log says of each rank of each step, `<step>_<rank>`. 0.13.0 writes only for the first rank what it compiled.
OUTCOMES = {
    "0.13.0": {
        "compiled": {"first_0", "first_1", "on_one_1", "bundles_0", "bundles_1", "torch_0", "torch_1"},
        "loaded": {"on_one_0"},
    },
    "0.33.0": {
        "compiled": {
            "first_0", "first_1", "on_one_1", "ports_0", "ports_1", "torch_0", "torch_1", "alone_0", "alone_torch_0",
        },
        "loaded": {"again_0", "again_1", "on_one_0", "bundles_0", "bundles_1", "torch_again_0", "torch_again_1"},
    },
}  # fmt: skip
# In what alone the folder of a step differs from the one that is nearest before it; of several as near, that is the latest.
CHANGED_SINCE = {
    "0.13.0": {
        "on_one_1": ("first_0", ("env[VLLM_USE_TRITON_AWQ]",)),
        "bundles_1": ("first_0", ("env[VLLM_RAY_BUNDLE_INDICES]",)),
        "bundles_0": ("bundles_1", ("env[VLLM_RAY_BUNDLE_INDICES]",)),
        "torch_0": ("first_0", ("code_hash", "compiler_hash")),
    },
    "0.33.0": {
        "on_one_1": ("first_0", ("env[VLLM_USE_TRITON_AWQ]",)),
        "ports_0": ("first_0", ("env[VLLM_NIXL_SIDE_CHANNEL_PORT]",)),
        "ports_1": ("ports_0", ("env[VLLM_NIXL_SIDE_CHANNEL_PORT]",)),
        # With two ranks files of torch are traced, with one rank none.
        "torch_0": ("first_0", ("code_hash", "compiler_hash")),
        # The number of ranks is of the configuration.
        "alone_0": ("first_0", ("code_hash", "config_hash")),
        "alone_torch_0": ("alone_0", ("compiler_hash",)),
    },
}
# The step in which each rank has a value of its own: the variable, both values, and what it is called.
OF_EACH = {
    "0.13.0": ("bundles", "env[VLLM_RAY_BUNDLE_INDICES]", '"0"', '"1"', ("bundle index",)),
    "0.33.0": ("ports", "env[VLLM_NIXL_SIDE_CHANNEL_PORT]", "5701", "5702", ("port",)),
}


@pytest.fixture(scope="module", params=VERSIONS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded_ranks(request.param, tmp_path_factory.mktemp("vllm"))


@pytest.fixture(scope="module")
def scope_of_ranks(told: Recorded) -> Scope:
    return cachescope.read(told.cache)


def test_each_rank_wrote_where_its_log_says(told: Recorded, scope_of_ranks: Scope) -> None:
    logged = {(told.folder(step), int(step.rpartition("_")[2])) for step in told.factors}
    folders = with_factors(scope_of_ranks)
    assert set(zip(folders["folder"], folders["rank"], strict=True)) == logged
    assert set(folders["name_is"]) == {"recomputed"}
    assert scope_of_ranks.problems.empty


def test_ranks_of_equal_factors_share_a_folder(told: Recorded) -> None:
    for step in ("first", "torch"):
        assert told.folder(f"{step}_0") == told.folder(f"{step}_1")
    of_each = OF_EACH[told.version][0]
    assert told.folder(f"{of_each}_0") != told.folder(f"{of_each}_1")


def test_what_was_changed_between_steps_of_ranks_is_named_and_nothing_else(
    told: Recorded, scope_of_ranks: Scope
) -> None:
    folders = with_factors(scope_of_ranks).drop_duplicates("folder").set_index("folder")
    steps = CHANGED_SINCE[told.version].items()
    changed = {told.folder(step): (told.folder(before), names) for step, (before, names) in steps}
    assert {
        folder: (row["baseline"], row["changed"]) for folder, row in folders.iterrows() if row["changed"]
    } == changed


def test_only_ranks_that_were_given_other_values_stand_apart(told: Recorded, scope_of_ranks: Scope) -> None:
    step, variable, before, after, kinds = OF_EACH[told.version]
    rows = {row.folder: row for row in scope_of_ranks.vllm_ranks.itertuples()}
    one, each = rows.pop(told.folder("on_one_1")), rows.pop(told.folder(f"{step}_1"))
    assert not rows
    assert (one.ranks, one.baseline) == (("rank_1_0",), told.folder("first_0"))
    assert one.baseline_ranks == ("rank_0_0", "rank_1_0")
    assert (one.factor, one.before, one.after) == ("env[VLLM_USE_TRITON_AWQ]", "false", "true")
    assert not one.is_of_a_rank
    assert (each.ranks, each.baseline) == (("rank_1_0",), told.folder(f"{step}_0"))
    assert (each.factor, each.before, each.after, each.differs_by) == (variable, before, after, kinds)
    assert each.is_of_a_rank


def test_logs_of_both_ranks_are_rows_of_the_right_rank(told: Recorded) -> None:
    starts = cachescope.read(told.logs).vllm_starts
    ranks = {"Worker_TP0": 0, "Worker_TP1": 1, "Worker": 0}
    outcomes = defaultdict(set)
    for row in starts.itertuples():
        assert row.rank == ranks[row.process]
        name = f"{Path(row.source).stem}_{row.rank}"
        outcomes[row.outcome].add(name)
        if name in told.factors and row.folder is not None:
            assert row.folder == told.folder(name)
    assert dict(outcomes) == OUTCOMES[told.version]
    assert len(starts) == sum(map(len, outcomes.values()))


def test_whole_compiled_models_are_of_the_torch_of_their_step(told: Recorded, scope_of_ranks: Scope) -> None:
    models = scope_of_ranks.entries[scope_of_ranks.entries["cache"] == "vllm_aot"]
    saved = {}
    for name, step in told.steps.items():
        for path in _SAVED.findall((told.logs / f"{name}.log").read_text()):
            saved[path.partition("/cache/")[2]] = step["torch"]
    found = {}
    for row in models.itertuples():
        torch = re.search(r"torch ([\d.]+)", row.detail)
        found[row.path.partition("/cache/")[2]] = torch[1]
        assert Path(row.path).read_bytes().startswith(b"PT2AOT") == (torch[1] == "2.15.0")
        assert (row.status, row.name.partition(" at ")[0]) == ("ok", "Model.forward")
    assert set(found.values()) == {step["torch"] for step in told.steps.values()}
    if told.version != "0.13.0":  # which does not say where it saves them
        assert found == saved
