"""Rows in, causes out: which misses follow from another one, and what remains, by small histories made by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.verdicts.misses import Miss, Why, link_consequences
from cachescope.frames.recorded_rows import LookupRow
from cachescope.terms import AOTAUTOGRAD
from cachescope.verdict_kinds import Verdict
from tests.analysis.plain_rows import TEMPLATE, history_of
from tests.analysis.verdicts.test_misses import OTHER
from tests.conftest import DATA, Recording, unpacked
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
    "by that and another one, which AOTAutograd's key does not have": (X2, {**X2, "y": "2"}, [False, True]),
    "AOTAutograd's by more": ({**X2, "y": "2"}, Y2, [True, False]),
    "by the graph that the change made": (X2, {**G, "gm": CODE.replace("relu", "tanh")}, [True, False]),
    "a graph that is new": (X2, {**G, "gm": OTHER}, [True, False]),
    "a graph of which nothing is recorded": (X2, None, [True, False]),
    # AOTAutograd's key has every field of the process that an FX key has.
    "a changed graph below one of which nothing is recorded": (None, X2, [False, True]),
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
    first = aot("a1", "guard_miss", G, at=0, compile_id="0/0")
    guards = [first, fx("f2", "guard_miss", G, at=5, compile_id="1/0")]
    (cause,) = scope_of(run(*guards)).causes.to_dict("records")
    assert (cause["misses"], cause["roots"]) == (2, 2)


def test_an_option_that_only_the_graph_s_key_holds_is_the_cause_of_what_follows_from_it() -> None:
    """With cpp_wrapper=True torch 2.6 and 2.8 change three options of Triton, and AOTAutograd's key has these alone."""
    runs = []
    for at, is_on in ((0, "False"), (100, "True")):
        options = {**G, "inductor_config[triton.store_cubin]": is_on}
        graph = {**options, "inductor_config[cpp_wrapper]": is_on, "fx_kwargs[cpp_wrapper]": is_on}
        runs.append(run(*step(at, options, graph, str(at)), **HERE))
    cause = scope_of(*runs).causes.to_dict("records")[-1]
    assert (cause["misses"], cause["roots"]) == (2, 1)
    assert "inductor_config[cpp_wrapper]" in cause["fields"]


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


AOT = replace(TEMPLATE, lookup=0, cache=AOTAUTOGRAD, cache_key="a1")
FX = replace(TEMPLATE, lookup=1, aot_lookup=0, cache_key="f1")


NONE = -1


def why(verdict: Verdict, kind: str = "", *changed: str) -> Why:
    return Why(verdict, "", "recorded", "", changed, kind)


def follows(found: list[LookupRow], *whys: Why) -> list[int]:
    """The number of the miss that each follows from, and -1 for a root."""
    rows = enumerate(zip(found, whys, strict=True))
    misses = [Miss(at, row, why, None) for at, (row, why) in rows]
    link_consequences(misses, history_of([replace(row, detail_set=None) for row in found]))
    assert [miss.root for miss in misses] == [miss.follows is None for miss in misses]
    return [-1 if miss.follows is None else miss.follows.index for miss in misses]


FIRST, NEW_DETAILS, GUARDS = why("first_lookup"), why("details_not_recorded"), why("guard_failed")
CONCURRENT, NO_DETAIL = why("compiled_concurrently"), why("no_detail_differs")
X, XY, Y = why("key_changed", "", "x"), why("key_changed", "", "x", "y"), why("key_changed", "", "y")
GRAPH = why("key_changed", "edit 1", "gm", "example_inputs[0]")
ONE_TORCH, OTHER_TORCH = (
    why("key_changed", "upgrade: 1", "torch_version"),
    why("key_changed", "upgrade: 2", "torch_version", "x"),
)
DELETED, DAMAGED = why("entry_unavailable", "deleted"), why("entry_unavailable", "damaged")
KINDS = ("failed compile", "process ended", "not known")
FAILED, ENDED, UNKNOWN = (why("entry_unavailable", kind) for kind in KINDS)
BYPASSED, BYPASSED_TOO = why("bypassed", "no"), why("bypassed", "never")

# The reasons of an AOTAutograd miss and of an FX miss below, and whether one explains the other.
EXPLAINED: list[tuple[Why, Why, bool]] = [
    (X, X, True), (XY, X, True), (X, Y, False), (X, GRAPH, True), (Y, GRAPH, True),
    (X, FIRST, True), (X, NEW_DETAILS, True), (X, GUARDS, False), (X, DELETED, False), (X, CONCURRENT, False),
    (X, BYPASSED, False), (X, NO_DETAIL, False), (X, OTHER_TORCH, False),
    (ONE_TORCH, ONE_TORCH, True), (ONE_TORCH, OTHER_TORCH, False), (ONE_TORCH, X, False), (ONE_TORCH, FIRST, True),
    (FIRST, FIRST, True), (FIRST, NEW_DETAILS, True), (FIRST, X, False), (FIRST, GRAPH, False), (FIRST, GUARDS, False),
    (FIRST, CONCURRENT, False), (FIRST, DELETED, False), (FIRST, BYPASSED, False),
    (GUARDS, GUARDS, True), (GUARDS, FIRST, False), (GUARDS, NEW_DETAILS, True), (GUARDS, X, False), (GUARDS, CONCURRENT, False),
    (NEW_DETAILS, NEW_DETAILS, True), (NEW_DETAILS, FIRST, False),
    (CONCURRENT, CONCURRENT, True), (CONCURRENT, FIRST, False), (CONCURRENT, GUARDS, False), (CONCURRENT, NEW_DETAILS, False),
    (DELETED, DELETED, True), (DELETED, DAMAGED, False), (DELETED, FIRST, False), (DELETED, NEW_DETAILS, False), (DELETED, GUARDS, False),
    *((above, below, True) for above in (FAILED, ENDED, UNKNOWN) for below in (FIRST, NEW_DETAILS, above)),
    (FAILED, ENDED, False), (FAILED, DELETED, False), (FAILED, GUARDS, False), (FAILED, X, False), (DELETED, FAILED, False),
    (BYPASSED, BYPASSED, True), (BYPASSED, BYPASSED_TOO, False), (BYPASSED, FIRST, False), (BYPASSED, NEW_DETAILS, False),
    (BYPASSED, why("entry_unavailable", "no"), False), (why("disabled"), why("disabled"), False), (NO_DETAIL, NO_DETAIL, False),
    (NO_DETAIL, FIRST, False), (NO_DETAIL, NEW_DETAILS, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("backward", "is_so"), [(GRAPH, True), (X, True), (FIRST, True), (Y, False), (GUARDS, False)]
)
def test_what_changed_below_shows_why_a_key_without_details_is_another(backward: Why, is_so: bool) -> None:
    assert follows([AOT, FX], NEW_DETAILS, X) == [1, NONE]
    # And what follows from that in another graph of the key, as it would from the key.
    graph = replace(FX, lookup=2, direction="backward")
    assert follows([AOT, FX, graph], NEW_DETAILS, X, backward) == [1, NONE, 1 if is_so else NONE]


@pytest.mark.parametrize(("above", "below", "is_so"), EXPLAINED)
def test_whether_an_autograd_miss_explains_the_miss_of_a_graph(above: Why, below: Why, is_so: bool) -> None:
    assert follows([AOT, FX], above, below) == [NONE, 0 if is_so else NONE]
    # In any order of the lookups, and of their reasons.
    found = follows([replace(FX, lookup=0, aot_lookup=1), replace(AOT, lookup=1)], below, above)
    assert found == [1 if is_so else NONE, NONE]
    # Only under that lookup, and only of those caches.
    apart = replace(FX, aot_lookup=None, compile_id="7/0")
    assert follows([AOT, apart], above, below) == [NONE, NONE]


def test_a_miss_of_autograd_under_another_does_not_follow() -> None:
    assert follows([AOT, replace(AOT, lookup=1, aot_lookup=0, cache_key="a2")], X, X) == [NONE, NONE]
    other = replace(FX, compile_id="1/0")
    assert follows([replace(FX, lookup=0, aot_lookup=None), other], X, X) == [NONE, NONE]


GRAPH_GONE, REFUSED = why("entry_unavailable", "graph entry"), why("entry_unavailable", "load error")


def test_where_the_graph_entry_was_gone_the_first_graph_is_the_root() -> None:
    again = replace(FX, lookup=2)
    assert follows([AOT, FX], GRAPH_GONE, REFUSED) == [1, NONE]
    assert follows([AOT, FX, again], GRAPH_GONE, REFUSED, REFUSED) == [1, NONE, 1]
    assert follows([AOT, FX, again], GRAPH_GONE, REFUSED, FIRST) == [1, NONE, 1]
    assert follows([AOT], GRAPH_GONE) == [NONE]
    # Another entry, gone in whatever way, stays below.
    assert follows([AOT, FX], DELETED, REFUSED) == [NONE, NONE]


FORWARD, BACKWARD = (
    replace(FX, lookup=at, aot_lookup=None, direction=name, cache_key=name)
    for at, name in enumerate(("forward", "backward"))
)


def test_a_graph_that_follows_is_not_followed(recording: Recording, tmp_path: Path) -> None:
    """A log that is cut where one of two lookups of a gone graph is lost: neither leads to the other for ever."""
    log = (recording("2.10.0", "other_owner") / "text" / "00_root.log").read_bytes()
    (tmp_path / "cut.log").write_bytes(log[:16_723])
    others = sorted((recording("2.10.0", "other_owner") / "text").iterdir())[1:]
    scope = cachescope.read(tmp_path / "cut.log", *others, index=False)
    assert scope.misses["root"].sum() == len(scope.causes) == 1


@pytest.mark.parametrize(("forward", "backward", "is_so"), [
    (X, FIRST, True), (FIRST, FIRST, True), (FIRST, NEW_DETAILS, True), (X, NEW_DETAILS, True), (X, Y, False),
    (GUARDS, FIRST, False), (DELETED, FIRST, False), (FIRST, GUARDS, False), (FIRST, DELETED, False), (NEW_DETAILS, FIRST, False),
])  # fmt: skip
def test_if_a_backward_graph_is_new_as_its_forward_graph_is(forward: Why, backward: Why, is_so: bool) -> None:
    assert follows([FORWARD, BACKWARD], forward, backward) == [NONE, 0 if is_so else NONE]
    # Not before it, and not of another compile or another process.
    if forward != backward:
        turned = [replace(BACKWARD, lookup=0), replace(FORWARD, lookup=1)]
        assert follows(turned, backward, forward) == [NONE, NONE]
    for apart in ({"compile_id": "1/0"}, {"run": 5}, {"segment": 1}):
        other = replace(BACKWARD, **apart)  # type: ignore[arg-type]
        assert follows([FORWARD, other], forward, backward) == [NONE, NONE]


def test_a_backward_graph_follows_from_the_latest_forward_graph_of_its_compile() -> None:
    later = [replace(FORWARD, lookup=2, cache_key="f3"), replace(BACKWARD, lookup=3, cache_key="b3")]
    assert follows([FORWARD, BACKWARD, *later], X, FIRST, Y, NEW_DETAILS) == [NONE, 0, NONE, 2]
    # Under an AOTAutograd miss it follows from that.
    under = [replace(one, lookup=at, aot_lookup=0) for at, one in ((1, FORWARD), (2, BACKWARD))]
    assert follows([AOT, *under], X, X, FIRST) == [NONE, 0, 0]


def test_of_one_cause_in_one_compile_the_first_is_the_root() -> None:
    one, other, third = (replace(FX, lookup=at, aot_lookup=None, cache_key=f"f{at}") for at in range(3))
    assert follows([one, other, third], X, X, X) == [NONE, 0, 0]
    assert follows([one, other, third], X, Y, X) == [NONE, NONE, 0]
    assert follows([one, replace(other, aot_lookup=77)], X, X) == [NONE, NONE]
    for apart in ({"compile_id": "1/0"}, {"run": 5}, {"segment": 1}, {"compile_id": None}):
        assert follows([one, replace(other, **apart)], X, X) == [NONE, NONE]  # type: ignore[arg-type]
    # Guards are one cause whatever the key is, and so is another torch whatever fields follow.
    assert follows([one, other], why("guard_failed", "f0"), why("guard_failed", "f1")) == [NONE, 0]
    more = why("key_changed", "upgrade: 1", "torch_version", "x")
    assert follows([one, other], ONE_TORCH, more) == [NONE, 0]
    # An AOTAutograd miss only from one of its own key, and a graph from one of its own cache.
    above = replace(AOT, lookup=1, aot_lookup=None)
    assert follows([one, above], X, X) == [NONE, NONE]
    assert follows([replace(AOT, lookup=0), above], X, X) == [NONE, 0]
    assert follows([replace(AOT, lookup=0), replace(above, cache_key="a2")], X, X) == [NONE, NONE]
    nameless = replace(AOT, lookup=0, cache_key=None)
    assert follows([nameless, replace(above, cache_key=None)], X, X) == [NONE, NONE]


def test_that_graphs_were_found_is_said_only_where_those_of_every_miss_were() -> None:
    """With real torch 2.7 one process changed requires_grad of an input, and another one its shape: the same field."""
    found = run(aot("a2", details=X2, at=100, **NAMED), fx("f1", "hit", G, at=101, **NAMED))
    compiled = run(*step(200, {**G, "x": "3"}, {**G, "x": "3"}, "3"))
    for runs, is_said in (([found], True), ([found, compiled], False)):
        (cause,) = scope_of(run(*step(0)), *runs).causes.query("verdict == 'key_changed'").itertuples()
        assert cause.roots == len(runs)
        assert ("The FX graphs below were found" in str(cause.advice)) is is_said


@pytest.mark.parametrize(("way", "kind", "cost"), [
    ("batch", "other inputs of the same code: forward (program.py:16), shape", "for other inputs"),
    ("dtype", "other inputs of the same code: forward (program.py:16), dtype", "for other inputs"),
    ("autocast", "the same code, compiled otherwise: forward (program.py:16)", "for a reason that is not known"),
    ("number", "edit ", "of changed code"),  # an attribute of the model
    ("edited", "edit ", "of changed code"),  # for another batch as well
])  # fmt: skip
def test_a_graph_of_the_same_code_is_no_edit(way: str, kind: str, cost: str, tmp_path: Path) -> None:
    """What each process does otherwise than the first stands in `CALLS` of tests/data/kind_programs.py."""
    folder = unpacked(DATA / "calls" / "2.13.0.tar.xz", tmp_path)
    scope = cachescope.read(folder / "first", folder / way)
    # torch 2.13 records no details of AOTAutograd's key in a trace: it follows from the graph below, as the backward graph does.
    assert {*scope.causes["verdict"]} == {"first_lookup", "key_changed"}
    changed = scope.causes.query("verdict == 'key_changed'")
    assert len(changed) == 1 and changed["kind"].item().startswith(kind)
    answer = str(scope)
    assert cost in answer and ("changed code" in answer) == (kind == "edit ")
