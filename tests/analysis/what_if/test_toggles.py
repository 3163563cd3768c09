"""What lookups would have been without a field: lookups in, outcomes out; made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.made import CODE, Made, Run, fx, run, scope_of

G = {"gm": CODE, "x": "1", "y": "1"}
HERE, THERE = {"cache_dir": "/cache"}, {"cache_dir": "/other"}


def key(name: str, at: float, fields: Mapping[str, str] | None = None, **told: Any) -> Made:
    outcome = told.pop("outcome", "full_miss")
    took = None if outcome == "hit" else 2.0
    return fx(f"f{name}", outcome, {**G, **(fields or {})}, at=at, took=took, **told)


def after(*runs: Run, without: str = "x") -> list[str | None]:
    frame = scope_of(*runs).what_if(without=without).frame
    return [
        None if outcome != outcome or outcome is None else str(outcome)
        for outcome in frame["outcome_after"].astype(object).where(frame["outcome_after"].notna(), None)
    ]


X2, Y2 = {"x": "2"}, {"y": "2"}


@pytest.mark.parametrize(
    ("runs", "wanted"),
    [
        ((run(key("1", 0), **HERE), run(key("2", 10, X2), **HERE)), ["full_miss", "hit"]),
        ((run(key("1", 0), **HERE), run(key("2", 10, Y2), **HERE)), ["full_miss", "full_miss"]),
        ((run(key("1", 0), **HERE), run(key("2", 10, {**X2, **Y2}), **HERE)), ["full_miss", "full_miss"]),
        # Another directory has other entries.
        ((run(key("1", 0), **HERE), run(key("2", 10, X2), **THERE)), ["full_miss", "full_miss"]),
        # What was still being compiled was not there.
        ((run(key("1", 8), **HERE), run(key("2", 9, X2), **HERE)), ["full_miss", "full_miss"]),
        # A failed compile stores nothing.
        (
            (
                run(key("1", 0, compile_error="ValueError: no", time_taken_ns=None), **HERE),
                run(key("2", 10, X2), **HERE),
            ),
            ["full_miss", "full_miss"],
        ),
        # What hit hits all the same.
        (
            (
                run(key("1", 0), **HERE),
                run(key("1", 10, outcome="hit"), **HERE),
                run(key("3", 20, X2), **HERE),
            ),
            ["full_miss", "hit", "hit"],
        ),
    ],
)
def test_without_a_field(runs: tuple[Run, ...], wanted: list[str]) -> None:
    assert after(*runs) == wanted


def test_a_process_is_of_the_directory_in_which_it_found_what_only_that_had() -> None:
    bypass = fx(None, "bypass", at=9, compile_id="7/0")
    runs = (
        run(key("1", 0), **HERE),
        run(bypass, key("1", 10, outcome="hit"), key("2", 20, X2, compile_id="1/0")),
    )
    assert after(*runs) == ["full_miss", "bypass", "hit", "hit"]


def test_the_time_that_is_won_is_that_of_the_misses_that_hit() -> None:
    found = scope_of(run(key("1", 0), **HERE), run(key("2", 10, X2), **HERE)).what_if(without="x")
    before, then = found.rates.to_dict("records")
    assert (before["hits"], then["hits"]) == (0, 1)
    assert found.frame["time_won_ns"].sum() == 2 * 10**9
    assert before["time_lost_ns"] - then["time_lost_ns"] == 2 * 10**9
    assert found.by_run["hits_after"].tolist() == [0, 1]
