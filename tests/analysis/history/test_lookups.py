"""Lookups as columns: rows in, numbers, flags and rows out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import MISSING, Lookups, Texts, known
from cachescope.analysis.history.places_by_group import NONE
from cachescope.analysis.history.rows import EntryRow, LookupRow, RunRow, entry_rows
from cachescope.details import HashDetails
from tests.analysis.verdicts.test_graph_alignment import rows
from tests.made import CODE, entry, fx, run, scope_of

(TEMPLATE,) = rows(HashDetails(), ["def forward(): return ()"], 0)


def lookups(*told: dict[str, object]) -> Lookups:
    made = [replace(TEMPLATE, **{"lookup": at, **one}) for at, one in enumerate(told)]  # type: ignore[arg-type]
    return Lookups.of_rows(made)


@pytest.mark.parametrize("at_hand", [0, 2, 99])
def test_texts_have_numbers_however_many_there_are(at_hand: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachescope.analysis.history.lookups._AT_HAND", at_hand)
    texts = Texts.of(pd.Series(["b", None, "a", "b"], dtype=object))
    assert len(texts) == 4
    assert texts.codes.tolist() == [0, NONE, 1, 0]
    assert [texts[at] for at in range(4)] == texts.listed() == ["b", None, "a", "b"]
    assert (texts.text(0), texts.text(1), texts.text(-1)) == ("b", "a", None)
    assert texts.distinct == ["b", "a"]
    assert texts.is_known.tolist() == [True, False, True, True]
    assert texts.codes_of(["a", "nothing"]) == {"a": 1}
    assert texts.codes_of({"b", "a"}) == {"b": 0, "a": 1}
    assert texts.are("b", "nothing").tolist() == [True, False, False, True]
    assert texts.are("nothing").tolist() == [False] * 4
    taken = texts.take(np.array([2, 1, 0]))
    assert taken.listed() == ["a", None, "b"]


def test_the_place_of_an_id() -> None:
    found = lookups({"lookup": 9}, {"lookup": 2}, {"lookup": 5})
    assert [found.place_of(one) for one in (9, 2, 5)] == [0, 1, 2]
    assert [found.place_of(one) for one in (-1, 0, 3, 8, 10)] == [None] * 5
    assert found.places_of(np.array([5, 2, 3, 99, -1, 9])).tolist() == [2, 1, NONE, NONE, NONE, 0]
    none = Lookups.of_rows([])
    assert none.places_of(np.array([1, 2])).tolist() == [NONE, NONE]
    assert none.place_of(0) is None


def test_rows_by_place() -> None:
    found = lookups({}, {}, {})
    assert [row.lookup for row in found] == [0, 1, 2]
    assert [row.lookup for row in found[1:]] == [1, 2]
    assert [row.lookup for row in found[:1]] == [0]
    assert found[2].lookup == 2
    assert len(found) == 3


def test_what_was_looked_up() -> None:
    outcomes = ("hit", "full_miss", "guard_miss", "bypass", "unknown", "disabled")
    found = lookups(*({"outcome": outcome} for outcome in outcomes))
    assert found.is_hit.tolist() == [True, False, False, False, False, False]
    assert found.is_miss.tolist() == [False, True, True, False, False, False]
    assert [row.is_hit for row in found] == found.is_hit.tolist()
    assert [row.is_miss for row in found] == found.is_miss.tolist()
    found = lookups({"cache": "aotautograd"}, {"cache": "fxgraph"}, {"cache": "other"})
    assert (found.is_aot.tolist(), found.is_fx.tolist()) == ([True, False, False], [False, True, False])


def test_keys_and_compiles_have_numbers() -> None:
    found = lookups(
        {"cache_key": "k", "run": 7, "compile_id": "0/0"},
        {"cache_key": "k", "cache": "aotautograd", "run": 7, "compile_id": "0/1"},
        {"cache_key": None, "run": 3, "compile_id": "0/0"},
        {"cache_key": "l", "run": 3, "compile_id": None},
        {"cache_key": "k", "run": 3, "compile_id": "0/0"},
    )
    assert found.key.tolist() == [0, 1, NONE, 2, 0]
    assert found.run_number.tolist() == [0, 0, 1, 1, 1]
    assert found.compiled_in.tolist() == [0, 1, 2, 3, 2]


def test_another_outcome_at_some_places() -> None:
    found = lookups({"outcome": "hit"}, {"outcome": "full_miss"}, {"outcome": "full_miss"})
    settled = found.with_outcome("guard_miss", [2])
    assert settled.outcome.listed() == ["hit", "full_miss", "guard_miss"]
    assert found.outcome.listed() == ["hit", "full_miss", "full_miss"]
    again = settled.with_outcome("hit", [1])
    assert (again.outcome.listed(), again.outcome.distinct) == (
        ["hit", "hit", "guard_miss"],
        settled.outcome.distinct,
    )
    assert settled[2].outcome == "guard_miss"


def test_a_number_that_no_log_has() -> None:
    assert known(np.int64(MISSING)) is None
    assert (known(np.int64(0)), known(np.int64(-1))) == (0, -1)


def order_of(*told: tuple[int, float | None]) -> list[int]:
    """The order of lookups of some runs, each with its time; by their numbers."""
    runs = [
        run(*(fx(f"f{at}", at=time) for at, (one, time) in enumerate(told) if one == number))
        for number in range(3)
    ]
    return [int((row.cache_key or "")[1:]) for row in scope_of(*runs).history.lookups]


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ([(0, 1), (1, 2), (0, 3)], [0, 1, 2]),
        ([(0, 5), (1, 2), (0, 6)], [1, 0, 2]),
        # A clock that was set back, or that is not there, leaves the order of its run.
        ([(0, 5), (0, 2), (1, 4)], [2, 0, 1]),
        ([(0, 5), (0, None), (1, 6)], [0, 1, 2]),
        ([(0, 5), (1, 6), (0, None), (0, 7)], [0, 2, 1, 3]),
    ],
)
def test_lookups_are_in_time_order(told: list[tuple[int, float | None]], wanted: list[int]) -> None:
    assert order_of(*told) == wanted


# What a history knows of its lookups.


def history(
    *told: dict[str, object], entries: tuple[EntryRow, ...] = (), runs: tuple[RunRow, ...] = ()
) -> History:
    return History(lookups(*told), entries, runs)


def test_the_rank_of_each_lookup() -> None:
    runs = RunRow(5, 1, None, None), RunRow(2, 0, None, None), RunRow(3, None, None, None)
    found = history({"run": 5}, {"run": 2}, {"run": 3}, {"run": 9}, {"run": 5}, runs=runs)
    assert found.rank.tolist() == [1, 0, NONE, NONE, 1]


def test_the_latest_lookup_of_a_key() -> None:
    keys = ("k", "l", "k", None, "k", None, "l")
    found = history(*({"cache_key": key} for key in keys))
    assert found.latest_of_key.tolist() == [NONE, NONE, 0, NONE, 2, NONE, 1]
    found = history({"cache_key": "k"}, {"cache_key": "k", "cache": "aotautograd"})
    assert found.latest_of_key.tolist() == [NONE, NONE]


def test_the_guards_that_lookups_of_a_key_show() -> None:
    found = history(
        {"cache_key": "k", "outcome": "hit", "guards_expr": "a"},
        {"cache_key": "k", "outcome": "guard_miss", "guards_expr": "b"},
        {"cache_key": "l", "outcome": "hit", "guards_expr": "c"},
        {"cache_key": "k", "outcome": "full_miss", "guards_expr": "d"},
        {"cache_key": "k", "outcome": "hit", "guards_expr": "a"},
        {"cache_key": "k", "outcome": "hit", "guards_expr": None},
        {"cache_key": None, "outcome": "hit", "guards_expr": "e"},
        {"cache_key": "k", "outcome": "hit", "guards_expr": "f"},
        {"cache_key": "k", "outcome": "hit"},
        {"cache_key": None, "outcome": "hit"},
    )
    assert [found.guards_before(at) for at in (0, 1, 2, 4, 7, 8)] == [
        [],
        ["a"],
        [],
        ["a", "b"],
        ["a", "b"],
        ["a", "b", "f"],
    ]
    assert found.guards_before(9) == []


def test_the_lookups_of_an_entry() -> None:
    entries = [EntryRow(n, cache, key, "r", "p", None, "ok", *[None] * 7)
               for n, (cache, key) in enumerate([("fxgraph", "k"), ("aotautograd", "k"), ("fxgraph", "m")])]  # fmt: skip
    found = history({"cache_key": "k"}, {"cache_key": "l"}, {"cache_key": "k", "cache": "aotautograd"}, {"cache_key": "k"},
                    entries=tuple(entries))  # fmt: skip
    assert [list(found.lookups_of(one)) for one in entries] == [[0, 3], [2], []]


def test_which_misses_stored_a_result() -> None:
    found = history(
        {}, {"outcome": "hit"}, {"save_bypass": "no"}, {"outcome": "guard_miss"}, {"outcome": "bypass"}
    )
    assert found.stored.tolist() == [True, False, False, True, False]
    assert list(found.timeline.not_stored) == [2]


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (None, None),
        ("", None),
        ("python train.py --lr 1", "train.py"),
        ("python -u -m train --lr 1", "train"),
        ("python -m", ""),
        ("torchrun --nproc 2 'my train.py' x.py", "my train.py"),
        ("pytest -q", "pytest"),
        ("it's not closed", None),
    ],
)
def test_the_program_of_a_run(command: str | None, program: str | None) -> None:
    assert RunRow(0, None, None, None, command).program == program


def test_the_entries_that_stand_for_a_key() -> None:
    details = {"gm": CODE, "fx_kwargs[is_backward]": "True"}
    scope = scope_of(
        entries=[
            entry("fxgraph", "f1", details),
            entry("code", "c2"),
            entry("aotautograd", "a3"),
            entry("fxgraph", "f4", {"x": "1"}),
        ]
    )  # fmt: skip
    found = entry_rows(scope.entries, scope.tables.hash_details)
    assert {one.cache_key: one.direction for one in found} == {"f1": "backward", "a3": None, "f4": None}
    store = scope.tables.hash_details
    assert {one.cache_key: one.gm for one in found} == {
        "f1": store.hash_code(next(one.detail_set for one in found if one.detail_set is not None), "gm"), "a3": None, "f4": None,
    }  # fmt: skip


def test_a_row_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lookups({}, {})
    first: LookupRow = found[1]
    assert found[1] is first
