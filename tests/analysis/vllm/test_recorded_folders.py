"""The folders that real vLLM wrote: names recomputed, each declared change named, nothing blamed where nothing changed."""

import re

import pytest

import cachescope
from cachescope.scope import Scope
from tests.vllm_recordings import CHANGED, SAME_FOLDER, Recorded, with_factors


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
