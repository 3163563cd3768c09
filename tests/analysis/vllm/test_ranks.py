"""Ranks side by side, of folders made by hand: what each rank has of its own, what one alone has, and where nothing is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.cli import main
from tests.vllm_folders import ENV, make_folder

NOON = 1_790_000_000


def make_ranks(root: Path, *ranks: int, time: int = NOON, config: str = "cfg", **env: Any) -> str:
    """One folder with these ranks."""
    names = {
        make_folder(root, {**ENV, **env}, rank=f"rank_{rank}_0", time=time, config=config) for rank in ranks
    }
    (name,) = names
    return name


def rows(root: Path) -> list[Any]:
    return list(cachescope.read(root).vllm_ranks.itertuples())


def test_ranks_in_one_folder_differ_in_nothing(tmp_path: Path) -> None:
    make_ranks(tmp_path, 0, 1)
    make_ranks(tmp_path, 0, 1, VLLM_A="2", time=NOON + 60)
    assert not rows(tmp_path)


def test_a_variable_of_one_rank_alone_is_named(tmp_path: Path) -> None:
    all_ranks = make_ranks(tmp_path, 0, 1, 2, 3)
    own = make_ranks(tmp_path, 2, VLLM_A="2", time=NOON + 60)
    (row,) = rows(tmp_path)
    assert (row.folder, row.ranks, row.baseline) == (own, ("rank_2_0",), all_ranks)
    assert row.baseline_ranks == ("rank_0_0", "rank_1_0", "rank_2_0", "rank_3_0")
    assert (row.factor, row.before, row.after, row.is_of_a_rank) == ("env[VLLM_A]", '"1"', '"2"', False)


@pytest.mark.parametrize(
    ("variable", "kind"),
    [
        ("VLLM_DP_RANK", "rank"),
        ("VLLM_NIXL_SIDE_CHANNEL_PORT", "port"),
        ("VLLM_RAY_BUNDLE_INDICES", "bundle index"),
    ],
)
def test_what_each_rank_has_of_its_own_is_said_to_be(variable: str, kind: str, tmp_path: Path) -> None:
    for rank in range(4):
        value = f"{rank},{rank + 4}" if kind == "bundle index" else 5600 + rank if kind == "port" else rank
        make_ranks(tmp_path, rank, time=NOON + rank, **{variable: value})
    found = rows(tmp_path)
    assert {row.ranks for row in found} == {("rank_1_0",), ("rank_2_0",), ("rank_3_0",)}
    assert {row.baseline_ranks for row in found} == {("rank_0_0",)}
    assert {(row.factor, row.differs_by, row.is_of_a_rank) for row in found} == {
        (f"env[{variable}]", (kind,), True)
    }


def test_of_two_starts_those_near_in_time_stand_side_by_side(tmp_path: Path) -> None:
    names = {
        (start, rank): make_ranks(
            tmp_path, rank, time=NOON + 3600 * start + rank, VLLM_SIDE_PORT=5600 + 100 * start + rank
        )
        for start in (0, 1)
        for rank in (0, 1)
    }
    assert {row.folder: row.baseline for row in rows(tmp_path)} == {
        names[start, 1]: names[start, 0] for start in (0, 1)
    }


def test_a_first_rank_whose_others_may_have_stopped_is_not_blamed(tmp_path: Path) -> None:
    make_ranks(tmp_path, 0, 1)
    make_ranks(tmp_path, 0, VLLM_A="2", time=NOON + 60)
    assert not rows(tmp_path)


def test_a_path_is_nothing_that_ranks_have_of_their_own(tmp_path: Path) -> None:
    make_ranks(tmp_path, 0, VLLM_ROOT="/home/one/cache")
    make_ranks(tmp_path, 1, VLLM_ROOT="/home/two/cache")
    (row,) = rows(tmp_path)
    assert (row.differs_by, row.is_of_a_rank) == (("path",), False)


def test_engines_of_one_rank_are_not_compared(tmp_path: Path) -> None:
    for port in (1111, 2222, 3333):
        make_ranks(tmp_path, 0, VLLM_SIDE_PORT=port)
    assert not rows(tmp_path)


def test_ranks_of_two_configurations_are_not_compared(tmp_path: Path) -> None:
    make_ranks(tmp_path, 0, 1)
    make_ranks(tmp_path, 0, config="of one rank")
    assert not rows(tmp_path)


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


@pytest.mark.slow
def test_a_thousand_engines_of_two_ranks(tmp_path: Path) -> None:
    for port in range(7000, 8000, 2):
        for rank in (0, 1):
            make_ranks(tmp_path, rank, VLLM_SIDE_PORT=port + rank, time=NOON + port)
    assert len(rows(tmp_path)) == 500


def test_of_two_halves_the_one_without_the_first_rank_stands_apart(tmp_path: Path) -> None:
    first = make_ranks(tmp_path, 0, 3)
    other = make_ranks(tmp_path, 1, 2, VLLM_A="2", time=NOON + 60)
    (row,) = rows(tmp_path)
    assert (row.folder, row.ranks) == (other, ("rank_1_0", "rank_2_0"))
    assert (row.baseline, row.baseline_ranks) == (first, ("rank_0_0", "rank_3_0"))


@pytest.mark.parametrize(
    ("of_first", "of_second", "text"),
    [
        ({"VLLM_SIDE_PORT": 5600}, {}, "5600 → not counted"),
        ({}, {"VLLM_SIDE_PORT": 5600}, "not counted → 5600"),
    ],
)
def test_a_variable_that_one_rank_lacks_is_nothing_that_ranks_have_of_their_own(
    of_first: dict[str, int], of_second: dict[str, int], text: str, tmp_path: Path
) -> None:
    make_ranks(tmp_path, 0, **of_first)
    make_ranks(tmp_path, 1, **of_second)
    (row,) = rows(tmp_path)
    assert (row.differs_by, row.is_of_a_rank, row.text) == ((), False, f"env[VLLM_SIDE_PORT]: {text}")


def test_the_nearest_differs_in_the_fewest_factors(tmp_path: Path) -> None:
    near = make_ranks(tmp_path, 0, 1)
    make_ranks(tmp_path, 0, 1, VLLM_LIST=[], time=NOON + 60)
    make_ranks(tmp_path, 1, VLLM_A="2", time=NOON + 60)
    (row,) = rows(tmp_path)
    assert (row.baseline, row.factor) == (near, "env[VLLM_A]")


def test_a_first_rank_stands_apart_from_one_that_lacks_it(tmp_path: Path) -> None:
    """Its nearest is a second rank, which has a nearer first one."""
    apart = make_ranks(tmp_path, 0, VLLM_A="2")
    second = make_ranks(tmp_path, 1, time=NOON + 60)
    first = make_ranks(tmp_path, 0, VLLM_LIST=[], time=NOON + 70)
    assert {row.folder: row.baseline for row in rows(tmp_path)} == {apart: second, second: first}


def test_what_is_not_of_the_ranks_besides_is_said(tmp_path: Path) -> None:
    """A hash may differ as well: which of its parts do is not known."""
    make_folder(tmp_path, {**ENV, "VLLM_SIDE_PORT": 5600}, rank="rank_0_0")
    make_folder(tmp_path, {**ENV, "VLLM_SIDE_PORT": 5601}, rank="rank_1_0", code="other")
    of_each = {row.factor: row.is_of_a_rank for row in rows(tmp_path)}
    assert of_each == {"env[VLLM_SIDE_PORT]": True, "code_hash": False}
