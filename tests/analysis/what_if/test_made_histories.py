"""Small histories under other keys: lookups and entries in, what would have hit out; made by hand.

A letter stands for each lookup, in its order: h hit, m miss, ? not known, - neither (bypassed or disabled).
"""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from cachescope.scope import Scope
from tests.made import CODE, SECOND_NS, Made, Run, Stored, aot, entry, fx, run, scope_of

G = {"gm": CODE, "x": "1", "y": "1"}
X = {**G, "x": "2"}
X3 = {**G, "x": "3"}
XY = {**G, "x": "2", "y": "2"}
HERE = {"cache_dir": "/cache"}


def letters(scope: Scope, *without: str) -> str:
    after = scope.what_if(without=without).frame["outcome_after"]
    names = {"hit": "h", "full_miss": "m", "guard_miss": "m"}
    return "".join("?" if pd.isna(one) else names.get(one, "-") for one in after)


def here(*lookups: Made) -> Run:
    return run(*lookups, **HERE)


def f1(at: float = 0, outcome: str = "full_miss", **told: Any) -> Made:
    return fx("f1", outcome, told.pop("details", G), at=at, **{"took": 1.0, **told})


def f2(at: float | None = 10, outcome: str = "full_miss", **told: Any) -> Made:
    return fx("f2", outcome, told.pop("details", X), at=at, **{"took": 1.0, **told})


# A key that has nothing in common with the others, a hit of it, and a run in a second directory.
OTHER = fx("f9", details={"gm": CODE, "y": "9"}, at=0, took=1.0)
OTHER_HIT = replace(OTHER, outcome="hit", at=20, took=None)
THERE = run(fx("f8", details={"gm": CODE, "y": "8"}, at=2, took=1.0), cache_dir="/other")

Case = tuple[tuple[Run, ...], list[Stored], str]

# What was looked up and stored, and what it is without x.
CASES: dict[str, Case] = {
    "another key, stored before": ((here(f1()), here(f2())), [], "mh"),
    "in one process": ((here(f1(), f2(compile_id="1/0")),), [], "mh"),
    "nothing is known of its key, and an entry was there": (
        (here(f1(10, details=None)),), [entry("fxgraph", "f2", X, at=1)], "?"),
    "nothing is known of its key, and an entry came later": (
        (here(f1(10, details=None)),), [entry("fxgraph", "f2", X, at=50)], "m"),
    "another field differs": ((here(f1()), here(f2(details=XY))), [], "mm"),
    "of the other cache": ((here(f1()), here(aot("a2", details=X, at=10))), [], "mm"),
    "of another direction": (
        (here(f1(details={**G, "fx_kwargs[is_backward]": "True"})), here(f2())), [], "mm"),
    # An entry is there from the end of its compile on.
    "before it was stored": ((here(f1(took=20.0)), here(f2())), [], "mm"),
    "just when it was stored": ((here(f1(took=10.0)), here(f2())), [], "mm"),
    "a moment later": ((here(f1(took=9.5)), here(f2())), [], "mh"),
    "two at once, and a third": ((here(f1()), here(f2(0.5)), here(f2(10))), [], "mmh"),
    # It hits, and so stores nothing.
    "what would have hit stores nothing": (
        (here(f1()), here(f2(5)), here(fx("f3", details=X3, at=9, took=1.0))), [], "mhh"),
    # In another directory, or in one that is not known.
    "in another directory": ((run(f1(), cache_dir="/other"), here(f2())), [], "mm"),
    "in directories that are not known": ((run(f1()), run(f2())), [], "mh"),
    "in a directory that is not known": ((here(f1()), run(f2())), [], "mh"),
    "in one of two directories, not known which": (
        (here(f1()), run(fx("f9", details=XY, at=1, took=1.0), cache_dir="/other"), run(f2())), [], "mmm"),
    "one that found what only that directory held": (
        (here(f1()), run(f2(5), cache_dir="/other"), run(f2(8, "hit"), fx("f3", details=X3, at=9, took=1.0, compile_id="1/0"))),
        [], "mmhh"),
    "beside a key of two directories": (
        (here(fx("f9", details={**XY, "y": "9"}, at=0, took=1.0)),
         run(fx("f9", details={**XY, "y": "9"}, at=1, took=1.0), cache_dir="/other"), here(f1(5)), here(f2())),
        [],
        "mmmh"),
    "of two directories, each by itself": (
        (here(f1()), run(f1(1), cache_dir="/other"), here(f2()), run(f2(11), cache_dir="/other"), run(f2(12), cache_dir="/third")),
        [], "mmhhm"),
    # Only hits say where a run was, and only what a run stored is there to be found.
    "one that found what only that directory held, and missed another key": (
        (here(OTHER, f1(1)), THERE, run(OTHER_HIT, f2(30, compile_id="1/0"))), [], "mmmhh"),
    "one that found what two directories held": (
        (here(OTHER, f1(1)), THERE, run(OTHER, cache_dir="/other"), run(OTHER_HIT, f2(30, compile_id="1/0"))), [],
        "mmmmhm"),
    "one that found what nobody stored": (
        (here(replace(OTHER, told={"compile_error": "E: x"}, took=None), f1(1)), THERE, run(OTHER_HIT, f2(30, compile_id="1/0"))),
        [], "mmmhm"),
    "one that missed what another directory held": (
        (here(f1()), run(f2(5), cache_dir="/other"), run(f2(8), fx("f3", details=X3, at=9, took=1.0, compile_id="1/0"))),
        [], "mmmm"),
    "a hit without a key says nothing": (
        (run(fx(None, at=0, took=1.0), cache_dir="/other"), here(f1(2)), run(f2(5), cache_dir="/other"),
         run(fx(None, "hit", at=8), fx("f3", details=X3, at=9, took=1.0, compile_id="1/0"))),
        [],
        "mmmhm"),
    # Keys of equal details, in several directories: their groups are no others'.
    "keys of two directories beside those that become one": (
        (here(f1(), f2(10, compile_id="1/0")), here(fx("f3", details={**G, "y": "3"}, at=20, took=1.0)),
         run(fx("f3", details={**G, "y": "3"}, at=21, took=1.0), cache_dir="/other"),
         here(fx("f4", details={**G, "y": "4"}, at=30, took=1.0)),
         run(fx("f4", details={**G, "y": "4"}, at=31, took=1.0), cache_dir="/other")),
        [],
        "mhmmmm"),
    # What is known not to have been stored.
    "its compile failed": ((here(f1(compile_error="ValueError: no", took=None)), here(f2())), [], "mm"),
    "it could not be stored": ((here(f1(save_error="OSError: full")), here(f2())), [], "mm"),
    "torch would not store it": ((here(f1(save_bypass="no")), here(f2())), [], "mm"),
    # Recorded hits stay hits; what is neither stays neither.
    "a hit stays one": ((here(f1()), here(f1(5, "hit")), here(f2())), [], "mhh"),
    "a bypass stays one": ((here(f1()), here(fx(None, "bypass", at=5)), here(f2())), [], "m-h"),
    "a disabled cache stays so": ((here(f1()), here(f2(outcome="disabled"))), [], "m-"),
    "an outcome that was not seen": ((here(f1()), here(f2(outcome="unknown"))), [], "m-"),
    # A hit shows that its key was stored.
    "a hit that nothing explains": ((here(f1(5, "hit")), here(f2())), [], "hh"),
    "a hit that nothing explains, and a miss before it": ((here(f2(1)), here(f1(5, "hit"))), [], "hh"),
    # Entries that were there before.
    "an entry of before": ((here(f2()),), [entry("fxgraph", "f1", G, at=5)], "h"),
    "an entry that was written later": ((here(f2()),), [entry("fxgraph", "f1", G, at=50)], "m"),
    # When it was stored is as sure as a verdict takes it to be.
    "an entry without a time": ((here(f2()),), [entry("fxgraph", "f1", G)], "?"),
    "entries that all have one time": (
        (here(f2()),), [entry("fxgraph", "f1", G, at=5), entry("fxgraph", "f9", XY, at=5)], "?"),
    "an entry of one time, which was found": (
        (here(f1(8, "hit")), here(f2())), [entry("fxgraph", "f1", G, at=5), entry("fxgraph", "f9", XY, at=5)], "hh"),
    "an entry of one time, which was found where it had been missed": (
        (here(f1(6, save_error="OSError: full")), here(f2(7)), here(f1(8, "hit")), here(f2())),
        [entry("fxgraph", "f1", G, at=5), entry("fxgraph", "f9", XY, at=5)], "mmhh"),
    "a lookup without a time": ((here(f2(None)),), [entry("fxgraph", "f1", G, at=5)], "?"),
    "entries of a clock that is 100 s ahead": (
        (here(fx("f8", details=XY, at=0, took=1.0), fx("f9", details={**XY, "y": "3"}, at=5, took=1.0, compile_id="1/0")),
         here(f2())),
        [entry("fxgraph", "f8", XY, at=101), entry("fxgraph", "f9", {**XY, "y": "3"}, at=106), entry("fxgraph", "f1", G, at=106)],
        "mmh"),
    "an entry in another directory": (
        (here(f2()), run(fx("f9", details=XY, at=60, took=1.0), cache_dir="/other")),
        [entry("fxgraph", "f1", G, at=5, root="/other")], "mm"),
    "an entry in a directory that was moved": (
        (here(f2()), run(fx("f9", details=X3, at=60, took=1.0), cache_dir="/other")),
        [entry("fxgraph", "f1", G, at=5, root="/moved"), entry("fxgraph", "f2", X, at=11, root="/moved")], "hm"),
    "an entry in a directory that no run names": (
        (here(f2()),), [entry("fxgraph", "f1", G, at=5, root="/elsewhere")], "?"),
    "an entry in the only directory, where no run names one": (
        (run(f2()),), [entry("fxgraph", "f1", G, at=5, root="/elsewhere")], "h"),
    "a damaged entry": ((here(f2()),), [entry("fxgraph", "f1", G, at=5, status="damaged")], "m"),
    "an entry without details": ((here(f2()),), [entry("fxgraph", "f1", at=5)], "m"),
    # Gone from outside.
    "an entry that went away": ((here(f1()), here(f1(20)), here(f2(25))), [], "mmh"),
    "looked up while it was away": ((here(f1()), here(f1(20, took=9.0)), here(f2(25))), [], "mmm"),
    "looked up before it went away": ((here(f1()), here(f2(15)), here(f1(20))), [], "mhm"),
    # Keys whose details are not known may have been anything.
    "without details": ((here(f1()), here(f2(details=None))), [], "m?"),
    "without details, and nothing was stored": ((here(f2(0, details=None)), here(f1(10))), [], "mm"),
    "without details, in an empty directory": ((run(f1(), cache_dir="/other"), here(f2(details=None))), [], "mm"),
    "without details, and of the other cache": ((here(aot("a1", details=G, at=0)), here(f2(details=None))), [], "mm"),
    # An AOTAutograd lookup that hits finds its graphs.
    "with its graphs": (
        (here(aot("a1", details=G, at=0), f1(1)), here(aot("a2", details=X, at=10), f2(11))), [], "mmhh"),
    "with graphs of keys that have nothing in common": (
        (here(aot("a1", details=G, at=0), f1(1)), here(aot("a2", details=X, at=10), f2(11, details=XY))), [], "mmhh"),
    "graphs alone": (
        (here(aot("a1", details=G, at=0), f1(1)), here(aot("a2", details=XY, at=10), f2(11))), [], "mmmh"),
    # Graphs found so store nothing themselves.
    "with its graphs, of which a third has the key": (
        (here(aot("a1", details=G, at=0), f1(1)), here(aot("a2", details=X, at=10), f2(11, details=XY)), here(fx("f3", details={**XY, "x": "3"}, at=20))),
        [],
        "mmhhm"),
    "of another compile": (
        (here(aot("a1", details=G, at=0), f1(1)), here(aot("a2", details=X, at=10), f2(11, details=XY, compile_id="1/0"))),
        [], "mmhm"),
}  # fmt: skip


def made(case: Case) -> Scope:
    runs, entries, _ = case
    return scope_of(*runs, entries=entries)


@pytest.mark.parametrize("name", CASES)
def test_what_would_have_hit_without_a_field(name: str) -> None:
    assert letters(made(CASES[name]), "x") == CASES[name][2]


def test_with_everything_in_the_keys_all_is_as_it_was() -> None:
    names = {"hit": "h", "full_miss": "m"}
    same = ("an entry that went away", "without details", "a hit that nothing explains, and a miss before it")
    for name in same:
        scope = made(CASES[name])
        assert letters(scope) == "".join(names.get(one, "-") for one in scope.lookups["outcome"])


def test_guards_of_entries() -> None:
    def found(*entries: Stored) -> str:
        return letters(scope_of(here(f2()), entries=entries), "x")

    assert found(entry("fxgraph", "f1", G, at=5, guards_expr="s > 4")) == "?"
    assert found(entry("fxgraph", "f1", G, at=5, guards_expr="")) == "h"
    one, other = entry("fxgraph", "f1", G, at=5, guards_expr="s > 4"), entry("fxgraph", "f1", G, at=6)
    assert found(one, other) == "h"
    # Whatever the last lookup was.
    runs = here(f2(), fx("f9", "hit", XY, at=70))
    assert letters(scope_of(runs, entries=[one]), "x") == "?h"
    assert letters(scope_of(runs, entries=[one, other]), "x") == "hh"
    assert found(entry("fxgraph", "f1", G, at=50, guards_expr="s > 4")) == "m"


def test_an_entry_that_a_miss_wrote_says_its_guards() -> None:
    def found(guards: str) -> str:
        wrote = entry("fxgraph", "f1", G, at=2, guards_expr=guards)
        second = f1(5, "hit", compile_id="1/0", guards_expr="s > 9")
        return letters(scope_of(here(f1(), second), here(f2(20)), entries=[wrote]), "x")

    assert (found(""), found("s > 4")) == ("mhh", "mh?")


def test_which_of_two_misses_wrote_an_entry_is_as_sure_as_the_times() -> None:
    """The guards of what a miss wrote itself hold for it; with one time for all files, either may have written either."""

    def found(first: float, second: float) -> str:
        guards = ((first, "s > 4"), (second, "s > 9"))
        both = [entry("fxgraph", "f1", G, at=at, guards_expr=one, name=one) for at, one in guards]
        same = entry("fxgraph", "f2", X, at=12, guards_expr="s > 9")
        first_two = here(f1(), f1(5, "guard_miss", compile_id="1/0"))
        return letters(scope_of(first_two, here(f2(10)), entries=[*both, same]), "x")

    assert (found(1, 6), found(6, 6)) == ("mmh", "mm?")


def test_graphs_looked_up_again_in_one_compile_are_stored_after_it() -> None:
    """Its entry failed, and its graph was looked up twice: what it stores is there after the second."""
    first = here(aot("a1", details=G, at=0), f1(1, took=0.5), f1(3, took=0.5))
    assert letters(scope_of(first, here(aot("a2", details=X, at=10), f2(11))), "x")[-2:] == "hh"


def table(frame: pd.DataFrame, names: str) -> list[tuple[Any, ...]]:
    rows = frame[names.split()].astype(object).itertuples(index=False, name=None)
    return [tuple(None if not isinstance(v, tuple) and pd.isna(v) else v for v in row) for row in rows]


def test_the_frame_of_lookups() -> None:
    second = here(f2(10, took=2.0), fx(None, "bypass", at=11, compile_id="1/0"))
    third = here(fx("f3", details=None, at=20, took=3.0))
    scope = scope_of(here(f1()), second, third, here(f2(30, "unknown")))
    frame = scope.what_if(without="x").frame
    names = "lookup run cache cache_key outcome"
    assert table(frame, names) == table(scope.lookups, names)
    assert table(frame, "outcome_after changed_side time_won_ns note") == [
        ("full_miss", False, None, None), ("hit", True, 2 * SECOND_NS, None), ("bypass", False, None, None),
        (None, None, None, None), ("unknown", None, None, None),
    ]  # fmt: skip
    keys = frame["what_if_key"].tolist()
    assert keys[0] == keys[1] == keys[4] != keys[3] and pd.isna(keys[2])
    before = scope.what_if().frame["what_if_key"].tolist()
    assert before[0] != before[1] == before[4]


def test_rates_runs_and_causes() -> None:
    scope = scope_of(
        here(f1(took=4.0)),
        here(f2(10, took=2.0), f1(11, "hit", time_saved_ns=7 * SECOND_NS, took=None, compile_id="1/0")),
        here(f2(30, "unknown", took=None)),
        here(fx("f3", details=None, at=40, took=None)),
    )
    found = scope.what_if(without="x")
    names = "when undecided lookups hits misses unknown hit_rate time_saved_ns time_lost_ns"
    assert table(found.rates, names) == [
        ("before", 0, 5, 1, 3, 1, 1 / 4, 7 * SECOND_NS, 6 * SECOND_NS),
        ("after", 1, 5, 2, 2, 1, 2 / 4, 9 * SECOND_NS, 4 * SECOND_NS),
    ]
    assert table(found.rates, "time_hit_rate") == [(7 / 13,), (9 / 13,)]
    names = "run lookups hits hits_after unknown time_won_ns hit_rate hit_rate_after"
    assert table(found.by_run, names) == [
        (0, 1, 0, 0, 0, None, 0, 0),
        (1, 2, 1, 2, 0, 2 * SECOND_NS, 1 / 2, 1),
        (2, 1, 0, 0, 0, None, None, None),
        (3, 1, 0, 0, 1, None, 0, 0),
    ]
    causes = table(found.by_cause, "verdict misses hits_after unknown time_won_ns")
    assert ("key_changed", 1, 1, 0, 2 * SECOND_NS) in causes
    assert [sum(row[at] for row in causes) for at in (1, 2, 3)] == [3, 1, 1]


def test_rates_without_any_time() -> None:
    found = scope_of(here(f1(took=None)), here(f2(took=None))).what_if(without="x")
    assert table(found.rates, "hits time_saved_ns time_lost_ns") == [(0, None, None), (1, None, None)]


def test_what_does_not_follow_from_what_was_stored() -> None:
    gone = scope_of(here(f1()), here(f1(20)))
    found = gone.what_if()
    assert table(found.differences, "lookup run outcome expected") == [(1, 1, "full_miss", "hit")]
    assert found.frame["note"].isna().tolist() == [True, False]
    assert found.differences["reason"].tolist() == [gone.misses["reason"].iloc[-1]]
    assert found.frame["note"].iloc[1].startswith("it had been stored and was not found")
    found = scope_of(here(f1(took=None, compile_error="E: x")), here(f1(20, "hit"))).what_if()
    assert table(found.differences, "lookup run outcome expected") == [(1, 1, "hit", "full_miss")]
    assert found.frame["note"].iloc[1].startswith("nothing that was stored explains it")
    assert found.differences["reason"].tolist() == [found.frame["note"].iloc[1]]
    # Stored sooner than the records show: nothing is wrong.
    assert scope_of(here(f1(took=50.0)), here(f1(20, "hit"))).what_if().differences.empty
    # Missed again before its compile had ended, and once the entry had gone.
    assert scope_of(here(f1(took=50.0)), here(f1(20))).what_if().differences.empty
    twice = scope_of(here(f1()), here(f1(20)), here(f1(40)))
    assert twice.what_if().differences["lookup"].tolist() == [1, 2]
    assert len(twice.what_if().differences) == 2


def helped(scope: Scope) -> dict[tuple[str, ...], tuple[Any, ...]]:
    names = "fields misses_alone time_alone_ns misses_together needs_all unknown example_lookup"
    return {row[0]: row[1:] for row in table(scope.sensitivity(), names)}


def test_which_fields_would_help() -> None:
    second = SECOND_NS
    assert helped(scope_of(here(f1()), here(f2(took=2.0)))) == {("x",): (1, 2 * second, 1, False, 0, 1)}
    # Two fields that changed together help only together.
    wanted = {("x", "y"): (1, 2 * second, 1, True, 0, 1)}
    assert helped(scope_of(here(f1()), here(f2(details=XY, took=2.0)))) == wanted
    # One of them alone, both, and the costliest miss.
    three = scope_of(
        here(f1()), here(f2(10, took=2.0)), here(fx("f3", details={**G, "x": "3", "y": "2"}, at=20, took=5.0))
    )
    both = (2, 7 * second, 1, False, 0, 2)
    assert helped(three) == {("x",): (1, 2 * second, 1, False, 0, 1), ("x", "y"): both}
    assert [row[0] for row in table(three.sensitivity(), "fields")] == [("x", "y"), ("x",)]
    # What does not vary, or hits, or has no details, helps nobody.
    assert helped(scope_of(here(f1()), here(f1(10, "hit")))) == {}
    assert helped(scope_of(here(f1()))) == {}
    blind = helped(scope_of(here(f1()), here(f2(took=2.0)), here(fx("f3", details=None, at=20, took=1.0))))
    assert blind == {("x",): (1, 2 * second, 1, False, 1, 1)}
    # In another directory the field would have helped nothing.
    assert helped(scope_of(run(f1(), cache_dir="/other"), here(f2()))) == {}
    assert helped(scope_of(here(f1()), here(f2(took=None)))) == {("x",): (1, None, 1, False, 0, 1)}


def test_sets_of_three_are_tried_where_they_are_the_nearest() -> None:
    z = {**XY, "z": "2"}
    scope = scope_of(here(f1(details={**G, "z": "1"})), here(f2(details=z, took=2.0)))
    assert helped(scope) == {("x", "y", "z"): (1, 2 * SECOND_NS, 1, True, 0, 1)}
    # Of two that differ, the nearer one tells.
    near = {**z, "z": "1"}
    third = fx("f3", details=near, at=5, took=1.0)
    scope = scope_of(here(f1(details={**G, "z": "1"})), here(third), here(f2(details=z, took=2.0)))
    smaller = {("x", "y"), ("z",)}
    assert set(helped(scope)) in (smaller, smaller | {("x", "y", "z")})


def test_of_many_fields_those_are_put_back_that_help_alone() -> None:
    """Nine that changed together, of which one changed alone as well."""
    nine = dict.fromkeys("abcdefghi", "2")
    usual = {"gm": CODE, **dict.fromkeys(nine, "1")}
    alone = fx("f3", details={**usual, "a": "2"}, at=20, took=1.0)
    scope = scope_of(here(f1(details=usual)), here(f2(details={**usual, **nine}, took=2.0)), here(alone))
    found = helped(scope)
    assert found[tuple(nine)] == (2, 3 * SECOND_NS, 1, False, 0, 1)
    assert found[("a",)] == (1, SECOND_NS, 1, False, 0, 2)
    # Eight that only help together.
    eight = dict.fromkeys("abcdefgh", "2")
    scope = scope_of(here(f1(details=usual)), here(f2(details={**usual, **eight}, took=2.0)))
    assert helped(scope) == {tuple(eight): (1, 2 * SECOND_NS, 1, True, 0, 1)}


def test_the_most_time_comes_first_then_the_most_misses_then_the_fewest_fields() -> None:
    usual = {"gm": CODE, "a": "1", "b": "1", "c": "1"}

    def scope(*changed: tuple[str, float | None]) -> Scope:
        runs = [here(f1(details=usual))]
        for at, (names, took) in enumerate(changed, 1):
            details = {**usual, **dict.fromkeys(names, f"{at + 1}")}
            runs.append(here(fx(f"f{at + 1}", details=details, at=10 * at, took=took)))
        return scope_of(*runs)

    def order(*changed: tuple[str, float | None]) -> list[str]:
        return ["".join(row[0]) for row in table(scope(*changed).sensitivity(), "fields")]

    assert order(("a", 1.0), ("b", 2.0)) == ["b", "a"]
    assert order(("a", None), ("b", None), ("b", None)) == ["b", "a"]
    assert order(("ab", None), ("c", None)) == ["c", "ab"]
    assert order(("b", None), ("a", None)) == ["a", "b"]
