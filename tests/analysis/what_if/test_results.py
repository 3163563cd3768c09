"""The frames of a replay: what became of the lookups in, rows out; made by hand."""

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest

from cachescope.analysis.directory.equal_code import GeneratedCode
from cachescope.analysis.history.directory import HIT, UNKNOWN
from cachescope.analysis.what_if.cells import OTHER
from cachescope.analysis.what_if.replay import Replayed
from cachescope.analysis.what_if.results import difference_rows, warning_rows, with_more_hits
from cachescope.frames.answer_rows import RateRow
from cachescope.keys.key_schema import Removed
from tests.analysis.plain_rows import past_miss
from tests.made import SECOND_NS, Stored, aot, entry, fx, run, scope_of

G = {"gm": "g", "x": "1"}
HERE = {"cache_dir": "/cache"}
NOTHING = RateRow(4, 1, 3, 0, 0, 0.25, None, None, None)


@pytest.mark.parametrize(("before", "more", "won", "wanted"), [
    ({}, 0, 0, (1, 3, 0.25, None, None, None)),
    ({}, 1, 0, (2, 2, 0.5, None, None, None)),
    # Won where nothing had been saved; what was not known before is not known after.
    ({}, 1, 7, (2, 2, 0.5, 7, None, None)),
    ({"time_lost_ns": 10, "time_hit_rate": 0.0}, 1, 7, (2, 2, 0.5, 7, 3, 0.7)),
    ({"time_saved_ns": 10, "time_lost_ns": 10, "time_hit_rate": 0.5}, 1, 5, (2, 2, 0.5, 15, 5, 0.75)),
    ({"time_saved_ns": 10, "time_hit_rate": 1.0}, 0, 0, (1, 3, 0.25, 10, None, 1.0)),
    # Of lookups whose outcome is known.
    ({"unknown": 2}, 1, 0, (2, 2, 1.0, None, None, None)),
    ({"unknown": 4}, 0, 0, (1, 3, None, None, None, None)),
])  # fmt: skip
def test_rates_of_more(before: dict[str, Any], more: int, won: int, wanted: tuple[float | None, ...]) -> None:
    then = with_more_hits(replace(NOTHING, **before), more, won)
    found = (then.hits, then.misses, then.hit_rate, then.time_saved_ns, then.time_lost_ns, then.time_hit_rate)
    assert found == wanted
    assert (then.lookups, then.bypasses, then.unknown) == (4, 0, before.get("unknown", 0))


def table(rows: Iterable[object], *names: str) -> list[tuple[Any, ...]]:
    return list(map(attrgetter(*names), rows))


def test_compile_times_are_those_of_fx_misses() -> None:
    scope = scope_of(
        run(
            aot("a1", details=G, at=0, took=9.0),
            fx("f1", details=G, at=1, took=0.0),
            fx("f2", "hit", G, at=5, took=9.0, compile_id="1/0"),
            fx("f3", details=G, at=6, compile_id="2/0"),
            fx("f4", details=G, at=7, took=3.0, compile_id="3/0"),
            fx(None, "bypass", at=8, took=2.0, compile_id="4/0"),
        )
    )
    replay = scope.replay
    assert replay.taken == [None, 0, None, None, 3 * SECOND_NS, 2 * SECOND_NS]
    assert [replay.total(some) for some in ([0, 2], [1], [1, 3, 4], [])] == [None, 0, 3 * SECOND_NS, None]
    replayed = Replayed(replay, Removed())
    replayed.after = [HIT, HIT, HIT, HIT, UNKNOWN, OTHER]
    assert (replayed.turned(), replayed.undecided()) == ([0, 1, 3], [4])


def test_differences_in_the_order_of_lookups() -> None:
    """Lookups are numbered by process: what the second process saw came first."""
    scope = scope_of(
        run(fx("f1", details=G, at=0, took=1.0), fx("f1", details=G, at=60, took=1.0, compile_id="1/0"), **HERE),
        run(fx("f2", details=G, at=5, took=None, compile_error="E: x"), fx("f2", "hit", G, at=9, compile_id="1/0"), **HERE),
    )  # fmt: skip
    found = difference_rows(scope.replay, {1: "it was damaged"})
    assert table(found, "lookup", "run", "outcome", "expected", "reason") == [
        (1, 0, "full_miss", "hit", "it was damaged"),
        (3, 1, "hit", "full_miss", "nothing that was stored explains it: the entry came from elsewhere"),
    ]


def warned(
    *entries: Stored,
    past: tuple[tuple[int, int, bool | None], ...] = (),
    without: str = "x",
    sources: dict[int, str] | None = None,
) -> list[tuple[str, int, int]]:
    """`past`: an entry, another one before it, and whether their binaries are the same."""
    scope = scope_of(run(fx("fz", details={"gm": "0", "x": "0"}, at=0)), entries=entries)
    replayed = Replayed(scope.replay, Removed(frozenset({without})))
    code = GeneratedCode(lambda row: (sources or {}).get(row.entry))
    misses = [past_miss(one, other, same_binaries=same) for one, other, same in past]
    return table(warning_rows(replayed, code, misses), "what", "entry", "other_entry")


def stored(key: str, code: str | None, x: str = "1", **told: Any) -> Stored:
    cache = told.pop("cache", "fxgraph")
    return entry(cache, key, {"gm": "g", "x": x}, at=1, code_key=code, **told)


@pytest.mark.parametrize(("entries", "wanted"), [
    ([stored("f1", "c1"), stored("f2", "c2", "2")], [{0, 1}]),
    ([stored("f1", "c1"), stored("f2", "c1", "2")], []),
    ([stored("f1", "c1"), stored("f2", None, "2")], []),
    ([stored("f1", "c1", cache="aotautograd"), stored("f2", "c2", "2", cache="aotautograd")], []),
    ([stored("f1", "c1"), stored("f2", "c2", "2", status="damaged")], []),
    # Under one key each is for its own guards; two keys that share any code are no doubt.
    ([stored("f1", "c1"), stored("f1", "c2", name="b")], []),
    ([stored("f1", "c1"), stored("f1", "c2", name="b"), stored("f2", "c2", "2")], []),
    ([stored("f1", "c1"), stored("f1", "c2", name="b"), stored("f2", "c3", "2")], [{0, 2}]),
    # Of many keys of two codes one pair, of three codes each.
    ([stored(f"f{n}", f"c{n % 2}", str(n)) for n in range(6)], [{0, 1}]),
    ([stored(f"f{n}", f"c{n}", str(n)) for n in range(3)], [{0, 1}, {0, 2}, {1, 2}]),
], ids=range(10))  # fmt: skip
def test_keys_of_other_code(entries: list[Stored], wanted: list[set[int]]) -> None:
    found = warned(*entries)
    assert sorted((sorted(row[1:]) for row in found), key=str) == [sorted(one) for one in wanted]
    assert {what for what, _, _ in found} <= {"generated code"}
    assert warned(*entries, without="y") == []


def test_code_that_is_the_same_but_for_the_process() -> None:
    entries = [stored("f1", "c1"), stored("f2", "c2", "2")]
    assert warned(*entries, sources={0: "x\n# of 1", 1: "x\n# of 2"}) == []
    assert len(warned(*entries, sources={0: "x", 1: "y"})) == 1


@pytest.mark.parametrize(("past", "wanted"), [
    (((1, 0, False),), [("compiled kernels", 0, 1)]),
    (((1, 0, True),), []),
    (((1, 0, None),), []),
    # What is no sound entry, or has another key after all.
    (((2, 0, False),), []),
    (((3, 0, False), (0, 3, False)), []),
    (((1, 0, False), (1, 0, None)), [("compiled kernels", 0, 1)]),
])  # fmt: skip
def test_keys_of_other_kernels(
    past: tuple[tuple[int, int, bool | None], ...], wanted: list[tuple[str, int, int]]
) -> None:
    entries = [
        stored("f1", "c1"),
        stored("f2", "c1", "2"),
        stored("f3", "c1", "3", status="damaged"),
        entry("fxgraph", "f4", {"gm": "h", "x": "1"}, at=1, code_key="c1"),
    ]
    assert warned(*entries, past=past) == wanted
