"""What can be picked to compare, and what is compared before anything is picked."""

from __future__ import annotations

import pytest

import cachescope
from cachescope.answers.starts import first_sides, sides_below, starts_of
from cachescope.errors import CachescopeError
from tests.conftest import Recording
from tests.made import fx, run, scope_of


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sample", "expected"),
    [("tour", ((4,), (5,))), ("start", ((0,), (1,))), ("preflight", None), ("triton_kernels", None)],
)
def test_the_last_start_and_the_one_before(sample: str, expected: object) -> None:
    scope = cachescope.read(cachescope.sample(sample))
    assert first_sides(scope, starts_of(scope)) == expected


def test_another_program_in_between_is_passed_over(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "two_programs"))
    functions = scope.lookups.groupby("run")["function"].agg(set)
    assert functions[1] == functions[3] and not functions[2] & functions[3]
    assert first_sides(scope, starts_of(scope)) == ((1,), (3,))


def test_the_ranks_of_a_job_are_one_start() -> None:
    scope = cachescope.read(cachescope.sample("four_ranks"))
    starts = starts_of(scope)
    assert [start.ranks for start in starts] == [(0, 1, 2, 3), (0, 1, 2, 3)]
    assert [start.hit_rate for start in starts] == [0, 1]
    assert starts[0].time_lost_ns == scope.lookups["time_taken_ns"][scope.lookups["outcome"] != "hit"].sum()
    assert first_sides(scope, starts) == (starts[0].runs, starts[1].runs)


def test_of_one_job_the_rank_that_differs_is_compared() -> None:
    # All begin before the first of them ends: each lasts ten seconds.
    lasts = {"clock_first_us": 0, "clock_last_us": 10 * 10**6}
    runs = [run(fx("fodd" if rank == 2 else "fone", at=rank), rank=rank, **lasts) for rank in range(4)]
    scope = scope_of(*runs)
    starts = starts_of(scope)
    assert [start.runs for start in starts] == [(0, 1, 2, 3)]
    assert first_sides(scope, starts) == ((0,), (2,))


def test_two_recordings() -> None:
    both = [cachescope.sample(name) for name in ("training", "tour")]
    scope = cachescope.read(*both)
    one, other = sides_below(scope, [str(both[0])], [str(both[1])])
    assert (len(one), len(other)) == (4, 6) and not {*one} & {*other}
    with pytest.raises(CachescopeError, match="the same runs"):
        sides_below(scope, [str(both[0])], [str(both[0])])
    with pytest.raises(CachescopeError, match="no run"):
        sides_below(scope, [str(both[0])], ["/nowhere"])
