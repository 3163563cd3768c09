"""Rows in, causes out: which misses follow from another one, and what remains, by small histories made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.verdicts.test_misses import OTHER
from tests.made import CODE, Details, Made, Run, aot, fx, miss_rows, run, scope_of

G: Details = {"gm": CODE, "x": "1", "y": "1", "example_inputs[0]": "Tensor(4)"}
NAMED = {"function": "f", "file": "a.py"}
HERE = {"cache_dir": "/cache"}
BACKWARD = {"fx_kwargs[is_backward]": "True", "fx_kwargs[is_inference]": "False"}
FORWARD = {"fx_kwargs[is_backward]": "False", "fx_kwargs[is_inference]": "False"}
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


def test_lookups_of_no_compile_follow_from_nothing() -> None:
    graphs = [fx(f"f{n}", details={**G, "gm": OTHER + str(n)}, at=n, compile_id=None) for n in range(2)]
    assert roots(run(*graphs)) == [True, True]


@pytest.mark.parametrize(
    ("aot_told", "fx_told", "wanted"),
    [
        ({"outcome": "bypass", "bypass_reason": "no"}, {"outcome": "bypass", "bypass_reason": "no"}, [True, False]),
        ({"outcome": "bypass", "bypass_reason": "no"}, {"outcome": "bypass", "bypass_reason": "freezing"}, [True, True]),
        ({"outcome": "guard_miss"}, {"outcome": "guard_miss"}, [True, False]),
        ({"outcome": "guard_miss"}, {"details": X2}, [True, True]),
        ({"outcome": "guard_miss"}, {"details": None}, [True, False]),
        ({"outcome": "hit"}, {"details": X2}, [True]),
    ],
)  # fmt: skip
def test_a_graph_follows_from_what_is_like_it(
    aot_told: dict[str, Any], fx_told: dict[str, Any], wanted: list[bool]
) -> None:
    above = aot("a2", **{"details": G, "at": 100, "took": 2.0, **NAMED, **aot_told})
    below = fx("f2", **{"details": G, "at": 101, "took": 1.0, **NAMED, **fx_told})
    assert roots(run(*step(0), **HERE), run(above, below, **HERE))[2:] == wanted


def test_a_graph_of_another_compile_does_not_follow() -> None:
    """The FX lookup of 1/0 is not below the AOTAutograd lookup of 0/0."""
    above, below = step(100, X2, X2, "2")
    below.told["compile_id"] = "1/0"
    assert roots(run(*step(0), **HERE), run(above, below, **HERE))[2:] == [True, True]


def graph_below(key: str, at: float, **told: Any) -> Made:
    return fx(key, **{"details": G, "at": at, "took": 1.0, **NAMED, **told})


def test_where_a_graph_entry_was_gone_the_autograd_miss_follows_from_it() -> None:
    first = step(0)
    second = [
        aot("a1", details=G, at=100, took=9.0, **NAMED),
        *(graph_below("f1", at, load_error=LOAD_ERROR) for at in (101, 103)),
    ]
    rows = miss_rows(scope_of(run(*first, **HERE), run(*second, **HERE)))[2:]
    assert [(row["kind"], row["root"]) for row in rows] == [
        ("graph entry", False),
        ("load error", True),
        ("load error", False),
    ]
    assert len({row["cause"] for row in rows}) == 1


@pytest.mark.parametrize(
    ("below", "wanted"),
    [({}, [True, False]), ({"details": None}, [True, False]), ({"load_error": LOAD_ERROR}, [True, True])],
)
def test_what_a_failed_compile_left_out_is_compiled_again(below: dict[str, Any], wanted: list[bool]) -> None:
    failed = [aot("a1", details=G, at=0, compile_error="ValueError: no code", **NAMED)]
    rows = miss_rows(
        scope_of(
            run(*failed, **HERE),
            run(aot("a1", details=G, at=100, **NAMED), graph_below("f1", 101, **below), **HERE),
        )
    )[1:]
    assert rows[0]["kind"] == "failed compile"
    assert [row["root"] for row in rows] == wanted


def test_a_backward_graph_follows_from_its_forward_graph() -> None:
    def trained(at: float, key: str, forward: Details, backward: Details | None, **told: Any) -> list[Made]:
        return [
            fx(f"f{key}", details={**forward, **FORWARD}, at=at, took=1.0, is_backward=False, **NAMED),
            fx(f"b{key}", details=None if backward is None else {**backward, **BACKWARD}, at=at + 1, took=1.0,
               is_backward=True, **{**NAMED, **told}),
        ]  # fmt: skip

    cold = run(*trained(0, "1", G, {**G, "gm": OTHER}), **HERE)
    assert roots(cold) == [True, False]
    new = {**G, "gm": "def forward(self, z):\n    return (torch.sort(torch.erf(z)),)"}
    for details in (new, None):
        assert roots(cold, run(*trained(100, "2", X2, details), **HERE))[2:] == [True, False]
    # Of another compile it is a first lookup by itself.
    assert roots(cold, run(*trained(100, "2", X2, new, compile_id="7/0"), **HERE))[2:] == [True, True]
    # Changed by a field of its own as well.
    assert roots(cold, run(*trained(100, "2", X2, {**G, "gm": OTHER, "y": "3"}), **HERE))[2:] == [True, True]


def test_a_key_that_is_missed_again_in_one_compile_follows_from_the_first_time() -> None:
    twice = [aot("a2", details=X2, at=at, took=1.0, **NAMED) for at in (100, 102)]
    assert roots(run(*step(0), **HERE), run(*twice, **HERE))[2] is True
    other = [aot(f"a{n}", details={**G, "x": n}, at=100 + int(n), took=1.0, **NAMED) for n in "23"]
    assert roots(run(*step(0), **HERE), run(*other, **HERE))[2:] == [True, True]


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


@pytest.mark.parametrize(
    ("made", "summary"),
    [
        (fx(None, "disabled", at=0), "caching was switched off"),
        (fx("f1", "guard_miss", G, at=0), "guards did not hold"),
        (fx("f1", details=G, at=0, load_error=LOAD_ERROR), "entry unavailable: load error"),
        (fx("f1", details=G, at=0), "first lookups (cold start)"),
    ],
)
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


OF_THEM = {"gm": OTHER, "x": "1"}
THIRD = {"gm": "def forward(self, z):\n    return (torch.sort(torch.erf(z)),)", "x": "1"}
GONE = {"outcome": "bypass", "bypass_reason": "no"}
# Of lookups without an AOTAutograd miss above them: what is looked up, and whether each is a root.
ALONE: dict[str, tuple[list[Made], list[bool]]] = {
    "two graphs of one compile": ([fx("f2", details=X2, at=100), fx("f3", details={**OF_THEM, "x": "2"}, at=101)], [True, False]),
    "three graphs of one compile": (
        [fx("f2", details=X2, at=100), fx("f3", details={**OF_THEM, "x": "2"}, at=101), fx("f4", details={**G, "x": "2", "y": "2"}, at=102),
         fx("f5", details={**OF_THEM, "x": "2", "new": "1"}, at=103), fx("f6", details={**OF_THEM, "x": "2", "y": "2"}, at=104)],
        [True, False, True, True, False]),
    "of two compiles": ([fx("f2", details=X2, at=100), fx("f3", details={**OF_THEM, "x": "2"}, at=101, compile_id="1/0")], [True, True]),
    "of compiles with one id, after a reset": (
        [fx("f2", details=X2, at=100, segment=0), fx("f3", details={**OF_THEM, "x": "2"}, at=101, segment=1)], [True, True]),
    "for two reasons": ([fx("f2", details=X2, at=100), fx("f3", details={**OF_THEM, "z": "2"}, at=101)], [True, True]),
    "bypassed for one reason": ([fx(None, at=100, **GONE), fx(None, at=101, **GONE)], [True, False]),
    "bypassed for two reasons": ([fx(None, at=100, **GONE), fx(None, at=101, **{**GONE, "bypass_reason": "other"})], [True, True]),
    "below an autograd hit": ([aot("a1", "hit", G, at=99), fx("f2", details=X2, at=100), fx("f3", details={**OF_THEM, "x": "2"}, at=101)], [True, False]),
    "autograd's own keys": ([aot("a2", details=X2, at=100), aot("a3", details={**OF_THEM, "x": "2"}, at=101)], [True, True]),
    "autograd's own key again": ([aot("a2", at=100, **GONE), aot("a2", at=101, **GONE)], [True, False]),
    "autograd without a key": ([aot(None, at=100, **GONE), aot(None, at=101, **GONE)], [True, True]),
    "without a compile": ([fx(None, at=100, **GONE, compile_id=None), fx(None, at=101, **GONE, compile_id=None)], [True, True]),
}  # fmt: skip


@pytest.mark.parametrize("case", ALONE)
def test_of_what_missed_for_one_reason_in_one_compile_the_first_is_the_root(case: str) -> None:
    lookups, wanted = ALONE[case]
    before = [
        fx("f0", details=G, at=0, took=1.0),
        fx("f1", details=OF_THEM, at=2, took=1.0, compile_id="1/0"),
        aot("a0", details=G, at=4, took=1.0, compile_id="2/0"),
        aot("a9", details=OF_THEM, at=6, took=1.0, compile_id="3/0"),
    ]
    assert roots(run(*before, **HERE), run(*lookups, **HERE))[4:] == wanted
