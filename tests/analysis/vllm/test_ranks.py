"""Ranks side by side, of folders made by hand: what each rank has of its own, what one alone has, and where nothing is said."""

from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.cli import main
from tests.vllm_folders import ENV, make_folder

NOON = 1_790_000_000


def make_ranks(root: Path, *ranks: int, time: int = NOON, config: str = "cfg", **env: Any) -> str:
    names = {
        make_folder(root, {**ENV, **env}, rank=f"rank_{rank}_0", time=time, config=config) for rank in ranks
    }
    (name,) = names
    return name


def rows(root: Path) -> list[Any]:
    return list(cachescope.read(root).vllm_ranks.itertuples())


def of(*ranks: int, time: int = 0, **told: Any) -> tuple[tuple[int, ...], dict[str, Any]]:
    """A folder with these ranks, written so many seconds after noon."""
    return ranks, {"time": NOON + time, **told}


A, LIST, PORT, ROOT = (f"env[VLLM_{name}]" for name in ("A", "LIST", "SIDE_PORT", "ROOT"))
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
