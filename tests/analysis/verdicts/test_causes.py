"""Rows in, causes out: which misses follow from another one, and what remains, by small histories made by hand."""

from typing import Any

import pytest

from tests.analysis.verdicts.test_misses import OTHER
from tests.made import CODE, Details, Made, Run, aot, fx, miss_rows, run, scope_of

G: Details = {"gm": CODE, "x": "1", "y": "1", "example_inputs[0]": "Tensor(4)"}
NAMED = {"function": "f", "file": "a.py"}
HERE = {"cache_dir": "/cache"}
LOAD_ERROR = "EOFError: Ran out of input"


def step(
    at: float,
    of_aot: Details | None = G,
    of_fx: Details | None = G,
    name: str = "1",
    took: float = 2.0,
    **told: Any,
) -> list[Made]:
    """An AOTAutograd miss and that of its graph, two seconds later."""
    return [
        aot(f"a{name}", details=of_aot, at=at, took=took, **{**NAMED, **told}),
        fx(f"f{name}", details=of_fx, at=at + 1, took=1.0, **{**NAMED, **told}),
    ]


def roots(*runs: Run) -> list[bool]:
    return [row["root"] for row in miss_rows(scope_of(*runs))]


X2, Y2 = {**G, "x": "2"}, {**G, "y": "2"}
# What two lookups of a compile know of their keys after a first compile of both, and whether each is a root.
FOLLOWING: dict[str, tuple[Details | None, Details | None, list[bool]]] = {
    "by the same field": (X2, X2, [True, False]),
    "by a field that AOTAutograd's key does not have changed": (X2, Y2, [True, True]),
    "by that and another one": (X2, {**X2, "y": "2"}, [True, True]),
    "AOTAutograd's by more": ({**X2, "y": "2"}, Y2, [True, False]),
    "by the graph that the change made": (X2, {**G, "gm": CODE.replace("relu", "tanh")}, [True, False]),
    "a graph that is new": (X2, {**G, "gm": OTHER}, [True, False]),
    "a graph of which nothing is recorded": (X2, None, [True, False]),
    "a changed graph below one of which nothing is recorded": (None, X2, [True, True]),
    "neither is recorded": (None, None, [True, False]),
    "a new graph below a new program": ({**G, "gm": OTHER}, {**G, "gm": OTHER}, [True, False]),
    "a changed graph below a new program": ({**G, "gm": OTHER}, X2, [True, True]),
}


@pytest.mark.parametrize("case", FOLLOWING)
def test_a_graph_follows_from_the_autograd_lookup_above_it(case: str) -> None:
    of_aot, of_fx, wanted = FOLLOWING[case]
    found = roots(run(*step(0), **HERE), run(*step(100, of_aot, of_fx, "2"), **HERE))
    assert found == [True, False, *wanted]


def test_causes_count_what_follows_and_stand_in_the_order_of_their_cost() -> None:
    scope = scope_of(
        run(*step(0, took=1.0), rank=1, **HERE),
        run(*step(100, X2, X2, "2", took=9.0), rank=0, **HERE),
        run(*step(200, {**X2, "y": "2"}, {**X2, "y": "2"}, "3", took=4.0), rank=2, **HERE),
    )
    causes = scope.causes.to_dict("records")
    assert [cause["fields"] for cause in causes] == [("x",), ("y",), ()]
    assert [cause["cause"] for cause in causes] == [0, 1, 2]
    assert [cause["misses"] for cause in causes] == [2, 2, 2]
    assert [cause["roots"] for cause in causes] == [1, 1, 1]
    assert [cause["runs"] for cause in causes] == [(1,), (2,), (0,)]
    assert [cause["ranks"] for cause in causes] == [(0,), (2,), (1,)]
    assert [cause["time_lost_ns"] for cause in causes] == [10 * 10**9, 5 * 10**9, 2 * 10**9]
    assert [cause["summary"] for cause in causes] == ["x", "y", "first lookups (cold start)"]


def test_of_equal_cost_the_cause_of_more_misses_stands_first() -> None:
    untimed = [
        fx(None, "bypass", at=n, bypass_reason=reason, compile_id=f"{n}/0")
        for n, reason in enumerate(["one", "two", "two", "three", "three", "three"])
    ]
    causes = scope_of(run(*untimed)).causes
    assert causes["summary"].tolist() == ["bypassed: three", "bypassed: two", "bypassed: one"]
    assert causes["misses"].tolist() == [3, 2, 1]
    assert causes["time_lost_ns"].isna().all()
    assert causes["ranks"].tolist() == [()] * 3


@pytest.mark.parametrize(("made", "summary"), [
    (fx(None, "disabled", at=0), "caching was switched off"),
    (fx("f1", "guard_miss", G, at=0), "guards did not hold"),
    (fx("f1", details=G, at=0, load_error=LOAD_ERROR), "entry unavailable: load error"),
    (fx("f1", details=G, at=0), "first lookups (cold start)"),
])  # fmt: skip
def test_a_cause_says_what_it_is(made: Made, summary: str) -> None:
    assert scope_of(run(made)).causes["summary"].tolist() == [summary]


def test_guards_of_one_key_are_one_cause_in_both_caches() -> None:
    guards = [
        aot("a1", "guard_miss", G, at=0, compile_id="0/0"),
        fx("f2", "guard_miss", G, at=5, compile_id="1/0"),
    ]
    (cause,) = scope_of(run(*guards)).causes.to_dict("records")
    assert (cause["misses"], cause["roots"]) == (2, 2)


def test_another_torch_stands_where_its_cost_puts_it() -> None:
    old = {**G, "torch_version": "b'a'", "system_info": "one"}
    new = {**old, "torch_version": "b'b'", "x": "2"}
    scope = scope_of(
        run(*step(0, old, old), **HERE, torch_version="2.10.0"),
        run(*step(100, {**old, "y": "7"}, {**old, "y": "7"}, "2", took=90.0), **HERE, torch_version="2.10.0"),
        run(*step(300, new, new, "3", took=1.0), **HERE, torch_version="2.13.0"),
    )
    causes = scope.causes.to_dict("records")
    (other,) = (cause for cause in causes if "torch_version" in cause["fields"])
    assert other["runs"] == (2,) and "2.10.0" in other["summary"] and "2.13.0" in other["summary"]
    assert other["fields"][0] == "torch_version"
    assert other["time_lost_ns"] < causes[0]["time_lost_ns"]
    assert miss_rows(scope)[-1]["root"] is False
