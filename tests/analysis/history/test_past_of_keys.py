"""The past of a key, walked along in one go, against a look back at all earlier lookups from each of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import Lookups
from cachescope.analysis.history.past_of_keys import PastOfKeys
from cachescope.analysis.history.rows import LookupRow
from cachescope.analysis.history.timeline import Timeline
from cachescope.details import HashDetails
from tests.analysis.verdicts.test_graph_alignment import rows

DIRECTORIES = {0: "/a", 1: "/b", 2: "/a", 3: None, 4: "/c"}
KEPT_BACK = "not stored"

(TEMPLATE,) = rows(HashDetails(), ["def forward(): return ()"], 0)

lookups = st.tuples(
    st.sampled_from(["k", "l", None]),
    st.sampled_from(list(DIRECTORIES)),
    st.sampled_from(["0/0", "0/1", None]),
    st.sampled_from(["hit", "full_miss", "full_miss", "guard_miss", "bypass"]),
    st.booleans(),
    st.integers(0, 3),
    st.one_of(st.none(), st.integers(0, 8)),
    st.sampled_from([None, "g", "h"]),
)


def made(values: list[tuple]) -> list[LookupRow]:
    """In time order; a lookup may be without a time."""
    time = 0
    found = []
    for at, (key, run, compile_id, outcome, is_kept_back, later, taken, guards) in enumerate(values):
        time += later
        found.append(
            replace(
                TEMPLATE,
                lookup=at,
                run=run,
                time=None if taken is None else time,
                time_taken_ns=taken,
                cache_key=key,
                compile_id=compile_id,
                outcome=outcome,
                save_bypass=KEPT_BACK if is_kept_back else None,
                guards_expr=guards,
            )
        )
    return found


@settings(max_examples=100)
@given(st.lists(lookups, max_size=12))
def test_it_is_what_looking_back_at_every_earlier_lookup_finds(values: list[tuple]) -> None:
    history = made(values)
    pasts, timeline = pasts_of(history, DIRECTORIES)
    guards = History.of_rows(history).guards_before
    asked = []
    for at, past in pasts.of_each(np.ones(len(history), dtype=bool)):
        asked.append(at)
        row = history[at]
        earlier = [one for one in history[:at] if one.cache_key == row.cache_key is not None]
        stored = [one for one in earlier if had_stored(one, row)]
        assert past.latest == (earlier[-1].lookup if earlier else None)
        assert past.latest_stored == (stored[-1].lookup if stored else None)
        others = [one for one in earlier if one.is_hit or not is_one_compile(one, row)]
        told = [one for one in others if one.is_hit or one.is_miss]
        refused = told[-1] if told and not told[-1].is_hit and told[-1].save_bypass else None
        if refused is not None and None not in (row.time, refused.time) and end(refused) >= row.time:
            refused = None
        assert past.refused == (None if refused is None else refused.lookup)
        assert past.refused is None or past.refused in timeline.not_stored
        hits = [one for one in others if one.is_hit]
        assert past.latest_hit == (hits[-1].lookup if hits else None)
        shown = [one.guards_expr for one in earlier if one.outcome in ("hit", "guard_miss")]
        assert guards(at) == list(dict.fromkeys(text for text in shown if text))
        elsewhere = None if past.elsewhere is None else pasts.directory(past.elsewhere)
        there = {DIRECTORIES[one.run] for one in stored or earlier} - {None}
        here = DIRECTORIES[row.run]
        assert elsewhere == (None if here is None or here in there else max(there, default=None))
        racing = [one for one in earlier if was_compiling(one, row)]
        found = past.racing()
        assert (None if found is None else found.first) == (racing[0].lookup if racing else None)
        assert found is None or list(found.runs) == sorted({one.run for one in racing})
    has_past = [
        any(one.cache_key == row.cache_key is not None for one in history[:at])
        for at, row in enumerate(history)
    ]
    assert sorted(asked) == [at for at, had in enumerate(has_past) if had]


def pasts_of(history: list[LookupRow], directories: dict[int, str | None]) -> tuple[PastOfKeys, Timeline]:
    lookups = Lookups.of_rows(history)
    timeline = Timeline(lookups, ())
    return PastOfKeys(lookups, timeline, directories), timeline


def had_stored(one: LookupRow, row: LookupRow) -> bool:
    """Whether an entry was there because of an earlier lookup."""
    if one.is_hit:
        return True
    if one.outcome == "bypass" or one.save_bypass is not None or is_one_compile(one, row):
        return False
    return row.time is None or one.time is None or end(one) < row.time


def is_one_compile(one: LookupRow, row: LookupRow) -> bool:
    return (one.run, one.compile_id) == (row.run, row.compile_id)


def was_compiling(one: LookupRow, row: LookupRow) -> bool:
    if None in (one.time, row.time) or not one.is_miss or one.run == row.run:
        return False
    return row.time is not None and end(one) >= row.time


def end(one: LookupRow) -> int:
    assert one.time is not None and one.time_taken_ns is not None
    return one.time + one.time_taken_ns


@pytest.mark.parametrize("runs", [9, 30])
def test_a_fleet_that_races_is_counted_and_not_listed(runs: int) -> None:
    history = [replace(TEMPLATE, lookup=at, run=at, time=at, time_taken_ns=10**9) for at in range(runs)]
    pasts, _ = pasts_of(history, {})
    found = [past.racing() for _, past in pasts.of_each(np.ones(runs, dtype=bool))]
    assert found[-1] == (0, tuple(range(8)), runs - 1 - 8)
