"""The order in which torch made its lookups, from the order in which it wrote about them; made by hand."""

import pytest

from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.logs.lookup_order import put_in_order


def lookup(text: str) -> LookupRow:
    """``a1 hit 0/0 @5``: a key, its outcome, a compile, and when if that is known; ``#1`` for its segment."""
    key, outcome, compile_id, *rest = text.split()
    cache = "aotautograd" if key[0] == "a" else "fxgraph"
    made = LookupRow(cache=cache, cache_key=key, outcome=outcome, compile_id=compile_id)
    for word in rest:
        if word[0] == "@":
            made.time = int(word[1:])
        else:
            made.segment = int(word[1:])
    return made


@pytest.mark.parametrize(("lines", "wanted"), [
    # Of a hit torch writes behind the hits of its graphs, of a miss through 2.9 as well.
    (["f1 hit 0/0", "a1 hit 0/0"], "a1 f1"),
    (["f1 hit 0/0", "f2 hit 0/0", "a1 hit 0/0"], "a1 f1 f2"),
    (["f1 full_miss 0/0", "a1 full_miss 0/0"], "a1 f1"),
    (["f1 full_miss 0/0", "f2 hit 0/0", "a1 guard_miss 0/0"], "a1 f1 f2"),
    # From 2.10 on before them.
    (["a1 full_miss 0/0", "f1 full_miss 0/0"], "a1 f1"),
    (["a1 full_miss 0/0", "f1 full_miss 0/0", "a2 full_miss 0/0", "f2 full_miss 0/0"], "a1 f1 a2 f2"),
    # A hit contains nothing but hits.
    (["f1 full_miss 0/0", "a1 hit 0/0"], "f1 a1"),
    (["f1 full_miss 0/0", "f2 hit 0/0", "a1 hit 0/0"], "f1 a1 f2"),
    # What another compile looked up is not under it.
    (["f1 hit 1/0", "a1 hit 0/0"], "f1 a1"),
    (["f1 hit 0/0", "f2 hit 1/0", "a1 hit 0/0"], "f1 f2 a1"),
    (["f1 hit 0/0 #1", "a1 hit 0/0 #2"], "f1 a1"),
    (["f1 hit 0/0 #2", "a1 hit 0/0 #2"], "a1 f1"),
    (["f1 full_miss 0/0 #1", "f2 hit 0/0 #2", "a2 full_miss 0/0 #2"], "f1 a2 f2"),
    # Nor what stands before another AOTAutograd lookup.
    (["f1 hit 0/0", "a1 hit 0/0", "f2 hit 0/0 #1", "a2 hit 0/0 #1"], "a1 f1 a2 f2"),
    # Behind a miss whose record came first, its graphs are its own.
    (["a1 full_miss 0/0", "f1 hit 0/0", "a2 hit 0/0"], "a1 a2 f1"),
    (["a1 full_miss 0/0", "f1 full_miss 0/0", "a2 hit 0/0"], "a1 f1 a2"),
    (["a1 hit 0/0", "f1 full_miss 0/0", "a2 full_miss 0/0"], "a1 a2 f1"),
    (["a1 full_miss 1/0", "f1 full_miss 0/0", "a2 full_miss 0/0"], "a1 a2 f1"),
])  # fmt: skip
def test_an_autograd_lookup_comes_before_those_made_under_it(lines: list[str], wanted: str) -> None:
    assert [one.cache_key for one in put_in_order([lookup(line) for line in lines])] == wanted.split()


@pytest.mark.parametrize(("lines", "wanted"), [
    (["f1 hit 0/0 @50", "a1 hit 0/0 @70"], [("a1", 49), ("f1", 50)]),
    (["f1 hit 0/0 @50", "a1 hit 0/0 @30"], [("a1", 30), ("f1", 50)]),
    (["f1 hit 0/0", "a1 hit 0/0 @70"], [("a1", 70), ("f1", None)]),
    # Where all have times, these tell.
    (["f2 hit 1/0 @9", "f1 hit 0/0 @5"], [("f1", 5), ("f2", 9)]),
    (["f2 hit 1/0 @9", "f1 hit 0/0", "f0 hit 2/0 @5"], [("f2", 9), ("f1", None), ("f0", 5)]),
])  # fmt: skip
def test_times_agree_with_the_order(lines: list[str], wanted: list[tuple[str, int | None]]) -> None:
    made = put_in_order([lookup(line) for line in lines])
    assert [(one.cache_key, one.time) for one in made] == wanted
