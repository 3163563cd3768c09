"""Runs held against runs: what is aligned, which hit on one side only, what is not known, and what is compared before anything is picked."""

from collections.abc import Iterable
from itertools import permutations
from typing import Any

import pytest

import cachescope
from cachescope.answers.comparison import ComparedRuns, side_times
from cachescope.answers.starts import first_sides, sides_below, starts_of
from cachescope.answers.time_spent import phase_differences
from cachescope.errors import CachescopeError, NotFoundError
from cachescope.report.comparison import headline
from cachescope.scope import Scope
from tests.conftest import Recording
from tests.made import CODE, Made, aot, fx, run, scope_of
from tests.readings import read_once
from tests.recordings import Recorded

MIRRORED = {"regressed": "fixed", "only_before": "only_after"}
MIRRORED |= {after: before for before, after in MIRRORED.items()}


def changes(scope: Scope, before: Any = (0,), after: Any = (1,)) -> list[str]:
    return [one.change for one in ComparedRuns.of(scope, before, after).aligned]


@pytest.mark.slow
def test_a_program_that_stays_is_aligned_by_its_compiles(tour: Scope) -> None:
    lookups = tour.lookups
    for before, after in permutations(tour.runs["run"][::2], 2):
        sides = [lookups[lookups["run"] == one] for one in (before, after)]
        both = sides[0].merge(sides[1], on=["cache", "compile_id"], how="outer")
        hit, now = both["outcome_x"] == "hit", both["outcome_y"] == "hit"
        found = ComparedRuns.of(tour, [before], [after])
        assert found.counts["regressed"] == (hit & ~now).sum()
        assert found.counts["fixed"] == (~hit & now).sum()
        assert len(found.aligned) == len(both) == 8
        assert found.is_ordered == (before < after)


@pytest.mark.slow
def test_the_fields_are_those_whose_hashes_differ(tour: Scope) -> None:
    for before, after in ((2, 3), (4, 5), (1, 2)):
        for one in ComparedRuns.of(tour, [before], [after]).aligned:
            sides = [tour.hash_details(lookup=rows[0].lookup) for rows in (one.before, one.after)]
            hashes = [dict(zip(side["field"], side["detail_hash"], strict=True)) for side in sides]
            was, now = hashes
            differing = {field for field in was.keys() | now if was.get(field) != now.get(field)}
            assert {change.field for change in one.changes or ()} == differing


@pytest.mark.slow
def test_ranks_are_compared_with_the_same_ranks() -> None:
    scope = cachescope.read(cachescope.sample("four_ranks"))
    cold, warm = [start.runs for start in starts_of(scope)]
    ranks = scope.runs.set_index("run")["rank"]
    assert [ranks[one] for one in cold] == [ranks[one] for one in warm] == [0, 1, 2, 3]
    found = ComparedRuns.of(scope, cold, warm)
    assert found.by_rank and found.counts["fixed"] == len(found.aligned) == 2
    assert [one.hits for one in found.aligned] == [(0, 4), (0, 4)]
    # A rank that regressed is none that is fixed, though as many hit on both sides.
    sides = [cold[:1] + warm[1:2], warm[:1] + cold[1:2]]
    found = ComparedRuns.of(scope, *sides)
    assert found.by_rank and (found.counts["fixed"], found.counts["regressed"]) == (2, 2)
    # Of two ranks of one start neither is the earlier one.
    assert not ComparedRuns.of(scope, cold[:1], cold[1:2]).is_ordered


@pytest.mark.slow
def test_each_rank_has_a_key_of_its_own(recording: Recording) -> None:
    found = ComparedRuns.of(cachescope.read(recording("2.13.0", "rank_in_config")), [0], [1, 2, 3])
    # The one key of the first beside each of the others: nothing is in one side only.
    assert found.counts == {**dict.fromkeys(found.counts, 0), "same": 6}
    wanted = {"inductor_config[aot_inductor.output_path]"}
    assert {change.field for one in found.aligned for change in one.changes or ()} == wanted


def numbers_of(rows: Iterable[Any]) -> tuple[int, ...]:
    return tuple(row.lookup for row in rows)


def check_every_lookup_is_compared_and_the_other_way_round_is_the_mirror(recorded: Recorded) -> None:
    scope = read_once(recorded.folder)
    sides = first_sides(scope, starts_of(scope))
    if sides is None:
        return
    found, mirrored = ComparedRuns.of(scope, *sides), ComparedRuns.of(scope, *sides[::-1])
    run_of = scope.lookups.set_index("lookup")["run"]
    for side, name_of_side in zip(sides, ("before", "after"), strict=True):
        shown = {row.lookup for one in found.aligned for row in getattr(one, name_of_side)}
        assert shown == set(run_of[run_of.isin(side)].index)
    there = {(numbers_of(one.before), numbers_of(one.after)): one.change for one in found.aligned}
    back = {}
    for one in mirrored.aligned:
        back[numbers_of(one.after), numbers_of(one.before)] = MIRRORED.get(one.change, one.change)
    if all(one.by in ("key", "graph") for one in (*found.aligned, *mirrored.aligned)):
        assert there == back
    outcome = scope.lookups.set_index("lookup")["outcome"]
    for one in found.aligned:
        if one.change in ("regressed", "fixed"):
            better, worse = (one.before, one.after) if one.change == "regressed" else (one.after, one.before)
            assert "hit" in {outcome[row.lookup] for row in better}
            assert {outcome[row.lookup] for row in worse} != {"hit"}


def test_the_same_compile_of_another_program_is_not_aligned() -> None:
    """Without details and functions nothing says that two compiles 0/0 are of one graph."""
    scope = scope_of(run(fx("fone", "hit", at=0)), run(fx("ftwo", at=9)))
    assert changes(scope) == ["not_known", "not_known"]
    named = {"function": "f", "file": "/train.py"}
    scope = scope_of(run(fx("fone", "hit", at=0, **named)), run(fx("ftwo", at=9, **named)))
    (one,) = ComparedRuns.of(scope, [0], [1]).aligned
    assert (one.change, one.by, one.changes) == ("regressed", "place", None)


def test_an_outcome_that_was_not_seen_turns_nothing() -> None:
    scope = scope_of(run(fx("fone", "hit", at=0)), run(fx("fone", "unknown", at=9)))
    assert changes(scope) == ["not_known"] == changes(scope, (1,), (0,))


@pytest.mark.parametrize("other", [fx("ftwo", "hit", at=9), fx(None, "bypass", at=9, bypass_reason="no")])
def test_a_graph_that_the_other_side_may_have_is_not_on_one_side_only(other: Made) -> None:
    """As in text logs of a warm run, which have no details of the graphs that AOTAutograd's entries point to."""
    scope = scope_of(run(fx("fone", details={"gm": CODE}, at=0)), run(other))
    assert changes(scope) == ["not_known", "not_known"] == changes(scope, (1,), (0,))


def test_a_bypass_has_no_key_and_stands_at_its_place() -> None:
    named = {"function": "f", "file": "/train.py"}
    hit = aot("aone", "hit", {"gm": CODE, "a": "1"}, at=0, **named)
    told: dict[str, Any] = {"at": 9, "bypass_reason": "no", **named}
    scope = scope_of(run(hit), run(aot(None, "bypass", **told)))
    (one,) = ComparedRuns.of(scope, [0], [1]).aligned
    assert (one.change, one.by, one.changes) == ("regressed", "place", None)
    # A compile that only one side has is in none of the other.
    scope = scope_of(run(hit), run(aot(None, "bypass", compile_id="1/0", **told)))
    assert sorted(changes(scope)) == ["only_after", "only_before"]


def test_the_second_lookup_of_a_key_is_compared_with_the_second() -> None:
    twice = run(fx("fone", at=0), fx("fone", "hit", at=1))
    assert changes(scope_of(twice, run(fx("fone", "hit", at=9)))) == ["fixed", "only_before"]
    assert changes(scope_of(twice, run(fx("fone", at=9), fx("fone", at=10)))) == ["same", "regressed"]


@pytest.mark.parametrize("code", [CODE, CODE.replace("relu", "tanh")], ids=["its graph", "another graph"])
def test_a_second_compile_of_a_process_is_held_against_the_second_one_of_the_other(code: str) -> None:
    """What it is compared with to be explained is in its own process, under a key that both processes looked up."""
    named = {"function": "f", "file": "/train.py"}
    one, two = {"gm": CODE, "grad": "no", "option": "1"}, {"gm": code, "grad": "yes", "option": "1"}
    second = fx("ftwo", details=two, at=1, compile_id="0/1", **named)
    first = run(fx("fone", details=one, at=0, **named), second)
    warm = fx("fone", "hit", one, at=9, **named)
    other = fx("fother", details=two | {"option": "2"}, at=10, compile_id="0/1", **named)
    scope = scope_of(first, run(warm, other))
    fixed, changed = ComparedRuns.of(scope, [0], [1]).aligned
    assert (fixed.change, fixed.by, changed.change) == ("fixed", "key", "same")
    assert [change.field for change in changed.changes or ()] == ["option"]
    # Where the other process did not compile it again, nothing regressed.
    scope = scope_of(first, run(warm))
    assert changes(scope) == ["fixed", "only_before"]
    assert changes(scope, (1,), (0,)) == ["regressed", "only_after"]


def test_the_frame_is_as_described(tour: Scope) -> None:
    frame = ComparedRuns.of(tour, [1], [2]).frame
    assert frame.columns.tolist() == cachescope.describe("compared_lookups")["column"].tolist()
    (regressed,) = frame[(frame["change"] == "regressed") & (frame["cache"] == "fxgraph")].to_dict("records")
    assert regressed["fields"] == ("gm",) and regressed["function"] == "gated_tanh"


def test_lookups_whose_outcome_was_not_seen_are_counted_beside_the_hits() -> None:
    scope = scope_of(run(fx("f1", "hit", at=0), fx("f2", "unknown", at=1)), run(fx("f1", "hit", at=9)))
    rates, *_ = headline(ComparedRuns.of(scope, [0], [1])).cells
    assert rates == ("Hit rate by count", "100 %", "1 of 1, 1 not known → 1 of 1")


def test_a_run_that_is_not_there(tour: Scope) -> None:
    with pytest.raises(NotFoundError, match="no run 99; what was read has runs 0-5"):
        ComparedRuns.of(tour, [0], [99])


def test_phases_are_those_of_the_runs(tour: Scope) -> None:
    phases = tour.phases
    found = side_times(tour, [0, 1], [3])
    sums = phases.groupby("run")["self_time_ns"].sum()
    assert found is not None
    before, after = found
    assert (before.runs, after.total_ns) == (2, sums[3])
    assert before.total_ns == pytest.approx((sums[0] + sums[1]) / 2, abs=len(phases))
    longer = phase_differences(before.phases, after.phases)
    assert sum(longer.values()) == after.total_ns - before.total_ns


def test_no_events_are_no_times() -> None:
    scope = scope_of(run(fx("fone", at=0)), run(fx("fone", at=9)))
    assert side_times(scope, [0], [1]) is None


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
    assert [start.rate.hit_rate for start in starts] == [0, 1]
    missed = scope.lookups[scope.lookups["outcome"] != "hit"]
    assert starts[0].rate.time_lost_ns == missed["time_taken_ns"].sum()
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
