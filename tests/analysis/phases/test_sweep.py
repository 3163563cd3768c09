"""Self times of events, against a slow sweep that is right at a glance."""

from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.analysis.phases.frame import Place, Sweep
from cachescope.analysis.phases.names import COMPILER, HEADERS, LOADING_CODE, WAITING_FOR_CODE
from cachescope.readers.json_record import MOST_NS_OF_A_DURATION
from cachescope.readers.logs.second_pass import TraceEvent

Step = tuple[str, int, bool, str | None]


def lists_of(names: Sequence[str], compile_ids: list[str | None]) -> st.SearchStrategy[list[Step]]:
    steps = st.tuples(st.sampled_from(names), st.integers(0, 50), st.booleans(), st.sampled_from(compile_ids))
    return st.lists(steps)


def events(steps: list[Step]) -> list[TraceEvent]:
    """Events, each a while after the one before."""
    now, made = 0, []
    for name, passed, is_begin, compile_id in steps:
        now += passed
        made.append(TraceEvent(name, now, is_begin, compile_id))
    return made


def swept(made: list[TraceEvent]) -> Sweep:
    sweep = Sweep()
    sweep.run(made)
    return sweep


def slow_self_times(made: list[TraceEvent]) -> tuple[dict[str, int], int]:
    """By name the time in which it is the last of all that is open; and the time in which anything is open."""
    times: dict[str, int] = {}
    covered, opened = 0, []
    for number, event in enumerate(made):
        then = made[number + 1] if number + 1 < len(made) else None
        if event.is_begin:
            opened = [*opened, event.name]
        elif event.name in opened:
            at = len(opened) - 1 - opened[::-1].index(event.name)
            opened = opened[:at] + opened[at + 1 :] if at else []
        if opened and then is not None:
            times[opened[-1]] = times.get(opened[-1], 0) + then.time_ns - event.time_ns
            covered += then.time_ns - event.time_ns
    return times, covered


BEFORE = [(LOADING_CODE, 1, True), (COMPILER, 2, True), (COMPILER, 10, False), (WAITING_FOR_CODE, 100, True)]
AFTER = [(WAITING_FOR_CODE, 5, False), (LOADING_CODE, 3, False)]
KERNEL = [(COMPILER, 7, True), (COMPILER, 40, False)]
_STEPS = lists_of([LOADING_CODE, COMPILER, WAITING_FOR_CODE, "a"], [None, "0/0"])
# By chance alone hardly any has headers.
_KNOWN = [[(*step, "0/0") for step in part] for part in (BEFORE, KERNEL, AFTER)]
_PARTS = st.lists(_STEPS | st.sampled_from(_KNOWN))
LISTS = {"any": lists_of("abcd", [None, "0/0", "1/0"]), "headers": _PARTS.map(lambda parts: [*chain(*parts)])}


@pytest.mark.parametrize("names", LISTS)
@given(data=st.data())
def test_self_times_are_those_of_a_slow_sweep(names: str, data: st.DataObject) -> None:
    made = events(data.draw(LISTS[names]))
    spent = swept(made).spent
    times, covered = slow_self_times(made)
    found: dict[str, int] = {}
    for place, one in spent.items():
        found[place.event] = found.get(place.event, 0) + one.self_time_ns
        assert 0 <= one.self_time_ns <= one.time_ns <= covered
        assert one.unended <= one.count
    assert {name: time for name, time in found.items() if time} == {n: t for n, t in times.items() if t}
    assert sum(found.values()) == covered
    assert sum(one.count for one in spent.values()) == sum(event.is_begin for event in made)


def time_of_headers(steps: list[Step]) -> int:
    spent = swept(events(steps)).spent
    return sum(one.self_time_ns for place, one in spent.items() if place.inferred == HEADERS)


@pytest.mark.parametrize(("steps", "headers"), [
    ([*BEFORE, *KERNEL, *AFTER], 110),
    # From the first run of the compiler on.
    ([*BEFORE[:3], (COMPILER, 20, True), (COMPILER, 5, False), BEFORE[3], *KERNEL, *AFTER], 135),
    # Where no kernel is compiled it may be one that was, and without the headers' own sources nothing says that there are any.
    ([*BEFORE, *AFTER], 0),
    ([BEFORE[0], BEFORE[3], *KERNEL, *AFTER], 0),
    # What is compiled meanwhile is a kernel.
    ([*BEFORE[:2], BEFORE[3], *KERNEL, AFTER[0], BEFORE[2], AFTER[1]], 0),
])  # fmt: skip
def test_headers_are_what_comes_before_a_kernel(steps: list[tuple[str, int, bool]], headers: int) -> None:
    assert time_of_headers([(*step, "0/0") for step in steps]) == headers


def test_of_code_that_no_compile_loads_the_runs_of_the_compiler_are_not_its_own() -> None:
    steps = [*BEFORE, *KERNEL, *AFTER]
    of_compiles = [(*step, None if step[0] == LOADING_CODE else "0/0") for step in steps]
    assert time_of_headers(of_compiles) == 100


@given(lists_of(["dynamo", "entire_backward_compile", "a"], [None, "0/0", "1/0", "2/0"]))
def test_whatever_threads_do_no_moment_counts_twice(steps: list[Step]) -> None:
    made = events(steps)
    spent = swept(made).spent
    passed = made[-1].time_ns - made[0].time_ns if made else 0
    assert sum(one.self_time_ns for one in spent.values()) <= passed
    assert all(0 <= one.self_time_ns <= one.time_ns for one in spent.values())
    assert all(0 <= one.unended <= one.count and one.time_ns <= passed for one in spent.values())
    assert sum(one.count for one in spent.values()) == sum(event.is_begin for event in made)


def begin(name: str, at: int, compile_id: str | None = "0/0") -> TraceEvent:
    return TraceEvent(name, at, True, compile_id)


def end(name: str, at: int, compile_id: str | None = None) -> TraceEvent:
    return TraceEvent(name, at, False, compile_id)


@pytest.mark.slow
def test_a_stack_that_never_ends_takes_no_time_of_its_own() -> None:
    """Each begin and each end is one step, whatever is open: this is two hundred thousand of them."""
    deep = [begin("a", 0), *(begin("b", at) for at in range(50_000)), *(end("a", 50_000) for _ in range(2))]
    mixed = [*(begin("a", 0) for _ in range(25_000)), *(begin("b", 0) for _ in range(25_000))]
    ends = [end(name, 1) for _ in range(25_000) for name in "xa"]
    assert sum(one.count for one in swept(deep).spent.values()) == 50_001
    assert {one.count for one in swept([*mixed, *ends]).spent.values()} == {25_000}


def spans(*made: TraceEvent) -> dict[str, tuple[int, int, int, int]]:
    """By place: how many began, how many never ended, the time of all, and their own."""
    found = {}
    for place, one in swept(list(made)).spent.items():
        name = f"{place.compile_id}/{place.segment}/{place.event}"
        found[name] = (one.count, one.unended, one.time_ns, one.self_time_ns)
    return found


SECOND = 10**9
BACKWARD = "entire_backward_compile"
CASES: dict[str, tuple[list[TraceEvent], dict[str, tuple[int, int, int, int]]]] = {
    "one": ([begin("a", 5), end("a", 9)], {"0/0/0/a": (1, 0, 4, 4)}),
    "one in another": ([begin("a", 0), begin("b", 2), end("b", 5), end("a", 9)], {"0/0/0/a": (1, 0, 9, 6), "0/0/0/b": (1, 0, 3, 3)}),
    "twice": ([begin("a", 0), end("a", 2), begin("a", 5), end("a", 6)], {"0/0/0/a": (2, 0, 3, 3)}),
    "in itself": ([begin("a", 0), begin("a", 2), end("a", 5), end("a", 9)], {"0/0/0/a": (2, 0, 9, 9)}),
    "never ended": ([begin("a", 0), begin("b", 2)], {"0/0/0/a": (1, 1, 2, 2), "0/0/0/b": (1, 1, 0, 0)}),
    "its end was lost": ([begin("a", 0), begin("b", 2), end("a", 9)], {"0/0/0/a": (1, 0, 9, 2), "0/0/0/b": (1, 1, 7, 7)}),
    "an end of nothing": ([end("a", 0), begin("b", 2), end("a", 4), end("b", 5)], {"0/0/0/b": (1, 0, 3, 3)}),
    "an end of what has ended": ([begin("b", 0), begin("a", 1), end("a", 2), end("a", 4), end("b", 5)], {"0/0/0/b": (1, 0, 5, 4), "0/0/0/a": (1, 0, 1, 1)}),
    "the outer one ends first": (
        [begin("o", 0), begin("a", 1), begin("b", 2), end("a", 3), end("b", 5), end("o", 9)],
        {"0/0/0/o": (1, 0, 9, 5), "0/0/0/a": (1, 0, 2, 1), "0/0/0/b": (1, 0, 3, 3)}),
    # Those that no longer matter are passed over: the next outermost ends what is open in it.
    "one after another": (
        [begin("a", 0), end("a", 1), begin("b", 2), begin("c", 3), end("b", 5), begin("a", 7), end("a", 8)],
        {"0/0/0/a": (2, 0, 2, 2), "0/0/0/b": (1, 0, 3, 1), "0/0/0/c": (1, 1, 2, 2)}),
    "two compiles": ([begin("a", 0), begin("a", 1, "1/0"), end("a", 3), end("a", 4)], {"0/0/0/a": (1, 0, 4, 2), "1/0/0/a": (1, 0, 2, 2)}),
    "of no compile": ([begin("a", 0, None), begin("b", 1), end("b", 3), end("a", 4)], {"None/0/a": (1, 0, 4, 2), "0/0/0/b": (1, 0, 2, 2)}),
    "compiled again": (
        [begin("dynamo", 0), end("dynamo", 1), begin("dynamo", 5), begin("a", 6), end("a", 7), end("dynamo", 8)],
        {"0/0/1/dynamo": (1, 0, 1, 1), "0/0/2/dynamo": (1, 0, 3, 2), "0/0/2/a": (1, 0, 1, 1)}),
    "a frame of no compile": ([begin("dynamo", 0, None), end("dynamo", 1)], {"None/0/dynamo": (1, 0, 1, 1)}),
    # Time that ran back a little did not; more than a second, it was set.
    "back a little": ([begin("a", 2 * SECOND), end("b", SECOND), end("a", 3 * SECOND)], {"0/0/0/a": (1, 0, SECOND, SECOND)}),
    "set back": ([begin("a", 2 * SECOND), end("b", SECOND - 1), end("a", 3 * SECOND)], {"0/0/0/a": (1, 0, 2 * SECOND + 1, 2 * SECOND + 1)}),
    "far ahead": ([begin("a", 0), end("b", MOST_NS_OF_A_DURATION), end("a", MOST_NS_OF_A_DURATION + 1)], {"0/0/0/a": (1, 0, MOST_NS_OF_A_DURATION + 1, MOST_NS_OF_A_DURATION + 1)}),
    "too far ahead": ([begin("a", 0), end("b", MOST_NS_OF_A_DURATION + 1), end("a", MOST_NS_OF_A_DURATION + 3)], {"0/0/0/a": (1, 0, 2, 2)}),
    "back by the least": ([begin("a", 10), end("b", 9), end("a", 12)], {"0/0/0/a": (1, 0, 2, 2)}),
    "an end that came too late": (
        [begin("a", 0), begin("b", 2), end("a", 9), begin("c", 10), end("b", 11), begin("b", 12), end("b", 14), end("c", 15)],
        {"0/0/0/a": (1, 0, 9, 2), "0/0/0/b": (2, 1, 9, 9), "0/0/0/c": (1, 0, 5, 3)}),
    # Two threads: a backward graph waits for the lock that a frame compile has.
    "a backward graph waits": (
        [begin("dynamo", 0), begin(BACKWARD, 2, "1/0"), begin("a", 3), end("a", 5), end("dynamo", 8), begin("b", 9, "1/0"),
         end("b", 10, "1/0"), end(BACKWARD, 11, "1/0")],
        {"0/0/1/dynamo": (1, 0, 8, 6), "0/0/1/a": (1, 0, 2, 2), "1/0/0/entire_backward_compile": (1, 0, 9, 2), "1/0/0/b": (1, 0, 1, 1)},
    ),
    "a frame begins before a backward graph has ended": (
        [begin(BACKWARD, 0), begin("a", 1), end("a", 3), begin("dynamo", 4, "1/0"), end(BACKWARD, 5, "0/0"), begin("a", 6, "1/0"),
         end("a", 8, "1/0"), end("dynamo", 9, "1/0")],
        {"0/0/0/entire_backward_compile": (1, 0, 5, 2), "0/0/0/a": (1, 0, 2, 2), "1/0/1/dynamo": (1, 0, 5, 3), "1/0/1/a": (1, 0, 2, 2)},
    ),
    "a pool works for the thread that has the lock": (
        [begin("dynamo", 0), begin(BACKWARD, 1, "1/0"), begin("file", 2, None), end("file", 7), end("dynamo", 8), end(BACKWARD, 9, "1/0")],
        {"0/0/1/dynamo": (1, 0, 8, 3), "1/0/0/entire_backward_compile": (1, 0, 8, 1), "0/0/1/file": (1, 0, 5, 5)},
    ),
    "two wait, and the later one is first": (
        [begin("dynamo", 0), begin(BACKWARD, 1, "1/0"), begin(BACKWARD, 2, "2/0"), end("dynamo", 3), begin("a", 4, "2/0"),
         end("a", 6, "2/0"), end(BACKWARD, 7, "2/0"), begin("a", 8, "1/0"), end("a", 9, "1/0"), end(BACKWARD, 10, "1/0")],
        {"0/0/1/dynamo": (1, 0, 3, 3), "1/0/0/entire_backward_compile": (1, 0, 9, 3), "2/0/0/entire_backward_compile": (1, 0, 5, 1),
         "2/0/0/a": (1, 0, 2, 2), "1/0/0/a": (1, 0, 1, 1)}),
    "an end of no compile is one of the thread that works": (
        [begin("dynamo", 0), begin(BACKWARD, 1, "1/0"), begin(BACKWARD, 2, "2/0"), end("dynamo", 3), end(BACKWARD, 5), end(BACKWARD, 9)],
        {"0/0/1/dynamo": (1, 0, 3, 3), "1/0/0/entire_backward_compile": (1, 0, 4, 2), "2/0/0/entire_backward_compile": (1, 0, 7, 4)},
    ),
    # Between events of nothing no time passes.
    "a pause": ([begin("a", 0), end("a", 1), begin("b", 8), end("b", 9)], {"0/0/0/a": (1, 0, 1, 1), "0/0/0/b": (1, 0, 1, 1)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_was_spent(name: str) -> None:
    made, wanted = CASES[name]
    assert spans(*made) == wanted


def test_traces_of_one_process_are_swept_one_by_one() -> None:
    """What is open at the end of one has no end in the next; compiles go on being counted."""
    sweep = Sweep()
    sweep.run([begin("dynamo", 0), begin("a", 5)])
    sweep.run([end("a", 0), begin("dynamo", 1), end("dynamo", 3)])
    found = {place: (one.count, one.unended, one.time_ns) for place, one in sweep.spent.items()}
    first, second = Place("0/0", 1, "dynamo"), Place("0/0", 2, "dynamo")
    assert found == {first: (1, 1, 5), Place("0/0", 1, "a"): (1, 1, 0), second: (1, 0, 2)}
