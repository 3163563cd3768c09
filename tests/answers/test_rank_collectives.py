"""Collectives that ranks compiled: recorded with gloo, what `kind_programs.py` says by hand, and rows made by hand."""

from collections.abc import Callable
from pathlib import Path

import pytest

import cachescope
from cachescope.answers.time_spent import TimeSpent
from cachescope.report.as_json import time_object
from cachescope.report.terminal import terminal_lines
from cachescope.report.time_spent import time_blocks
from tests.conftest import DATA, Archive
from tests.readings import read_once

pytestmark = pytest.mark.slow

Ranks = Callable[[str, str], Path]
_VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in (DATA / "collectives").iterdir())
_ALL_REDUCE = "torch.ops._c10d_functional.all_reduce_.default"
_GATHERED = "torch.ops._c10d_functional.all_gather_into_tensor.default"


@pytest.fixture
def ranks(archive: Archive) -> Ranks:
    return lambda version, way: archive(f"collectives/{version}") / version / way


@pytest.mark.parametrize("version", _VERSIONS)
def test_compiles_name_the_collectives_that_their_graphs_have(version: str, ranks: Ranks) -> None:
    scope = read_once(ranks(version, "apart"))
    rank_of = scope.runs.set_index("run")["rank"]
    found = {
        (rank_of[row.run], row.function): [name for name in row.collectives if "wait_tensor" not in name]
        for row in scope.compiles.itertuples()
    }
    assert found == {
        (0, "step"): [_ALL_REDUCE] * 2,
        (1, "step"): [_ALL_REDUCE],
        **{(rank, "gathered"): [_GATHERED, _ALL_REDUCE] for rank in (0, 1)},
        **{(rank, "alone"): [] for rank in (0, 1)},
    }


@pytest.mark.parametrize("version", _VERSIONS)
def test_a_function_compiled_with_different_collectives_is_named(version: str, ranks: Ranks) -> None:
    scope = read_once(ranks(version, "apart"))
    spent = TimeSpent.of(scope)
    (apart,) = spent.apart
    assert (apart.compile_id, apart.is_backward) == ("0/0", False)
    assert apart.of_ranks == (((_ALL_REDUCE,) * 2, (0,)), ((_ALL_REDUCE,), (1,)))
    said = "step (collectives.py:10), compile 0/0, was compiled with different collectives: all_reduce ×2 in rank 0; all_reduce in rank 1"
    lines = [line.text for line in terminal_lines(time_blocks(spent))]
    assert said in lines
    below = lines[lines.index(said) + 1]
    assert below == "ranks may differ there for a reason, as the stages of a pipeline do"
    (reported,) = time_object(scope, spent)["different_collectives"]  # type: ignore[misc]
    assert reported["of_ranks"][1] == {"ranks": (1,), "collectives": (_ALL_REDUCE,)}  # type: ignore[index,call-overload]


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("way", ["alike", "warm"])
def test_nothing_is_said_of_equal_ones_and_of_cached_graphs(version: str, way: str, ranks: Ranks) -> None:
    """Torch writes no schedule of a graph that it does not compile."""
    scope = read_once(ranks(version, way))
    assert bool(scope.lookups["outcome"].eq("hit").any()) == (way == "warm")
    spent = TimeSpent.of(scope)
    assert spent.ranks is not None and spent.apart == ()


def test_nothing_is_said_where_one_rank_found_its_graph_in_a_cache(ranks: Ranks) -> None:
    apart, ran_warm = (ranks(_VERSIONS[0], way) for way in ("apart", "warm"))
    (cold,), (other,) = (apart.glob(f"*rank_{rank}_*") for rank in (0, 1))
    (warm,) = ran_warm.glob("*rank_1_*")
    assert TimeSpent.of(cachescope.read(cold, warm)).apart == ()
    assert len(TimeSpent.of(cachescope.read(cold, other)).apart) == 1
    # Of a job that ran twice, no rank is one process.
    assert TimeSpent.of(cachescope.read(cold, other, warm)).apart == ()
