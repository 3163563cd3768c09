"""Which miss follows from which: reasons in, numbers out, without the reasons being judged before."""

from dataclasses import replace

import pytest

from cachescope.analysis.verdicts.causes import link_consequences
from cachescope.analysis.verdicts.misses import Miss, Why
from cachescope.frames.recorded_rows import LookupRow
from cachescope.terms import AOTAUTOGRAD
from cachescope.verdict_kinds import Verdict
from tests.analysis.plain_rows import TEMPLATE, history_of

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
FAILED, ENDED, UNKNOWN = (
    why("entry_unavailable", kind) for kind in ("failed compile", "process ended", "not known")
)
BYPASSED, BYPASSED_TOO = why("bypassed", "no"), why("bypassed", "never")

# The reasons of an AOTAutograd miss and of an FX miss below, and whether one explains the other.
EXPLAINED: list[tuple[Why, Why, bool]] = [
    (X, X, True), (XY, X, True), (X, XY, False), (X, Y, False), (X, GRAPH, True), (Y, GRAPH, True),
    (X, FIRST, True), (X, NEW_DETAILS, True), (X, GUARDS, False), (X, DELETED, False), (X, CONCURRENT, False),
    (X, BYPASSED, False), (X, NO_DETAIL, False), (X, OTHER_TORCH, False),
    (ONE_TORCH, ONE_TORCH, True), (ONE_TORCH, OTHER_TORCH, False), (ONE_TORCH, X, False), (ONE_TORCH, FIRST, True),
    (FIRST, FIRST, True), (FIRST, NEW_DETAILS, True), (FIRST, X, False), (FIRST, GRAPH, False), (FIRST, GUARDS, False),
    (FIRST, CONCURRENT, False), (FIRST, DELETED, False), (FIRST, BYPASSED, False),
    (GUARDS, GUARDS, True), (GUARDS, FIRST, False), (GUARDS, NEW_DETAILS, True), (GUARDS, X, False), (GUARDS, CONCURRENT, False),
    (NEW_DETAILS, NEW_DETAILS, True), (NEW_DETAILS, FIRST, False), (NEW_DETAILS, X, False),
    (CONCURRENT, CONCURRENT, True), (CONCURRENT, FIRST, False), (CONCURRENT, GUARDS, False), (CONCURRENT, NEW_DETAILS, False),
    (DELETED, DELETED, True), (DELETED, DAMAGED, False), (DELETED, FIRST, False), (DELETED, NEW_DETAILS, False), (DELETED, GUARDS, False),
    *((above, below, True) for above in (FAILED, ENDED, UNKNOWN) for below in (FIRST, NEW_DETAILS, above)),
    (FAILED, ENDED, False), (FAILED, DELETED, False), (FAILED, GUARDS, False), (FAILED, X, False), (DELETED, FAILED, False),
    (BYPASSED, BYPASSED, True), (BYPASSED, BYPASSED_TOO, False), (BYPASSED, FIRST, False), (BYPASSED, NEW_DETAILS, False),
    (BYPASSED, why("entry_unavailable", "no"), False), (why("disabled"), why("disabled"), False), (NO_DETAIL, NO_DETAIL, False),
    (NO_DETAIL, FIRST, False), (NO_DETAIL, NEW_DETAILS, False),
]  # fmt: skip


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
