"""Folders made by hand: whether a name is known, what is compared with what, and what makes folders many."""

from pathlib import Path
from typing import Any

import pytest

import cachescope
from tests.vllm_folders import ENV, make_folder

NOON = 1_790_000_000


def test_the_name_of_a_second_part_was_given_by_the_first(tmp_path: Path) -> None:
    name = make_folder(tmp_path)
    make_folder(tmp_path, code="of a draft model", name=name, prefix="eagle_head")
    rows = cachescope.read(tmp_path).vllm_folders.set_index("prefix")
    assert rows["name_is"].to_dict() == {"backbone": "recomputed", "eagle_head": "given_by_other"}
    assert set(rows["changed"]) == {()}


def test_a_folder_whose_name_does_not_follow_is_neither_blamed_nor_compared_with(tmp_path: Path) -> None:
    make_folder(tmp_path, time=NOON)
    make_folder(tmp_path, {"VLLM_A": "2"}, name="0123456789", time=NOON + 60)
    other = make_folder(tmp_path, {**ENV, "VLLM_A": "3"}, time=NOON + 120)
    scope = cachescope.read(tmp_path)
    rows = scope.vllm_folders.set_index("folder")
    assert rows.loc["0123456789", "name_is"] == "differs"
    assert rows.loc["0123456789", "changed"] == ()
    assert rows.loc["0123456789", "baseline"] is not rows.loc[other, "baseline"]
    assert set(scope.vllm_changes["folder"]) == {other}


def test_folders_of_equal_factors_and_other_names_blame_nothing(tmp_path: Path) -> None:
    make_folder(tmp_path, name="0123456789")
    make_folder(tmp_path, name="9876543210")
    scope = cachescope.read(tmp_path)
    assert set(scope.vllm_folders["name_is"]) == {"differs"}
    assert scope.vllm_changes.empty
    assert scope.vllm_fragments.empty
    assert "follows from no factors" in scope.vllm_folders["reason"][0]


def test_a_cache_dir_that_was_given_is_said_to_be(tmp_path: Path) -> None:
    make_folder(tmp_path, name="my-cache")
    (row,) = cachescope.read(tmp_path).vllm_folders.itertuples()
    assert (row.name_is, row.changed) == ("not_known", ())


def test_without_factors_nothing_is_known_of_a_name(tmp_path: Path) -> None:
    name = make_folder(tmp_path)
    part = tmp_path / "torch_compile_cache" / name / "rank_0_0" / "backbone"
    (part / "cache_key_factors.json").unlink()
    (part / "vllm_compile_cache.py").write_text("{}")
    (row,) = cachescope.read(tmp_path).vllm_folders.itertuples()
    assert (row.folder, row.name_is, row.changed) == (name, "not_known", ())
    assert row.reason.startswith("no cache_key_factors.json that could be read lies there")


def test_the_nearest_has_the_same_configuration_and_was_there_before(tmp_path: Path) -> None:
    make_folder(tmp_path, config="another model", time=NOON)
    far = make_folder(tmp_path, {**ENV, "VLLM_A": "2", "VLLM_LIST": []}, time=NOON + 1)
    new = make_folder(tmp_path, time=NOON + 2)
    rows = cachescope.read(tmp_path).vllm_folders.set_index("folder")
    assert rows.loc[new, "baseline"] == far
    assert rows.loc[new, "changed"] == ("env[VLLM_A]", "env[VLLM_LIST]")
    assert rows.loc[new, "is_order_known"]


def test_equal_times_do_not_tell_which_was_first(tmp_path: Path) -> None:
    make_folder(tmp_path, time=NOON)
    make_folder(tmp_path, {**ENV, "VLLM_A": "2"}, time=NOON)
    assert cachescope.read(tmp_path).vllm_folders["is_order_known"].dropna().tolist() == [False]


def port(number: int, **other: Any) -> dict[str, Any]:
    return {"VLLM_SIDE_PORT": 8000 + number, **other}


ROOT, PORT, DP_RANK = "env[VLLM_ROOT]", "env[VLLM_SIDE_PORT]", "env[VLLM_DP_RANK]"
# What each folder counts besides, its configuration where it is not the usual one, and the rows: of the factors, how many folders
# would be left without them, and what they differ by.
FRAGMENTS: dict[str, tuple[list[dict[str, Any]], list[str], dict[tuple[str, ...], tuple[int, tuple[str, ...]]]]] = {
    "one variable": ([port(n) for n in range(5)], ["cfg"], {(PORT,): (1, ("port",))}),
    "two that change together": (
        [port(n, VLLM_ROOT=f"/home/user{n}/cache") for n in range(10)], ["cfg"], {(ROOT, PORT): (1, ("path", "port"))}),
    "values of processes are told together besides": (
        [port(n, VLLM_ROOT=f"/home/user{n // 5}/cache") for n in range(10)], ["cfg"],
        {(ROOT, PORT): (1, ("path", "port")), (PORT,): (2, ("port",)), (ROOT,): (10, ("path",))}),
    "groups of such variables are told together too": (
        [port(n // 2, VLLM_DP_RANK=n % 2, VLLM_ROOT=f"/home/user{n // 2}/c") for n in range(4)], ["cfg"],
        {(DP_RANK, ROOT, PORT): (1, ("rank", "path", "port")), (ROOT, PORT): (2, ("path", "port")), (DP_RANK,): (2, ("rank",))}),
    # One that makes a folder by being counted is no value of a process, nor is one that differs by more than the process.
    "one that is not counted everywhere": ([{}, port(0), port(1)], ["cfg"], {(PORT,): (1, ())}),
    "one with another of no process": ([port(n, VLLM_A="abcd"[n]) for n in range(4)], ["cfg"], {("env[VLLM_A]", PORT): (1, ())}),
    "two models stay two": (
        [port(n) for n in range(3)], ["one", "two"], {(PORT,): (2, ("port",)), ("config_hash",): (3, ())}),
}  # fmt: skip


def fragments(root: Path) -> dict[tuple[str, ...], Any]:
    return {row.factors: row for row in cachescope.read(root).vllm_fragments.itertuples()}


@pytest.mark.parametrize("case", FRAGMENTS)
def test_what_makes_folders_many(case: str, tmp_path: Path) -> None:
    envs, configs, wanted = FRAGMENTS[case]
    for config in configs:
        for at, env in enumerate(envs):
            make_folder(tmp_path, {**ENV, **env}, config=config, time=NOON + at)
    found = fragments(tmp_path)
    assert {row.factors: (row.folders_without, row.differs_by) for row in found.values()} == wanted


def test_only_a_few_values_are_shown(tmp_path: Path) -> None:
    for number in range(5):
        make_folder(tmp_path, {**ENV, **port(number)}, time=NOON + number)
    (row,) = fragments(tmp_path).values()
    assert (row.examples, row.values, row.folders) == (("8000", "8001", "8002"), 5, 5)


def test_what_a_later_release_does_not_count_is_said(tmp_path: Path) -> None:
    for bundle in ("0", "1"):
        make_folder(tmp_path, {**ENV, "VLLM_RAY_BUNDLE_INDICES": bundle})
    scope = cachescope.read(tmp_path)
    (row,) = scope.vllm_fragments.itertuples()
    assert row.ignored_by == "0.33.0"
    assert (row.folders, row.folders_without) == (2, 1)
    # Every bundle index has this form, so it is no guess.
    assert scope.vllm_changes["text"].str.endswith("(differs by bundle index)").all()


def test_secrets_are_told_apart_and_never_kept(tmp_path: Path) -> None:
    keys = ("hunter2", "swordfish")
    names = [make_folder(tmp_path, {**ENV, "VLLM_API_KEY": key}, time=NOON) for key in keys]
    scope = cachescope.read(tmp_path)
    assert set(scope.vllm_folders["name_is"]) == {"recomputed"}
    assert set(scope.vllm_folders["folder"]) == set(names)
    (change,) = scope.vllm_changes.itertuples()
    assert change.factor == "env[VLLM_API_KEY]"
    for frame in (scope.vllm_factors, scope.vllm_folders, scope.vllm_changes, scope.vllm_fragments):
        assert not any(key in frame.to_string() for key in keys)


def test_a_rank_that_is_alone_in_its_folder_is_compared_with_the_others(tmp_path: Path) -> None:
    make_folder(tmp_path, {**ENV, "VLLM_DP_RANK": 0}, rank="rank_0_0", time=NOON)
    other = make_folder(tmp_path, {**ENV, "VLLM_DP_RANK": 1}, rank="rank_1_0", time=NOON + 1)
    scope = cachescope.read(tmp_path)
    rows = scope.vllm_folders.set_index("folder")
    assert (rows.loc[other, "rank"], rows.loc[other, "changed"]) == (1, ("env[VLLM_DP_RANK]",))
    assert scope.vllm_changes["differs_by"].tolist() == [("rank",)]


SAID = 'env[VLLM_A]: "1" → "2"'
RELEASES = "variables are counted for one of them alone: releases of vLLM differ in that"


@pytest.mark.parametrize(("env", "code", "reason"), [
    ({"VLLM_A": "2"}, "code", f"{SAID}; the other 5 factors equal"),
    ({"VLLM_A": "2", "VLLM_LIST": []}, "code", f'{SAID}; env[VLLM_LIST]: ["x", "y"] → []; the other 4 factors equal'),
    ({"VLLM_A": "2", "VLLM_N0": 0}, "code", f"{SAID}; env[VLLM_N0]: not counted → 0; the other 5 factors equal"),
    # A few variables that only one of them counts are named; many are a release.
    ({f"VLLM_N{at}": at for at in range(4)}, "code",
     "; ".join(f"env[VLLM_N{at}]: not counted → {at}" for at in range(4)) + "; the other 6 factors equal"),
    ({"VLLM_A": "2", "VLLM_LIST": [], **{f"VLLM_N{at}": at for at in range(5)}}, "code",
     f'5 {RELEASES}; {SAID}; env[VLLM_LIST]: ["x", "y"] → []; the other 4 factors equal'),
    ({f"VLLM_N{at}": at for at in range(6)}, "code", f"6 {RELEASES}; the other 6 factors equal"),
    # Of a hash no value is known: it is none that only one of them has.
    ({f"VLLM_N{at}": at for at in range(4)}, "other",
     "; ".join(f"env[VLLM_N{at}]: not counted → {at}" for at in range(4)) + " and 1 more; the other 5 factors equal"),
])  # fmt: skip
def test_the_reason_says_what_differs(env: dict[str, Any], code: str, reason: str, tmp_path: Path) -> None:
    first = make_folder(tmp_path, time=NOON)
    new = make_folder(tmp_path, {**ENV, **env}, code=code, time=NOON + 1)
    rows = cachescope.read(tmp_path).vllm_folders.set_index("folder")
    assert rows.loc[new, "reason"] == reason
    assert rows.loc[first, "reason"] == "nothing was there before to compare with"


def test_folders_come_in_the_order_in_which_they_were_written_and_their_parts_by_rank(tmp_path: Path) -> None:
    later = make_folder(tmp_path, {**ENV, "VLLM_A": "2"}, time=NOON + 1)
    for rank in ("rank_1_0", "rank_0_1", "rank_0_0"):
        name = make_folder(tmp_path, rank=rank, time=NOON)
    for rank in ("rank_0_0", "rank_0_1"):
        make_folder(tmp_path, rank=rank, prefix="a_head", time=NOON)
    unknown = make_folder(tmp_path, {"VLLM_A": "3"}, name="0000000000", time=NOON - 60)
    rows = cachescope.read(tmp_path).vllm_folders
    names = ("folder", "rank", "dp_rank", "prefix")
    assert list(zip(*(rows[name] for name in names), strict=True)) == [
        (name, 0, 0, "a_head"), (name, 0, 0, "backbone"), (name, 0, 1, "a_head"), (name, 0, 1, "backbone"),
        (name, 1, 0, "backbone"), (later, 0, 0, "backbone"), (unknown, 0, 0, "backbone"),
    ]  # fmt: skip


def test_parts_in_several_trees_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for tree, prefix in (("one", "backbone"), ("two", "a_head")):
        make_folder(tmp_path / tree, prefix=prefix, time=NOON)
    assert cachescope.read(tmp_path).vllm_folders["prefix"].tolist() == ["a_head", "backbone"]


def test_the_size_is_of_all_files_of_a_part(tmp_path: Path) -> None:
    part = tmp_path / "torch_compile_cache" / make_folder(tmp_path) / "rank_0_0" / "backbone"
    (part / "vllm_compile_cache.py").write_text("{}")
    (row,) = cachescope.read(tmp_path).vllm_folders.itertuples()
    assert row.size_bytes == sum(file.stat().st_size for file in part.iterdir())


def test_a_part_that_was_copied_out_of_its_folder_has_no_name(tmp_path: Path) -> None:
    """Beside one that has one; parts without a name come after it, in the order of their names."""
    name = make_folder(tmp_path)
    for copied in ("two", "one"):
        part = tmp_path / "torch_compile_cache" / copied
        part.mkdir()
        (part / "vllm_compile_cache.py").write_text("{}")
    rows = cachescope.read(tmp_path).vllm_folders
    assert rows["folder"].tolist() == [name, "", ""]
    assert rows["prefix"].tolist() == ["backbone", "one", "two"]
    assert rows["name_is"].tolist() == ["recomputed", "not_known", "not_known"]
