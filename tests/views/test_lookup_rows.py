"""The rows of Lookups, folded and summed up: held against what plain Python finds in the frames."""

from collections import Counter
from dataclasses import asdict, replace
from typing import Any

import pytest

import cachescope
from cachescope.views.lookups import Listed, LookupRows, listed_lookups, lookups_frame, shares, spread
from cachescope.views.table import Table

FILTERS: list[dict[str, Any]] = [
    {}, {"outcome": "full_miss"}, {"cache": "fxgraph"}, {"cache": "aotautograd"}, {"run": 3},
]  # fmt: skip


def rows_of(scope: cachescope.Scope) -> list[Listed]:
    return list(listed_lookups(scope))


def every_line(rows: LookupRows) -> list[tuple[int, int, int]]:
    """Each line that is seen: its lookup, its level, how many are below it."""
    lines = [lookup for lookup, _ in rows.page(0, len(rows))]
    folds = rows.folds(0, len(rows))
    return [(at, fold["level"], fold["below"]) for at, fold in zip(lines, folds, strict=True)]


def by_hand(passing: list[dict[str, Any]]) -> dict[int | None, list[dict[str, Any]]]:
    """Lookups by the AOTAutograd lookup above them; those without one that passes stand under None."""
    there = {one["lookup"] for one in passing}
    groups: dict[int | None, list[dict[str, Any]]] = {None: []}
    for one in passing:
        above = one["above"] if one["above"] in there else None
        groups.setdefault(above, []).append(one)
    return groups


@pytest.mark.slow
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_lookups_of_graphs_are_below_their_own(filters: dict[str, Any], tour: cachescope.Scope) -> None:
    every = map(asdict, rows_of(tour))
    passing = [one for one in every if all(one[name] == value for name, value in filters.items())]
    groups = by_hand(passing)
    rows = LookupRows(rows_of(tour))
    rows.filter(filters)
    assert every_line(rows) == [(at := one["lookup"], 1, len(groups.get(at, []))) for one in groups[None]]
    for one in groups[None]:
        rows.fold(one["lookup"])
    assert [lookup for lookup, _, _ in every_line(rows)] == [
        lookup
        for one in groups[None]
        for lookup in (one["lookup"], *(b["lookup"] for b in groups.get(one["lookup"], [])))
    ]
    # Folding hides no row from what is copied or returned.
    assert lookups_frame(tour, rows.passing())["lookup"].tolist() == [one["lookup"] for one in passing]
    assert [row[0] for row in rows.whole()[1]] == [one["lookup"] for one in passing]


@pytest.mark.parametrize("ascending", [True, False])
def test_folded_lookups_are_sorted_by_the_time_below_them(ascending: bool, tour: cachescope.Scope) -> None:
    groups = by_hand([*map(asdict, rows_of(tour))])
    times: dict[int, int] = {}
    for one in groups[None]:
        below = [each["time_taken_ns"] for each in groups.get(one["lookup"], [])]
        if any(time is not None for time in below):
            times[one["lookup"]] = sum(time or 0 for time in below)
    rows = LookupRows(rows_of(tour))
    rows.order("time_taken_ns", ascending)
    seen = [lookup for lookup, _, _ in every_line(rows)]
    assert seen[: len(times)] == sorted(times, key=lambda lookup: times[lookup], reverse=not ascending)
    assert set(seen[len(times) :]) == {one["lookup"] for one in groups[None]} - set(times)


def test_a_time_below_that_is_not_known_is_not_told(tour: cachescope.Scope) -> None:
    every = rows_of(tour)
    at = [*LookupRows(every).columns].index("time_taken_ns")
    assert LookupRows(every).page(0, 1)[0][1][at] == "10.9 s below"
    every[1] = replace(every[1], time_taken_ns=None)
    assert LookupRows(every).page(0, 1)[0][1][at] == ""


def test_columns_are_summed_up_over_the_rows_that_pass(tour: cachescope.Scope) -> None:
    rows = LookupRows(rows_of(tour))
    rows.filter({"run": 2})
    summaries = dict(zip(rows.columns, rows.summaries(), strict=True))
    mine = tour.lookups[tour.lookups["run"] == 2]
    outcome = summaries["outcome"]
    assert {name: count for name, count, _ in outcome["parts"]} == Counter(mine["outcome"])
    verdict = summaries["verdict"]
    assert verdict is not None and verdict["rows"] == 8
    assert verdict["said"] == "key_changed: 2, none: 6" and verdict["text"] == "25 % key_changed"
    times = summaries["time_taken_ns"]
    assert times is not None and sum(times["bars"]) == mine["time_taken_ns"].notna().sum()
    assert summaries["lookup"] is None
    # Made once for a filter, however often the table is sorted.
    before = rows.summaries()
    rows.order("reason", False)
    assert rows.summaries() is before
    rows.filter({})
    assert rows.summaries() is not before


def test_shares_beyond_the_commonest_are_one_part() -> None:
    values = [name for name, count in zip("abcdefgh", range(9, 1, -1), strict=True) for _ in range(count)]
    found = shares([*values, None], {"b": "#fff"})
    counts = {"a": 9, "b": 8, "c": 7, "d": 6, "e": 5, "3 other values": 9}
    assert [part[:2] for part in found["parts"]] == [[name, count] for name, count in counts.items()]
    assert [part[2] for part in found["parts"]][:2] == ["", "#fff"]
    assert (found["text"], found["rows"]) == ("8 values", 45)
    assert shares([None], {})["parts"] == []


def test_few_numbers_are_named_by_their_ends() -> None:
    assert shares([7, 8, 8, 9], {})["text"] == "7 to 9"
    assert shares([7, 7], {})["text"] == "7"


def test_a_spread_counts_each_known_number_once() -> None:
    numbers = [1, 10, 100, 10**9, None, 0]
    for log in (True, False):
        found = spread(numbers, str, log=log)
        assert sum(found["bars"]) == 5 and found["text"] == "0 to 1000000000"
        assert found["said"] == "5 from 0 to 1000000000, 1 not known"
    assert spread(numbers, str, log=False)["bars"] == [4, *[0] * 14, 1]
    assert spread([5, 5], str, log=True)["bars"] == [2]
    assert spread([None], str, log=True)["bars"] == []


def copied(table: Table, monkeypatch: pytest.MonkeyPatch, **asked: object) -> list[str]:
    sent: list[str] = []
    monkeypatch.setattr(table, "send", lambda content, buffers: sent.append(buffers[0].decode()))
    table._handle_custom_msg(asked, [])
    return sent


def test_a_page_or_all_of_it_is_copied(tour: cachescope.Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(LookupRows(rows_of(tour)), "lookups", page_size=5)
    table.page = 1
    (page,) = copied(table, monkeypatch, copy="tsv", all=False)
    assert [line.split("\t")[0] for line in page.splitlines()] == ["lookup", "10", "12", "14", "16", "18"]
    (every,) = copied(table, monkeypatch, copy="csv", all=True)
    assert len(every.splitlines()) == 49
    # The page could ask for anything.
    assert copied(table, monkeypatch, copy="exe", all=True) == []


@pytest.mark.parametrize("text", [
    "=cmd()",
    " \n=1",
    *(pytest.param(one, marks=pytest.mark.slow) for one in ("+1", "-1", "@x", "\t=1", "\x1b[31m=1")),
])  # fmt: skip
def test_no_text_of_a_log_is_a_formula_where_it_is_pasted(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [replace(row, function=text) for row in rows_of(cachescope.read(cachescope.sample("config_flip")))]
    (pasted,) = copied(Table(LookupRows(rows), "lookups"), monkeypatch, copy="tsv", all=True)
    at = pasted.splitlines()[0].split("\t").index("function")
    for line in pasted.splitlines()[1:]:
        assert line.split("\t")[at][0] not in "=+-@\t\x1b"
