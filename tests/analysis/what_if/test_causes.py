"""Why misses stay misses although their changed fields do not count: small histories, made by hand, and recordings."""

import pytest

from cachescope.columns import records
from cachescope.scope import Scope
from tests.analysis.what_if.test_made_histories import HERE, G, X, f1, f2, here, letters
from tests.conftest import Recording
from tests.made import Run, aot, fx, run, scope_of
from tests.readings import read_once

OUTPUT_PATH = "inductor_config[aot_inductor.output_path]"
# What ranks compile at the same time is compared where it differs by their rank alone.
OF = {"function": "f", "file": "/model.py", "line": 1}


def rank(number: int, at: float, took: float = 1.0) -> Run:
    """A rank with its own number in x."""
    looked_up = fx(f"f{number}", details={**G, "x": f"/rank{number}"}, at=at, took=took, **OF)
    return run(looked_up, rank=number, **HERE)


# What was looked up and stored, and why the second misses without its changed fields.
STAYS: dict[str, tuple[tuple[Run, ...], str]] = {
    "two runs at once": (
        (rank(0, 0.0, took=20.0), rank(1, 10.0)),
        "the runs were concurrent: 2 keys become 1; with a staggered start, 1 of 2 would hit",
    ),
    "one run, which had not stored it": (
        (here(f1(took=20.0), f2(compile_id="1/0")),), "1 miss came before the same process had stored the entry"),
    "another directory": (
        (run(f1(), cache_dir="/other"), here(f2())), "the entry of 1 miss was in another cache directory"),
    "an entry that was gone, beside one that would not have been stored": (
        (here(f1()), here(fx("f8", "hit", {**G, "x": "8"}, at=2)),
         here(fx("f8", details={**G, "x": "8"}, at=15, took=20.0)), here(f2(17))),
        "the entry of 1 miss was gone by then",
    ),
    "an entry that was gone": (
        (here(f1()), here(f1(5, took=20.0)), here(f2())), "the entry of 1 miss was gone by then"),
    "an entry whose guards no log has": (
        (here(f1(), f1(5, "guard_miss", guards_expr="s > 4", compile_id="1/0")), here(f2(20))),
        "whether the guards of an entry would hold for 1 miss is not recorded",
    ),
    "a graph of which nothing was recorded": (
        (run(aot("a1", details=G, at=0.0), f1(1), cache_dir="/other"),
         here(fx("f8", details={**G, "gm": "another"}, at=5.0, took=1.0, compile_id="8/0")),
         here(aot("a2", details=X, at=10.0), fx("f9", at=30.0, took=1.0))),
        "the entry of 1 miss was in another cache directory; the fields of the key of 1 miss are not recorded",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STAYS)
def test_a_miss_that_stays_says_why(case: str) -> None:
    runs, why = STAYS[case]
    scope = scope_of(*runs)
    (row,) = (row for row in records(scope.cause_savings()) if row["fields"] == ("x",))
    assert (row["hits_after"], row["why"]) == (0, why)
    by_cause = records(scope.what_if(without="x").by_cause)
    (asked,) = (row for row in by_cause if row["verdict"] == "key_changed")
    assert (asked["hits_after"], asked["why"]) == (0, why)
    # What is asked of another field says nothing of it.
    assert scope.what_if(without="gm").by_cause["why"].isna().all()


def at_once(count: int, apart: float) -> Scope:
    """So many runs of one graph, each with an x of its own; they begin so many seconds after each other and compile for ten."""
    return scope_of(*(rank(number, number * apart, took=10.0) for number in range(count)))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_staggered_start_is_predicted_as_it_comes_out(count: int) -> None:
    concurrent, staggered = at_once(count, 0.5), at_once(count, 20)
    assert letters(concurrent, "x") == "m" * count
    assert letters(staggered, "x").count("h") == count - 1
    (row,) = records(concurrent.cause_savings())
    wanted = (0, count - 1, (count - 1) * 10**10)
    assert (row["hits_after"], row["staggered"], row["staggered_time_ns"]) == wanted
    assert row["why"] == (
        f"the runs were concurrent: {count} keys become 1; with a staggered start, {count - 1} of {count} would hit"
    )
    (ranked,) = records(concurrent.sensitivity())
    assert (ranked["misses_alone"], ranked["staggered"]) == (0, count - 1)
    (late,) = records(staggered.sensitivity())
    assert (late["misses_alone"], late["staggered"]) == (count - 1, 0)


def test_no_field_is_ranked_for_runs_that_share_a_key_already() -> None:
    """They compile one key at once: that another field does not count changes nothing for them."""
    first, other = (fx("f1", details=G, at=at, took=10.0) for at in (0.0, 0.5))
    scope = scope_of(here(first), here(other), here(aot("a2", details=X, at=30.0)))
    assert scope.sensitivity().empty
    row = next(row for row in records(scope.cause_savings()) if row["verdict"] == "compiled_concurrently")
    assert row["why"].startswith("the runs were concurrent: their keys are equal already")
    assert row["staggered"] == 1


def test_where_the_entry_was_gone_no_staggered_start_helps() -> None:
    """Although another run was compiling it again."""
    assert scope_of(here(f1()), here(f1(5, took=20.0)), here(f2())).sensitivity().empty


def test_what_hits_needs_no_staggered_start() -> None:
    scope = scope_of(here(f1()), here(f2()), here(fx("f3", details={**G, "x": "3"}, at=20, took=1.0)))
    (row,) = (row for row in records(scope.cause_savings()) if row["fields"] == ("x",))
    assert (row["misses"], row["hits_after"], row["staggered"], row["why"]) == (2, 2, 0, None)
    # Nor does one help where no field decides.
    blind = scope_of(*(here(fx(f"f{at}", "bypass", at=at, bypass_reason="no")) for at in range(3)))
    (row,) = records(blind.cause_savings())
    assert (row["misses"], row["staggered"]) == (3, 0)
    assert row["why"] == "the cache was bypassed, whatever the key"


def test_fields_are_not_all_needed_where_one_alone_helps_a_staggered_start() -> None:
    """Two ranks differ in x, and a third in y as well."""
    third = fx("f3", details={**G, "x": "/rank2", "y": "2"}, at=1.0, took=10.0, **OF)
    scope = scope_of(rank(0, 0.0, took=10.0), rank(1, 0.5, took=10.0), run(third, rank=2, **HERE))
    rows = {row["fields"]: row for row in records(scope.sensitivity())}
    found = {fields: (row["staggered"], row["needs_all"]) for fields, row in rows.items()}
    assert found == {("x",): (1, False), ("x", "y"): (2, False)}


def test_graphs_of_another_kind_never_share_a_key(recording: Recording) -> None:
    (row,) = records(read_once(recording("2.13.0", "infer_then_train_fx")).cause_savings())
    assert row["fields"] == ("gm", "fx_kwargs[is_inference]")
    assert "of another kind (forward, backward or inference)" in row["why"]


def test_ranks_that_leak_their_number_and_start_at_once(recording: Recording) -> None:
    """Two ranks, each with an output path of its own: AOTAutograd and FX, so four keys."""
    scope = read_once(recording("2.13.0", "two_ranks_cold_paths"))
    (row,) = records(scope.cause_savings())
    assert row["fields"] == (OUTPUT_PATH,)
    said = "the runs were concurrent: 4 keys become 2; with a staggered start, 2 of 4 would hit"
    assert row["why"] == said
    assert row["staggered_time_ns"] == row["time_lost_ns"] > 0
    assert scope.sensitivity()["fields"].tolist() == [(OUTPUT_PATH,)]
