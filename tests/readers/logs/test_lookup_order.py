"""The order in which torch made its lookups, and where one log goes on with another process under the same pid; made by hand.

Times of traces are seconds after noon; one log of each process says them by its own clock.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.logs.lookup_order import put_in_order, run_starts
from cachescope.readers.logs.processes import parts_by_trace
from cachescope.readers.reading import Process
from tests.made import NOON_NS, SECOND_NS, set_of


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


HOUR_US = 3_600 * 10**6


def starts(*made: tuple[str, int, float | None, Mapping[str, str]]) -> list[int]:
    """Of lookups by compile id, segment, hours after some time, and hash details."""
    store = HashDetails()
    lookups, clocks = [], []
    for compile_id, segment, hours, fields in made:
        lookup = LookupRow(cache="aotautograd", cache_key="a1", compile_id=compile_id, segment=segment)
        if fields:
            lookup.detail_set = set_of(store, fields)
        lookups.append(lookup)
        clocks.append(None if hours is None else int(hours * HOUR_US))
    return run_starts(lookups, clocks, store)


ONE, TWO = {"torch_version": "b'one'"}, {"torch_version": "b'two'"}
NONE: dict[str, str] = {}


@pytest.mark.parametrize(("made", "wanted"), [
    ([("0/0", 1, 10, NONE)], [0]),
    ([("0/0", 1, 10, NONE), ("0/0", 2, 11, NONE)], [0]),
    # The clock goes back where compile ids begin again: another process.
    ([("0/0", 1, 10, NONE), ("1/0", 1, 12, NONE), ("0/0", 2, 9, NONE)], [0, 2]),
    ([("0/0", 1, 10, NONE), ("1/0", 1, 12, NONE), ("1/0", 2, 9, NONE)], [0]),
    ([("0/0", 1, 10, NONE), ("1/0", 1, None, NONE), ("0/0", 2, 9, NONE)], [0]),
    # By a little it may have been set, and by a year it went on.
    ([("0/0", 1, 10, NONE), ("1/0", 1, 12, NONE), ("0/0", 2, 11.9999999, NONE)], [0]),
    ([("0/0", 1, 10, NONE), ("1/0", 1, 24 * 360, NONE), ("0/0", 2, 1, NONE)], [0]),
    # Another torch is another process, which began where compile ids did.
    ([("0/0", 1, 10, ONE), ("1/0", 1, 11, ONE), ("0/0", 2, 12, TWO)], [0, 2]),
    ([("0/0", 1, 10, ONE), ("0/0", 2, 11, NONE), ("1/0", 1, 12, TWO)], [0, 1]),
    ([("0/0", 1, 10, ONE), ("0/0", 2, 11, ONE), ("0/0", 3, 12, TWO), ("0/0", 4, 13, TWO)], [0, 2]),
    ([("0/0", 1, 10, ONE), ("1/0", 1, 11, TWO)], [0]),
    ([("0/0", 1, 10, ONE), ("0/0", 2, 11, NONE), ("0/0", 3, 12, NONE), ("1/0", 1, 13, TWO)], [0, 2]),
    ([("0/0", 1, 10, ONE), ("0/0", 2, 12, TWO), ("0/0", 3, 14, ONE)], [0, 1, 2]),
    # Two lookups of one first compile are one beginning.
    ([("0/0", 1, 10, ONE), ("0/0", 2, 11, TWO), ("0/0", 2, 11, TWO)], [0, 1]),
    ([("0/0", 0, 10, NONE), ("0/0", 0, 9, NONE)], [0, 1]),
    ([("0/0", 1, 10, NONE), ("0/0", 1, 9, NONE)], [0]),
])  # fmt: skip
def test_where_processes_begin(
    made: list[tuple[str, int, float | None, Mapping[str, str]]], wanted: list[int]
) -> None:
    assert starts(*made) == wanted


NOON_US = 43_200 * 10**6
Look = tuple[str, float | None]


def log(
    kind: str, looks: Sequence[Look | LookupRow], span: tuple[float | None, float | None], **told: Any
) -> Process:
    first, last = (None if at is None else NOON_US + int(at * 1e6) for at in span)
    usual = {
        "pid": 1, "clock_first_us": first, "clock_last_us": last,
        "start_time": None if span[0] is None else NOON_NS + int(span[0] * SECOND_NS),
        "lookups": [one if isinstance(one, LookupRow) else look(*one) for one in looks],
    }  # fmt: skip
    return Process(source=f"/{kind}", kind=kind, **(usual | told))


def look(key: str, at: float | None, **told: Any) -> LookupRow:
    time = None if at is None else NOON_NS + int(at * SECOND_NS)
    return LookupRow(cache="fxgraph", time=time, cache_key=key, **told)


def parts(text: Process, *traces: Process) -> list[str]:
    return ["".join(one.cache_key or "-" for one in part.lookups) for part in parts_by_trace(text, traces)]


A, B = [("a", 1.0)], [("b", 11.0)]
TEXT = [*A, *B]


def first(**told: Any) -> Process:
    return log("trace", told.pop("looks", A), told.pop("span", (0, 5)), **told)


def second(**told: Any) -> Process:
    return log("trace", told.pop("looks", B), told.pop("span", (10, 15)), **told)


@pytest.mark.parametrize(("text", "traces", "wanted"), [
    (TEXT, [first(), second()], ["a", "b"]),
    (TEXT, [second(), first()], ["a", "b"]),
    (TEXT, [first()], ["ab"]),
    (TEXT, [], ["ab"]),
    ([], [first(), second()], [""]),
    # Two that ran at one time look alike.
    ([*A, ("b", 13.0)], [first(span=(0, 10.5)), second(looks=[("b", 13)])], ["ab"]),
    ([*A, ("b", 13), ("c", 21)], [first(span=(0, 10.5)), second(looks=[("b", 13)]), log("trace", [("c", 21)], (20, 25))], ["abc"]),
    ([*A, ("b", 12.0)], [first(span=(0, 10)), second(looks=[("b", 12)])], ["a", "b"]),
    # Each must record a lookup of the log at its moment.
    (TEXT, [first(), second(looks=[("c", 11)])], ["ab"]),
    (TEXT, [first(), second(looks=[("b", 11.25)])], ["a", "b"]),
    (TEXT, [first(), second(looks=[("b", 10.75)])], ["a", "b"]),
    (TEXT, [first(), second(looks=[("b", 11.26)])], ["ab"]),
    (TEXT, [first(), second(looks=[("b", 10.74)])], ["ab"]),
    (TEXT, [first(), second(looks=[("b", None)])], ["ab"]),
    (TEXT, [first(), second(looks=[("c", 11), ("b", 3), ("b", 11)])], ["a", "b"]),
    # Or be written down at it.
    (TEXT, [first(), second(looks=[look("b", 14, logged_time=NOON_NS + 11 * SECOND_NS)])], ["a", "b"]),
    ([*A, look("b", 14, logged_time=NOON_NS + 11 * SECOND_NS)], [first(), second()], ["a", "b"]),
    # A trace of another rank is of another process.
    (TEXT, [first(rank=0), second()], ["ab"]),
    # A process writes to its trace until it ends: a second more or less is the clock's.
    ([*TEXT, ("x", 6.0)], [first(), second()], ["ax", "b"]),
    ([*A, ("x", 9.0), *B], [first(), second()], ["a", "xb"]),
    ([*A, ("x", 16.0), *B], [first(), second()], ["a", "xb"]),
    ([("x", -1.0), *TEXT], [first(), second()], ["xa", "b"]),
    # One outside of all, or without a time, is of the process of the lookup before it.
    ([*A, ("x", 7.5), *B, ("y", 17)], [first(), second()], ["ax", "by"]),
    ([*A, ("x", None), *B, ("y", None)], [first(), second()], ["ax", "by"]),
    ([("x", 8.9), *TEXT], [first(), second()], ["xa", "b"]),
    # Of two that are near, the first.
    ([*A, ("x", 5.9), ("b", 7)], [first(), second(looks=[("b", 7)], span=(6.5, 9))], ["ax", "b"]),
    ([*A, ("b", 11), ("c", 21)], [first(), second(), log("trace", [("c", 21)], (20, 25))], ["a", "b", "c"]),
])  # fmt: skip
def test_the_parts_of_a_text_log(
    text: list[Look | LookupRow], traces: list[Process], wanted: list[str]
) -> None:
    assert parts(log("text", text, (-5, 30)), *traces) == wanted


@pytest.mark.parametrize(("told", "of_traces", "wanted"), [
    ({}, {}, ["a", "b"]),
    ({"pid": None}, {}, ["ab"]),
    ({"rank": 3}, {"rank": 3}, ["a", "b"]),
    ({"rank": 3}, {}, ["a", "b"]),
    ({"rank": 3}, {"rank": 4}, ["ab"]),
    ({"start_time": None}, {}, ["ab"]),
    ({"clock_first_us": None}, {}, ["ab"]),
    ({}, {"start_time": None}, ["ab"]),
    ({}, {"clock_first_us": None}, ["ab"]),
    ({}, {"clock_last_us": None}, ["ab"]),
])  # fmt: skip
def test_what_says_nothing_of_its_time_or_process(
    told: dict[str, Any], of_traces: dict[str, Any], wanted: list[str]
) -> None:
    assert parts(log("text", TEXT, (-5, 30), **told), first(**of_traces), second(**of_traces)) == wanted


def test_each_part_has_the_times_of_its_lookups() -> None:
    text = log("text", [("a", 2), ("x", 1), ("y", None), ("b", 11), ("c", 12)], (-5, 30))
    one, two = parts_by_trace(text, [first(looks=[("a", 2)]), second()])
    assert (one.clock_first_us, one.clock_last_us) == (NOON_US + 1_000_000, NOON_US + 2_000_000)
    assert (two.clock_first_us, two.clock_last_us) == (NOON_US + 11_000_000, NOON_US + 12_000_000)
    assert (one.start_time, two.start_time) == (NOON_NS + SECOND_NS, NOON_NS + 11 * SECOND_NS)
    assert (one.source, two.pid) == ("/text", 1)


def test_a_log_of_one_of_them_stays_as_it_is() -> None:
    text = log("text", A, (-5, 30))
    assert parts_by_trace(text, [first(), second(looks=[*A, *B], span=(10, 15))]) == [text]
    assert parts_by_trace(text, [first(), second()])[0] is text
    # Two traces that both tell of it at its moment, the second after the first: all lookups are in one part.
    both = log("text", A, (-5, 30))
    (whole,) = parts_by_trace(both, [first(span=(0, 1)), second(looks=A, span=(1, 15))])
    assert whole is both and whole.clock_first_us == NOON_US - 5_000_000
