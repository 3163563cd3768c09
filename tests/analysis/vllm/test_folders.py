"""Folders made by hand: whether a name is known, what is compared with what, and what makes folders many; ranks side by side; the clock of logs beside that of files, and the factors of two folders."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.differences import FieldChange
from cachescope.analysis.verdicts.causes import AdviceFacts
from cachescope.analysis.vllm.factors import Named, between, field_changes_of, vllm_advice
from cachescope.analysis.vllm.starts import Part, Parts, Started, clock_off
from cachescope.cli import main
from cachescope.columns import rows_of
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.vllm import FactorsRow, StartRow
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
    # Values of one factor alone, and no hashes.
    is_value = {factors: factors != ("config_hash",) and len(factors) == 1 for factors in found}
    assert {factors: bool(row.examples) for factors, row in found.items()} == is_value


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


def make_ranks(root: Path, *ranks: int, time: int = NOON, config: str = "cfg", **env: Any) -> str:
    told = {"time": time, "config": config}
    names = {make_folder(root, {**ENV, **env}, rank=f"rank_{rank}_0", **told) for rank in ranks}
    (name,) = names
    return name


def rows(root: Path) -> list[Any]:
    return list(cachescope.read(root).vllm_ranks.itertuples())


def of(*ranks: int, time: int = 0, **told: Any) -> tuple[tuple[int, ...], dict[str, Any]]:
    """A folder with these ranks, written so many seconds after noon."""
    return ranks, {"time": NOON + time, **told}


A, LIST = "env[VLLM_A]", "env[VLLM_LIST]"
OF_THE_PORT = (PORT, ("port",), True)
# Folders, and what is told of them: the number of one, that of the one beside it, and in what they differ, by what, and whether ranks
# have that of their own.
CASES: dict[str, tuple[list[Any], list[tuple[int, int, tuple[str, tuple[str, ...], bool]]]]] = {
    "in one folder": ([of(0, 1), of(0, 1, VLLM_A="2", time=60)], []),
    "of one rank alone": ([of(0, 1, 2, 3), of(2, VLLM_A="2", time=60)], [(1, 0, (A, (), False))]),
    "of two halves the one without the first rank stands apart": ([of(0, 3), of(1, 2, VLLM_A="2", time=60)], [(1, 0, (A, (), False))]),
    "of two starts those near in time": (
        [of(rank, time=3600 * start + rank, VLLM_SIDE_PORT=5600 + 100 * start + rank) for start in (0, 1) for rank in (0, 1)],
        [(1, 0, OF_THE_PORT), (3, 2, OF_THE_PORT)],
    ),
    "the nearest differs in the fewest factors": (
        [of(0, 1), of(0, 1, VLLM_LIST=[], time=60), of(1, VLLM_A="2", time=60)], [(2, 0, (A, (), False))]),
    # The nearest of a first rank is a second rank, which has a nearer first one.
    "a first rank apart from one that lacks it": (
        [of(0, VLLM_A="2"), of(1, time=60), of(0, VLLM_LIST=[], time=70)], [(0, 1, (A, (), False)), (1, 2, (LIST, (), False))]),
    # Its others may have stopped.
    "a first rank": ([of(0, 1), of(0, VLLM_A="2", time=60)], []),
    "a path": ([of(0, VLLM_ROOT="/home/one/cache"), of(1, VLLM_ROOT="/home/two/cache")], [(1, 0, (ROOT, ("path",), False))]),
    "engines of one rank": ([of(0, VLLM_SIDE_PORT=port) for port in (1111, 2222, 3333)], []),
    "of two configurations": ([of(0, 1), of(0, config="of one rank")], []),
    **{
        f"a {kind} of each": (
            [of(rank, time=rank, **{variable: value}) for rank, value in enumerate(values)],
            [(rank, 0, (f"env[{variable}]", (kind,), True)) for rank in (1, 2, 3)],
        )
        for variable, kind, values in (
            ("VLLM_DP_RANK", "rank", range(4)), ("VLLM_NIXL_SIDE_CHANNEL_PORT", "port", range(5600, 5604)),
            ("VLLM_RAY_BUNDLE_INDICES", "bundle index", ("0,4", "1,5", "2,6", "3,7")))
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_ranks_side_by_side(case: str, tmp_path: Path) -> None:
    folders, wanted = CASES[case]
    names = [make_ranks(tmp_path, *ranks, **told) for ranks, told in folders]
    ranks = [tuple(f"rank_{rank}_0" for rank in of_folder) for of_folder, _ in folders]
    found = {(row.folder, row.ranks, row.baseline, row.baseline_ranks): row for row in rows(tmp_path)}
    assert {places: (row.factor, row.differs_by, row.is_of_a_rank) for places, row in found.items()} == {
        (names[one], ranks[one], names[other], ranks[other]): by for one, other, by in wanted
    }


def test_a_folder_whose_name_does_not_follow_is_not_compared(tmp_path: Path) -> None:
    make_ranks(tmp_path, 0, 1)
    make_folder(tmp_path, {**ENV, "VLLM_A": "2"}, name="0123456789", rank="rank_1_0")
    assert not rows(tmp_path)


def test_explain_says_which_are_by_design(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_ranks(tmp_path, 0, 1, VLLM_SIDE_PORT=5600)
    make_ranks(tmp_path, 1, VLLM_SIDE_PORT=5601)
    assert main(["explain", str(tmp_path)]) == 0
    of_ranks = " ".join(capsys.readouterr().out.split()).partition("ranks of one configuration")[2]
    assert "as ranks do" in of_ranks
    assert "these ranks alone" not in of_ranks
    make_ranks(tmp_path, 1, VLLM_A="2", VLLM_SIDE_PORT=5600)
    assert main(["explain", str(tmp_path)]) == 0
    of_ranks = " ".join(capsys.readouterr().out.split()).partition("ranks of one configuration")[2]
    assert "these ranks alone had it" in of_ranks


@pytest.mark.sweep
def test_a_thousand_engines_of_two_ranks(tmp_path: Path) -> None:
    for port in range(7000, 8000, 2):
        for rank in (0, 1):
            make_ranks(tmp_path, rank, VLLM_SIDE_PORT=port + rank, time=NOON + port)
    assert len(rows(tmp_path)) == 500


@pytest.mark.parametrize(
    ("of_first", "of_second", "text"),
    [({"VLLM_SIDE_PORT": 5600}, {}, "5600 → not counted"), ({}, {"VLLM_SIDE_PORT": 5600}, "not counted → 5600")],
)  # fmt: skip
def test_a_variable_that_one_rank_lacks_is_nothing_that_ranks_have_of_their_own(
    of_first: dict[str, int], of_second: dict[str, int], text: str, tmp_path: Path
) -> None:
    make_ranks(tmp_path, 0, **of_first)
    make_ranks(tmp_path, 1, **of_second)
    (row,) = rows(tmp_path)
    assert (row.differs_by, row.is_of_a_rank, row.text) == ((), False, f"env[VLLM_SIDE_PORT]: {text}")


def test_what_is_not_of_the_ranks_besides_is_said(tmp_path: Path) -> None:
    """A hash may differ as well: which of its parts do is not known."""
    make_folder(tmp_path, {**ENV, "VLLM_SIDE_PORT": 5600}, rank="rank_0_0")
    make_folder(tmp_path, {**ENV, "VLLM_SIDE_PORT": 5601}, rank="rank_1_0", code="other")
    of_each = {row.factor: row.is_of_a_rank for row in rows(tmp_path)}
    assert of_each == {"env[VLLM_SIDE_PORT]": True, "code_hash": False}


SECOND = 1_000_000_000
HOUR = 3600 * SECOND
NOON_NS = 1_790_000_000 * SECOND


def started(folder: str) -> Started:
    """A start of ten seconds at noon that compiled into a folder."""
    row = StartRow(
        0, "server.log", 1, None, None, "", "backbone", None, folder, 0, None, None, None, None,
        "compiled", False, False, None, None, None, None,
    )  # fmt: skip
    return Started(0, row, Part(0, 0, "backbone"), 0, NOON_NS, NOON_NS + 10 * SECOND)


@pytest.mark.parametrize(("hours", "off"), [
    ([], 0), ([("a", 0.0)], 0), ([("a", 9.0)], 0),
    # The same folder twice is one.
    ([("a", 9.0), ("a", 9.0)], 0), ([("a", 9.0), ("b", 9.0)], 9),
    ([("a", -8.0), ("b", -8.0), ("c", 9.0)], -8), ([("a", 9.25), ("b", 9.25)], 9.25),
    # One folder that was made by the clock of the log shows that it is not off.
    ([("a", 9.0), ("b", 9.0), ("c", 0.0)], 0),
    # No time zone is a day off, and none a few minutes.
    ([("a", 24.0), ("b", 24.0)], 0), ([("a", 9.1), ("b", 9.1)], 0),
])  # fmt: skip
def test_the_clock_is_off_by_what_two_folders_show(hours: list[tuple[str, float]], off: float) -> None:
    made = [(started(folder), NOON_NS + int(HOUR * by) + 3 * SECOND) for folder, by in hours]
    assert clock_off(made) == off * HOUR


@pytest.mark.parametrize("unknown", [("began", "ended"), ("began",), ("ended",)])
def test_starts_without_times_show_no_other_clock(unknown: tuple[str, ...]) -> None:
    starts = [started(folder)._replace(**dict.fromkeys(unknown)) for folder in ("a", "b")]
    assert clock_off((one, NOON_NS + 9 * HOUR + 3 * SECOND) for one in starts) == 0


def test_factors_that_are_written_long_after_a_start_began_show_no_other_clock() -> None:
    slow = [started(folder)._replace(ended=NOON_NS + HOUR) for folder in ("a", "b")]
    assert clock_off((one, NOON_NS + HOUR // 3) for one in slow) == 0


@pytest.mark.parametrize(("outcome", "began", "is_after", "was_running"), [
    ("compiled", 0, False, True), ("compiled", 5, False, True), ("compiled", 10, True, True), ("compiled", 11, True, False),
    ("compiled", -1, False, False), ("loaded", 5, False, False), ("loaded", 10, True, False),
])  # fmt: skip
def test_which_start_ran_before_or_beside_another(
    outcome: str, began: int, is_after: bool, was_running: bool
) -> None:
    one = started("a")
    one = one._replace(row=replace(one.row, outcome=outcome))
    other = one._replace(at=1, began=NOON_NS + began * SECOND, ended=NOON_NS + 20 * SECOND)
    assert (one.ended_before(other), one.was_running_at(other)) == (is_after, was_running)
    # Never one that stands at the same place in time, itself least of all.
    other = other._replace(at=0)
    assert not one.ended_before(other) and not one.was_running_at(other)


BACKBONE = Part(0, 0, "backbone")


@pytest.mark.parametrize("name", [None, "0123456789"], ids=["follows from its factors", "does not"])
def test_of_several_trees_the_one_is_taken_that_a_log_names(name: str | None, tmp_path: Path) -> None:
    for tree in ("one", "two"):
        folder = make_folder(tmp_path / tree, name=name)
    make_folder(tmp_path, prefix="encoder")
    scope = cachescope.read(tmp_path)
    parts = Parts(rows_of(scope.vllm_factors, FactorsRow), rows_of(scope.entries, EntryRow))
    below = f"torch_compile_cache/{folder}/rank_0_0/backbone"
    one, two = (str(tmp_path / tree / below) for tree in ("one", "two"))
    start = started(folder).row
    for path, wanted in ((one, [one]), (two + "/", [two]), ("/c/elsewhere", [one, two]), (None, [one, two])):
        found = parts.of(replace(start, path=path), BACKBONE)
        assert [one.path for one in found] == wanted
        sources = scope.entries.set_index("entry")["path"]
        assert [Path(sources[one.file.entry]).parent for one in found] == [Path(one) for one in wanted]
    assert not parts.of(start, Part(1, 0, "backbone"))
    assert not parts.of(started("ffffffffff").row, BACKBONE)
    of_parts = [Part(0, 0, prefix) for prefix in ("backbone", "encoder", "eagle_head")]
    assert [parts.has(part) for part in of_parts] == [True, True, False]


@pytest.mark.parametrize(("factor", "before", "after", "kind", "summary"), [
    ("env[VLLM_A]", '"1"', '"2"', "value", '"1" -> "2"'),
    ("env[VLLM_PORT]", "5600", "5601", "value", "apparently differs by port: "),
    # Of a hash the values say nothing: what it is made of does.
    ("code_hash", "aa11", "bb22", "value", "the files that were traced"),
    ("config_hash", "aa11", "bb22", "value", "the configuration"),
    ("env_hash", "aa11", "bb22", "value", "the environment variables that vLLM counts differ"),
])  # fmt: skip
def test_a_factor_that_differs(factor: str, before: str, after: str, kind: str, summary: str) -> None:
    given = ("a", before), ("b", after)
    sides = (Named(name, {factor: value, "env[VLLM_B]": "1"}, None) for name, value in given)
    (change,) = field_changes_of(between(*sides))
    assert (change.field, change.before, change.after, change.kind) == (factor, before, after, kind)
    assert change.summary.startswith(summary)


def test_factors_with_values_come_before_hashes() -> None:
    sides = (Named(name, dict.fromkeys(("code_hash", "env[VLLM_B]", "env[A]"), name), None) for name in "ab")
    assert between(*sides).changed == ("env[A]", "env[VLLM_B]", "code_hash")


@pytest.mark.parametrize(("factor", "first", "sentences"), [
    ("env[VLLM_A]", "Give VLLM_A the same value in every engine, if it need not differ.", 1),
    ("env[VLLM_RAY_BUNDLE_INDICES]", "Give VLLM_RAY_BUNDLE_INDICES the same value in every engine", 2),
    # Of what only the hash is known there is no value to set.
    ("env_hash", "Read vLLM's torch_compile_cache beside the log", 1),
    ("config_hash", "A configuration is compiled for once", 1),
    ("code_hash", "Edited files are compiled for once", 2),
    ("compiler_hash", "vLLM counts torch and the machine", 1),
])  # fmt: skip
def test_what_to_do_about_a_factor(factor: str, first: str, sentences: int) -> None:
    change = FieldChange(factor, "value", "1", "2", "")
    advice = vllm_advice(AdviceFacts("key_changed", changes=(change,)), (change,)) or ""
    assert advice.startswith(first)
    assert advice.count(". ") == sentences - 1
