"""The past of a key, walked along in one go, against a look back at all earlier lookups from each of them; and misses of a text log that can only be guard misses."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachescope.analysis.history.history import History, is_miss
from cachescope.analysis.history.past_of_keys import Past, pasts_of, settled_history
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import TEMPLATE, entry_row, history_of, run_row
from tests.made import set_of

DIRECTORIES = {0: "/a", 1: "/b", 2: "/a", 3: None, 4: "/c"}
KEPT_BACK = "not stored"


lookups = st.tuples(
    # Few of each, so that several processes often look up one key at once.
    st.sampled_from(["k", "k", "l", None]),
    st.sampled_from([0, 2, *DIRECTORIES]),
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
        told: dict[str, Any] = {"lookup": at, "run": run, "cache_key": key, "compile_id": compile_id}
        told |= {"time": None if taken is None else time, "time_taken_ns": taken}
        told |= {"outcome": outcome, "save_bypass": KEPT_BACK if is_kept_back else None}
        # As of a trace, which tells the directory of every lookup.
        told |= {"status_detailed": outcome}
        found.append(replace(TEMPLATE, **told, guards_expr=guards))
    return found


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(lookups, max_size=12))
def test_it_is_what_looking_back_at_every_earlier_lookup_finds(values: list[tuple]) -> None:
    history = made(values)
    of_all = made_history(history, DIRECTORIES)
    asked = []
    for at, past in pasts_of(of_all, range(len(history))):
        asked.append(at)
        row = history[at]
        earlier = [one for one in history[:at] if one.cache_key == row.cache_key is not None]
        moment = max((one.time for one in history[: at + 1] if one.time is not None), default=0)
        going_on = [one for one in earlier if was_compiling(one, row, moment, history)]
        stored = [one for one in earlier if had_stored(one) and one not in going_on]
        assert past.latest == (earlier[-1].lookup if earlier else None)
        assert past.latest_stored == (stored[-1].lookup if stored else None)
        told = [one for one in earlier if one not in going_on and (one.outcome == "hit" or is_miss(one))]
        is_refused = bool(told) and told[-1].outcome != "hit" and told[-1].save_bypass is not None
        refused = told[-1] if is_refused else None
        hits = [one for one in earlier if one.outcome == "hit"]
        assert past.latest_hit == (hits[-1].lookup if hits else None)
        shown = [one.guards_expr for one in earlier if one.outcome in ("hit", "guard_miss")]
        assert of_all.guards_before(at) == list(dict.fromkeys(text for text in shown if text))
        last = (stored or earlier)[-1]
        there, here = {DIRECTORIES[one.run] for one in stored or earlier}, DIRECTORIES[row.run]
        is_elsewhere = here is not None and DIRECTORIES[last.run] is not None and here not in there
        others = [one for one in going_on if one.run != row.run]
        racing = [one for one in others if may_share(one, row)]
        if is_elsewhere and not refused:
            # Those that compile it elsewhere would race in one directory, too.
            racing = racing or others
        racing = [] if row.time is None or stored else racing
        if racing:
            assert past.racing is not None
            assert past.racing.first == racing[0].lookup
            assert list(past.racing.runs) == sorted({one.run for one in racing})
        elif refused:
            assert (past.why, past.by) == ("not stored", refused.lookup)
        elif is_elsewhere:
            assert (past.why, past.by) == ("elsewhere", last.lookup)
        else:
            assert (past.why, past.by) == ("gone", last.lookup)
        assert racing or past.racing is None
    keys = [row.cache_key for row in history]
    has_past = [key is not None and key in keys[:at] for at, key in enumerate(keys)]
    assert sorted(asked) == [at for at, had in enumerate(has_past) if had]


def made_history(lookups: list[LookupRow], directories: dict[int, str | None]) -> History:
    return history_of(lookups, runs=[run_row(run, cache_dir=at) for run, at in directories.items()])


def may_share(one: LookupRow, row: LookupRow) -> bool:
    return len({DIRECTORIES[one.run], DIRECTORIES[row.run]} - {None}) < 2


def had_stored(one: LookupRow) -> bool:
    return one.outcome == "hit" or (is_miss(one) and one.save_bypass is None)


def is_one_compile(one: LookupRow, row: LookupRow) -> bool:
    return (one.run, one.compile_id) == (row.run, row.compile_id)


def was_compiling(one: LookupRow, row: LookupRow, moment: int, history: list[LookupRow]) -> bool:
    """Without a time, a compile id that asks for the key again is taken for one compile, which has not ended by then."""
    if not is_miss(one):
        return False
    if one.time is not None:
        return end(one) >= moment
    since = (other for other in history[row.lookup :] if other.cache_key == one.cache_key)
    return any(is_one_compile(one, other) for other in since)


def end(one: LookupRow) -> int:
    assert one.time is not None and one.time_taken_ns is not None
    return one.time + one.time_taken_ns


@pytest.mark.parametrize(("found_in", "is_of_trace", "wanted"), [
    # It was stored in /a, and the process wrote to /b when it had found it.
    ("/b", False, ["/a", None, "/b"]), ("/a", False, ["/a", "/a", "/a"]), ("/b", True, ["/a", "/b", "/b"]),
])  # fmt: skip
def test_where_a_text_log_found_an_entry_is_known_where_it_had_been_stored(
    found_in: str, is_of_trace: bool, wanted: list[str | None]
) -> None:
    runs = [run_row(0, cache_dir="/a"), run_row(1, cache_dir=found_in)]
    outcomes = [(0, "full_miss"), (1, "hit"), (1, "full_miss")]
    lookups = [
        row(run, 10 * at, outcome=outcome, lookup=at, status_detailed=outcome if is_of_trace else None)
        for at, (run, outcome) in enumerate(outcomes)
    ]
    assert history_of(lookups, runs=runs).folders == wanted


@pytest.mark.parametrize("runs", [9, 30])
def test_a_fleet_that_races_is_counted_and_not_listed(runs: int) -> None:
    history = [replace(TEMPLATE, lookup=at, run=at, time=at, time_taken_ns=10**9) for at in range(runs)]
    found = [past.racing for _, past in pasts_of(history_of(history), range(runs))]
    assert found[-1] == (0, tuple(range(8)), runs - 1 - 8)


def row(run: int, time: int | None, taken: int = 1, **told: object) -> LookupRow:
    return replace(TEMPLATE, **{"run": run, "time": time, "time_taken_ns": taken, "cache_key": "k", **told})  # type: ignore[arg-type]


def past_of_last(*made: LookupRow) -> Past:
    history = history_of(replace(one, lookup=at) for at, one in enumerate(made))
    ((_, past),) = pasts_of(history, [len(made) - 1])
    return past


def test_those_that_race_are_named_without_the_run_that_asks() -> None:
    racing = [row(run, run, 100) for run in range(10)]
    found = past_of_last(*racing, row(0, 20, compile_id="1/0")).racing
    assert found == (1, tuple(range(1, 9)), 1)
    found = past_of_last(*racing, row(99, 20)).racing
    assert found == (0, tuple(range(8)), 2)
    found = past_of_last(*racing[:9], row(0, 20, compile_id="1/0")).racing
    assert found == (1, tuple(range(1, 9)), 0)
    # A run counts once, and one that has ended does not count.
    ended = row(1, 0, 5, save_error="OSError")
    found = past_of_last(ended, row(2, 1, 100), row(2, 2, 100), row(0, 20)).racing
    assert found == (1, (2,), 0)
    # The very moment of its end is within it.
    assert past_of_last(row(1, 0, 20), row(0, 20)).racing == (0, (1,), 0)
    assert past_of_last(row(1, 0, 19), row(0, 20)).racing is None
    assert past_of_last(row(1, 0, 19, outcome="hit"), row(0, 20)).racing is None
    assert past_of_last(row(1, 0, 20), row(0, None)).racing is None


@pytest.mark.parametrize(("made", "wanted"), [
    ([row(0, 0), row(0, 1)], [False, False]),
    ([row(0, 0), row(1, 1), row(0, 2)], [False, True, True]),
    ([row(0, 0), row(0, 1), row(1, 2)], [False, False, True]),
    ([row(0, 0), row(1, 1, cache="aotautograd"), row(0, 2)], [False, False, False]),
    ([row(0, 0), row(1, 1, cache_key=None), row(0, 2)], [False, True, False]),
    ([row(1, 0, cache_key=None), row(0, 1)], [False, False]),
    ([row(1, 0, cache_key=None), row(0, 1, cache_key=None)], [False, False]),
])  # fmt: skip
def test_whether_another_run_had_looked_anything_up_before(made: list[LookupRow], wanted: list[bool]) -> None:
    found = history_of(replace(one, lookup=at) for at, one in enumerate(made))
    assert [found.other_run_before(at) for at in range(len(made))] == wanted


def test_of_compiles_that_ended_in_another_order_the_latest_lookup_is_found() -> None:
    """By its times the last of them had ended too: a process gives its compile ids again after ``torch._dynamo.reset()``."""
    made = row(0, 0, 30), row(1, 1, 20), row(2, 2, 10), row(2, 40)
    assert past_of_last(*made).latest_stored == 2
    assert past_of_last(*made[:3], row(3, 40)).latest_stored == 2
    # Until then some of them are still being compiled.
    assert past_of_last(*made[:3], row(3, 15)).latest_stored == 2
    assert past_of_last(*made[:3], row(3, 12)).latest_stored is None
    # A lookup without a time was made when the one before it was.
    assert past_of_last(*made[:3], row(2, None)).latest_stored is None


STORE = HashDetails()
SYMBOLIC, PLAIN = (
    set_of(STORE, {"example_inputs[0]": f"TensorMetadata(shape=torch.Size([{one}, 8]))"}) for one in ("s7", 7)
)
ELSEWHERE = set_of(STORE, {"inductor_config[a]": "torch.Size([s7, 8])"})
NUMBER = set_of(STORE, {"example_inputs[1]": "('s7',)"})
Told = dict[str, Any]


def found(*told: Told, entries: tuple[Told, ...] = ()) -> list[int]:
    made: list[LookupRow] = [
        replace(TEMPLATE, **{"lookup": at, "run": at, "time": 100 * at, "time_taken_ns": 1, "cache_key": "k",
                             "detail_set": SYMBOLIC, **one})
        for at, one in enumerate(told)
    ]  # fmt: skip
    stored = [replace(entry_row(n, "fxgraph", "k", "r", "p", None), **one) for n, one in enumerate(entries)]
    return sorted(settled_history(made, stored, [], STORE).inferred)


@pytest.mark.parametrize(("told", "wanted"), [
    ([{}], []),
    ([{}, {}], [1]),
    ([{}, {}, {}], [1, 2]),
    ([{"outcome": "hit"}, {}], [1]),
    ([{}, {"detail_set": NUMBER}], [1]),
    # Of a graph without symbolic sizes, of no details, and of a size that is no input's.
    ([{}, {"detail_set": PLAIN}], []),
    ([{}, {"detail_set": None}], []),
    ([{}, {"detail_set": ELSEWHERE}], []),
    # What a trace says, what torch could not load, what hit, and what has no key.
    ([{}, {"status_detailed": "miss"}], []),
    ([{}, {"load_error": "EOFError"}], []),
    ([{}, {"outcome": "hit"}], []),
    ([{}, {"cache_key": None}], []),
    # It had not been stored, or not of this cache, or was still being compiled.
    ([{"save_error": "OSError"}, {}], []),
    ([{"cache": "aotautograd"}, {}], []),
    ([{"time_taken_ns": 200}, {}], []),
    # The graph below an AOTAutograd guard miss has the same guards, and the lookup above a graph's.
    ([{"cache": "aotautograd", "entry_path": "e"}, {"cache_key": "l"}, {"cache": "aotautograd"}, {"cache_key": "l", "aot_lookup": 2, "detail_set": None}], [2, 3]),
    ([{"cache_key": "a", "cache": "aotautograd", "detail_set": None}, {}, {"cache_key": "a", "cache": "aotautograd", "detail_set": None},
      {"aot_lookup": 2}], [2, 3]),
    ([{"cache_key": "a", "cache": "aotautograd", "detail_set": None}, {"outcome": "guard_miss", "aot_lookup": 0}], [0]),
    ([{"cache_key": "a", "cache": "aotautograd", "status_detailed": "miss"}, {"outcome": "guard_miss", "aot_lookup": 0}], []),
    ([{"cache_key": "a", "cache": "aotautograd", "outcome": "hit"}, {"outcome": "guard_miss", "aot_lookup": 0}], []),
])  # fmt: skip
def test_misses_that_can_only_be_of_guards(told: list[Told], wanted: list[int]) -> None:
    assert found(*told) == wanted


ONE, TWO = {"guards_expr": "s7 > 4"}, {"guards_expr": "s7 < 4"}


@pytest.mark.parametrize(("entries", "is_one"), [
    # A directory that was read decides: a guard miss adds an entry with other guards.
    ([ONE, TWO], True),
    ([ONE], False),
    ([ONE, ONE], False),
    ([ONE, {**TWO, "status": "damaged"}], False),
    ([ONE, {"status": "unreadable"}], True),
    ([{"status": "unreadable"}], False),
    ([{"status": "unreadable"}] * 2, True),
    # Entries of another key, or of another cache, are none of it.
    ([{**ONE, "cache_key": "l"}], True),
    ([{**ONE, "cache": "aotautograd"}], True),
    # A remote cache keeps the last one only.
    ([{**ONE, "path": "redis://host/0/pt2:fx-graph-v1::k:c1"}], True),
])  # fmt: skip
def test_the_entries_that_lie_there_decide(entries: list[Told], is_one: bool) -> None:
    assert found({}, {}, entries=tuple(entries)) == ([1] if is_one else [])
    # Of a key that nobody is known to have stored, entries prove nothing.
    assert found({}, entries=tuple(entries)) == []
