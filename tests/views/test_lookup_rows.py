"""The rows of Lookups, folded and summed up: held against what plain Python finds in the frames."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cachescope
from cachescope.columns import records
from cachescope.views.coded_columns import shares, spread
from cachescope.views.lookup_rows import Folding, LookupRows, lookups_frame
from cachescope.views.table import Table

FILTERS: list[dict[str, Any]] = [
    {}, {"outcome": "full_miss"}, {"cache": "fxgraph"}, {"cache": "aotautograd"}, {"run": 3},
]  # fmt: skip


def every_line(rows: LookupRows) -> list[tuple[int, int, int]]:
    """Each line that is seen: its lookup, its level, how many are below it."""
    lines = [lookup for lookup, _ in rows.page(0, len(rows))]
    return [(at, fold.level, fold.below) for at, fold in zip(lines, rows.folds(0, len(rows)), strict=True)]


def by_hand(passing: list[dict[str, Any]]) -> dict[int | None, list[dict[str, Any]]]:
    """Lookups by the AOTAutograd lookup above them; those without one that passes stand under None."""
    there = {one["lookup"] for one in passing}
    groups: dict[int | None, list[dict[str, Any]]] = {None: []}
    for one in passing:
        above = one["aot_lookup"] if one["aot_lookup"] in there else None
        groups.setdefault(above, []).append(one)
    return groups


@pytest.mark.slow
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_lookups_of_graphs_are_below_their_own(filters: dict[str, Any], tour: cachescope.Scope) -> None:
    frame = lookups_frame(tour)
    passing = [one for one in records(frame) if all(one[name] == value for name, value in filters.items())]
    groups = by_hand(passing)
    rows = LookupRows(frame)
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
    assert rows.shown()["lookup"].tolist() == [one["lookup"] for one in passing]
    assert [row[0] for row in rows.whole()[1]] == [one["lookup"] for one in passing]


@pytest.mark.parametrize("ascending", [True, False])
def test_folded_lookups_are_sorted_by_the_time_below_them(ascending: bool, tour: cachescope.Scope) -> None:
    frame = lookups_frame(tour)
    groups = by_hand(records(frame))
    times: dict[int, int] = {}
    for one in groups[None]:
        below = [each["time_taken_ns"] for each in groups.get(one["lookup"], [])]
        if any(time is not None for time in below):
            times[one["lookup"]] = sum(time or 0 for time in below)
    rows = LookupRows(frame)
    rows.order("time_taken_ns", ascending)
    seen = [lookup for lookup, _, _ in every_line(rows)]
    assert seen[: len(times)] == sorted(times, key=lambda lookup: times[lookup], reverse=not ascending)
    assert set(seen[len(times) :]) == {one["lookup"] for one in groups[None]} - set(times)


def test_a_time_below_that_is_not_known_is_not_told(tour: cachescope.Scope) -> None:
    frame = lookups_frame(tour)
    at = [head.name for head in LookupRows(frame).heads].index("time_taken_ns")
    assert LookupRows(frame).page(0, 1)[0][1][at] == "10.9 s below"
    frame.loc[frame["lookup"] == 1, "time_taken_ns"] = pd.NA
    assert LookupRows(frame).page(0, 1)[0][1][at] == ""


def test_columns_are_summed_up_over_the_rows_that_pass(tour: cachescope.Scope) -> None:
    frame = lookups_frame(tour)
    rows = LookupRows(frame)
    rows.filter({"run": 2})
    summaries = dict(zip([head.name for head in rows.heads], rows.summaries(), strict=True))
    mine = frame[frame["run"] == 2]
    outcome = summaries["outcome"]
    assert outcome is not None
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
    codes = np.repeat(np.arange(8), [9, 8, 7, 6, 5, 4, 3, 2])
    found = shares(np.append(codes, -1), list("abcdefgh"), {"b": "#fff"})
    counts = {"a": 9, "b": 8, "c": 7, "d": 6, "e": 5, "3 other values": 9}
    assert [part[:2] for part in found["parts"]] == [[name, count] for name, count in counts.items()]
    assert [part[2] for part in found["parts"]][:2] == ["", "#fff"]
    assert found["text"] == "8 values"
    assert shares(np.array([-1]), [], {})["parts"] == []


def test_few_numbers_are_named_by_their_ends() -> None:
    assert shares(np.array([0, 1, 1, 2]), [7, 8, 9], {})["text"] == "7 to 9"
    assert shares(np.array([0, 0]), [7, 8], {})["text"] == "7"


def test_a_spread_counts_each_known_number_once() -> None:
    numbers = np.array([1.0, 10.0, 100.0, 1e9, math.nan, 0.0])
    for log in (True, False):
        found = spread(numbers, lambda number: f"{number:g}", log=log)
        assert sum(found["bars"]) == 5 and found["text"] == "0 to 1e+09"
        assert found["said"] == "5 from 0 to 1e+09, 1 not known"
    assert spread(np.array([5.0, 5.0]), str, log=True)["bars"] == [2]
    assert spread(np.array([math.nan]), str, log=True)["bars"] == []


def test_rows_below_stand_after_the_one_above() -> None:
    folding = Folding(np.array([-1, 0, -1, 2, 2, 0]))
    folding.arrange(np.array([2, 0]), np.array([5, 4, 3, 1]))
    assert folding.seen.tolist() == [2, 0]
    folding.toggle(0)
    assert folding.seen.tolist() == [2, 0, 5, 1] and folding.is_open(0)
    folding.toggle(2)
    assert folding.seen.tolist() == [2, 4, 3, 0, 5, 1] and folding.count(2) == 2
    folding.toggle(0)
    assert folding.seen.tolist() == [2, 4, 3, 0]


def copied(table: Table, monkeypatch: pytest.MonkeyPatch, **asked: object) -> list[str]:
    sent: list[str] = []
    monkeypatch.setattr(table, "send", lambda content, buffers: sent.append(buffers[0].decode()))
    table._handle_custom_msg(asked, [])
    return sent


def test_a_page_or_all_of_it_is_copied(tour: cachescope.Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(LookupRows(lookups_frame(tour)), "lookups", page_size=5)
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
    frame = lookups_frame(cachescope.read(cachescope.sample("config_flip"))).assign(function=text)
    (pasted,) = copied(Table(LookupRows(frame), "lookups"), monkeypatch, copy="tsv", all=True)
    at = pasted.splitlines()[0].split("\t").index("function")
    for line in pasted.splitlines()[1:]:
        assert line.split("\t")[at][0] not in "=+-@\t\x1b"
