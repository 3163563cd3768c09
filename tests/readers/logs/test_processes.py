"""Which logs are of one process, and what each adds to what the others tell: processes in, runs out, all made by hand.

And the order in which torch made its lookups, and where one log goes on with another process under the same pid: times of traces
are seconds after noon; one log of each process says them by its own clock.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.details import HashDetails
from cachescope.frames.compile_rows import CompileRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.logs.lookup_order import put_in_order, run_starts
from cachescope.readers.logs.processes import end_time_ns, join_processes, parts_by_trace
from cachescope.readers.reading import Compile, Process
from tests.made import NOON_NS, SECOND_NS, set_of

MS, S = 10**6, 10**9
NOON_US = 43_200 * 10**6


def lookup(
    key: str | None = "f1", at: float | None = 1.0, outcome: str = "full_miss", **told: Any
) -> LookupRow:
    """A lookup so many seconds after noon."""
    cache = "aotautograd" if key is not None and key.startswith("a") else "fxgraph"
    time = None if at is None else NOON_NS + int(at * S)
    usual: dict[str, Any] = {"cache": cache, "time": time, "compile_id": "0/0"}
    return LookupRow(cache_key=key, outcome=outcome, **(usual | told))


def process(
    source: str, lookups: Sequence[LookupRow], kind: str = "", pid: int | None = 7, first: float = 0, last: float = 10,
    **told: Any,
) -> Process:  # fmt: skip
    """A log of the time between two moments, in seconds after noon."""
    usual: dict[str, Any] = {
        "clock_first_us": NOON_US + int(first * 1e6), "clock_last_us": NOON_US + int(last * 1e6),
        "start_time": NOON_NS + int(first * S), "lookups": list(lookups),
    }  # fmt: skip
    return Process(source=source, kind=kind or source.split("-")[0], pid=pid, **(usual | told))


def sources(runs: Sequence[Process]) -> list[tuple[str, ...]]:
    return [tuple(run.sources) for run in runs]


ONE = [("trace", "text")]
TWO = [("trace",), ("text",)]

BYPASS = lookup(None, 2, "bypass", cache="aotautograd")


def compiles(compile_id: str, began: float | None, ended: float | None) -> list[Compile]:
    """The compiles of a trace, of which one is known, in seconds after noon."""
    at = [None if one is None else NOON_US + int(one * 1e6) for one in (began, ended)]
    return [Compile(compile_id, at[0], "f", "/mine.py", 7, at[1])]


OTHER_COMPILE = {"lookups": [lookup("f2", 5, compile_id="1/0")]}
BYPASSED = {"lookups": [lookup(), BYPASS]}
TWO_KEYS = {"lookups": [lookup("f0"), lookup(at=2)]}
HIT_AT_5 = {"lookups": [lookup("a1", 5, "hit")]}
# A trace of a miss of f1 at one second, and a text log: whether they are of one process.
PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any], list[tuple[str, ...]]]] = {
    "the same lookup at the same moment": ({}, {}, ONE),
    "a quarter of a second apart": ({}, {"lookups": [lookup(at=1.25)]}, ONE),
    "more than that": ({}, {"lookups": [lookup(at=1.26)]}, TWO),
    "by when it was written down": ({}, {"lookups": [lookup(at=0.2, logged_time=NOON_NS + S)]}, ONE),
    "of another pid": ({}, {"pid": 8}, TWO),
    "of another rank": ({"rank": 0}, {"rank": 1}, TWO),
    "of the same rank": ({"rank": 1}, {"rank": 1}, ONE),
    "of one rank that only one of them tells": ({}, {"rank": 1}, ONE),
    "of another day": ({}, {"first": 86_400, "last": 86_410, "lookups": [lookup(at=86_401)]}, TWO),
    "a minute behind its end": ({}, {"first": 70, "last": 80, "lookups": []}, ONE),
    "more than a minute behind": ({}, {"first": 71, "last": 80, "lookups": []}, TWO),
    "a minute before its beginning": ({}, {"first": -70, "last": -60, "lookups": []}, ONE),
    "more than a minute before": ({}, {"first": -71, "last": -61, "lookups": []}, TWO),
    "another key within its time": ({}, {"lookups": [lookup("f2", 5)]}, TWO),
    "another key behind its end": ({}, {"lookups": [lookup("f2", 12)], "last": 20}, ONE),
    "another key before its beginning": ({}, {"lookups": [lookup("f2", -12)], "first": -20}, ONE),
    "no lookup at all": ({}, {"lookups": []}, ONE),
    "a bypass without a key within its time": ({}, {"lookups": [lookup(None, 5, "bypass")]}, ONE),
    "of a time that is not known": ({}, {"clock_last_us": None}, TWO),
    "a trace of a time that is not known": ({"clock_first_us": None}, {}, TWO),
    "without a pid, the same keys": ({}, {"pid": None, "lookups": [lookup(at=None)]}, ONE),
    "without a pid, other keys": ({}, {"pid": None, "lookups": [lookup("f2", None)]}, TWO),
    "without a pid, the same key of another outcome": ({}, {"pid": None, "lookups": [lookup(at=None, outcome="hit")]}, TWO),
    "without a pid, its outcome not seen": ({}, {"pid": None, "lookups": [lookup(at=None, outcome="unknown")]}, ONE),
    "without a pid, a part of the keys": (TWO_KEYS, {"pid": None, "lookups": [lookup(at=None)]}, ONE),
    "without a pid, more keys": ({}, {"pid": None, "lookups": [lookup("f0", None), lookup(at=None)]}, ONE),
    "without a pid, in another order": (TWO_KEYS, {"pid": None, "lookups": [lookup(at=None), lookup("f0", None)]}, TWO),
    "without a pid and without a lookup": ({}, {"pid": None, "lookups": []}, TWO),
    "without a pid, and neither has a lookup": ({"lookups": []}, {"pid": None, "lookups": []}, ONE),
    # With TORCH_LOGS=recompiles a text log has no lookup.
    "a log of compiles alone": ({}, {"lookups": [], "compiled": [CompileRow()]}, [("trace",)]),
    "a log of compiles alone, of another pid": ({}, {"pid": 8, "lookups": [], "compiled": [CompileRow()]}, TWO),
    "a log of compiles alone, without a pid": ({}, {"pid": None, "lookups": [], "compiled": [CompileRow()]}, TWO),
    "a log of compiles alone, of another day": ({}, {"first": 86_400, "last": 86_410, "lookups": [], "compiled": [CompileRow()]}, TWO),
    "a trace without a lookup": ({"lookups": []}, {}, ONE),
    # A trace whose time is not known does not show which lookups it would have recorded.
    "another key, and the moments of the trace are not known": ({"start_time": None}, {"lookups": [lookup("f2", 5)]}, TWO),
    "a trace without a pid": ({"pid": None}, {}, ONE),
    "a trace without a pid, and other keys": ({"pid": None}, {"lookups": [lookup("f2")]}, TWO),
    "without a time of the lookup": ({}, {"lookups": [lookup(at=None)]}, ONE),
    "another key without a time": ({}, {"lookups": [lookup("f2", None)]}, ONE),
    # torch records a graph after its compile, and nothing if the compile failed.
    "in a compile that failed": ({"compiles": compiles("1/0", 4, 6)}, OTHER_COMPILE, ONE),
    "at its first moment": ({"compiles": compiles("1/0", 5, 6)}, OTHER_COMPILE, ONE),
    "at its last moment": ({"compiles": compiles("1/0", 4, 5)}, OTHER_COMPILE, ONE),
    "before a compile": ({"compiles": compiles("1/0", 5.01, 6)}, OTHER_COMPILE, TWO),
    "after a compile": ({"compiles": compiles("1/0", 4, 4.99)}, OTHER_COMPILE, TWO),
    "in another compile": ({"compiles": compiles("2/0", 4, 6)}, OTHER_COMPILE, TWO),
    "in a compile without a beginning": ({"compiles": compiles("1/0", None, 6)}, OTHER_COMPILE, TWO),
    "in a compile that goes on": ({"compiles": compiles("1/0", 4, None)}, OTHER_COMPILE, ONE),
    "in a compile that has a lookup there": ({"compiles": compiles("0/0", 4, 6)}, {"lookups": [lookup("f2", 5)]}, TWO),
    "in a compile that has another lookup there": ({"compiles": compiles("0/0", 4, 6)}, {"lookups": [lookup("a2", 5)]}, ONE),
    "one of two in a compile that failed": ({"compiles": compiles("1/0", 4, 6)}, {"lookups": [lookup("f2", 5, compile_id="1/0"), lookup("f3", 7, compile_id="1/0")]}, TWO),
    "one of two has no time": ({"compiles": compiles("1/0", 4, 6)}, {"lookups": [lookup("f2", 5, compile_id="1/0"), lookup("f3", None, compile_id="1/0")]}, TWO),
    # If an exception ends a lookup, the trace has a bypass and no key.
    "one that an exception ended": (BYPASSED, {"lookups": [lookup("a2", 5, "unknown")]}, ONE),
    "one of another compile than the exception": (BYPASSED, {"lookups": [lookup("a2", 5, "unknown", compile_id="1/0")]}, TWO),
    "one whose outcome was seen": (BYPASSED, {"lookups": [lookup("a2", 5)]}, TWO),
    "one of the other cache": (BYPASSED, {"lookups": [lookup("f2", 5, "unknown")]}, TWO),
    "an outcome that is lost, and no exception": ({"lookups": [lookup(), lookup(None, 2, "hit", cache="aotautograd")]}, {"lookups": [lookup("a2", 5, "unknown")]}, TWO),
    # A trace records the end of a hit.
    "the same key far away, its outcome lost": (HIT_AT_5, {"lookups": [lookup("a1", 2, "unknown")]}, ONE),
    "the same key far away": (HIT_AT_5, {"lookups": [lookup("a1", 2, "hit")]}, TWO),
    "the same key before its beginning, its outcome lost": (HIT_AT_5, {"lookups": [lookup("a1", -2, "unknown")], "first": -3}, TWO),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRS)
def test_a_trace_and_a_text_log(case: str) -> None:
    of_trace, of_text, wanted = deepcopy(PAIRS[case])
    trace = process("trace", **{"lookups": [lookup()], **of_trace})
    text = process("text", **{"lookups": [lookup()], **of_text})
    assert sorted(sources(join_processes([text, trace])), reverse=True) == wanted


def test_two_clocks_that_print_alike_are_one_clock() -> None:
    """The text log was read as of another year, in which its line says the same."""
    trace, text = process("trace", [lookup()]), process("text", [lookup()])
    year = 365 * 86_400 * S
    assert text.start_time is not None
    text.start_time -= year
    text.lookups[0].time = NOON_NS + S - year
    (run,) = join_processes([trace, text])
    assert run.lookups[0].time == NOON_NS + S
    assert run.start_time == NOON_NS


@pytest.mark.parametrize("name", ["start_time", "clock_first_us"])
@pytest.mark.parametrize("kind", ["trace", "text"])
def test_times_stay_as_they_are_where_a_clock_is_not_known(kind: str, name: str) -> None:
    trace = process("trace", [lookup("f1", 1)])
    text = process("text", [lookup("f1", 0.9), lookup("f2", 3)], pid=None)
    setattr(trace if kind == "trace" else text, name, None)
    (run,) = join_processes([trace, text])
    assert [one.time for one in run.lookups] == [NOON_NS + int(0.9 * S), NOON_NS + 3 * S]


def test_of_several_processes_of_one_pid_the_nearest_moment_tells() -> None:
    """Containers share pids, and race for the same keys."""
    first = process("trace-a", [lookup(at=1.0)], compiles=None)
    second = process("trace-b", [lookup(at=1.2)], first=0.5)
    for at, of in ((1.02, "trace-a"), (1.18, "trace-b")):
        runs = join_processes([first, second, process("text", [lookup(at=at)])])
        (joined,) = [run for run in runs if len(run.sources) == 2]
        assert joined.sources == (of, "text")
        first, second = process("trace-a", [lookup(at=1.0)]), process("trace-b", [lookup(at=1.2)], first=0.5)


def test_a_trace_that_was_copied_is_one_process_and_two_traces_are_two() -> None:
    copies = process("trace-a", [lookup()]), process("trace-b", [lookup()])
    assert sources(join_processes(list(copies))) == [("trace-a", "trace-b")]
    others = process("trace-a", [lookup()]), process("trace-b", [lookup(outcome="hit")])
    assert len(join_processes(list(others))) == 2
    later = process("trace-a", [lookup()]), process("trace-b", [lookup()], first=3)
    assert len(join_processes(list(later))) == 2


def test_one_log_is_never_joined_to_itself() -> None:
    """Two processes of one file are two, whatever they say."""
    assert len(join_processes([process("text", [lookup()]), process("text", [lookup()])])) == 2


def test_runs_stand_in_the_order_of_time_and_those_without_last() -> None:
    def begun(source: str, first: float, **told: Any) -> Process:
        looked_up = [lookup(f"f{source}", first + 1)]
        return process(source, looked_up, pid=None, first=first, last=first + 2, **told)

    made = [
        begun("text-none", 0, start_time=None, clock_first_us=None),
        begun("text-late", 500),
        begun("text-r1", 200, rank=1),
        begun("text-r0", 200, rank=0),
        begun("text-early", 100),
    ]
    names = [run.sources[0] for run in join_processes(made)]
    assert names == ["text-early", "text-r0", "text-r1", "text-late", "text-none"]


def test_the_end_of_a_run_is_its_last_line() -> None:
    (run,) = join_processes([process("trace", [], first=2, last=9)])
    assert (run.start_time, end_time_ns(run)) == (NOON_NS + 2 * S, NOON_NS + 9 * S)
    (run,) = join_processes([process("trace", [], clock_last_us=None)])
    assert end_time_ns(run) is None


def test_each_log_adds_what_the_other_does_not_tell() -> None:
    trace = process("trace", [lookup(status_detailed="miss", time_taken_ns=5, function="f")], rank=3)
    told = {"cache_dir": "/cache", "command": "python x.py", "exit_status": 1, "is_cut": True}
    of_text = lookup(at=0.9, time_taken_ns=6, entry_path="/cache/e", function="g", is_details_cut=True)
    text = process("text", [of_text], **told)
    (run,) = join_processes([trace, text])
    (found,) = run.lookups
    assert (found.time_taken_ns, found.function, found.entry_path) == (5, "f", "/cache/e")
    assert found.time == NOON_NS + int(0.9 * S)
    assert found.is_details_cut
    assert (run.rank, run.cache_dir, run.command) == (3, "/cache", "python x.py")
    assert (run.exit_status, run.is_cut, run.kinds) == (1, True, {"trace", "text"})


@pytest.mark.parametrize(("of_trace", "detailed", "of_text", "wanted"), [
    ("unknown", None, "hit", "hit"),
    ("full_miss", None, "guard_miss", "guard_miss"),
    ("full_miss", "miss", "guard_miss", "full_miss"),
    ("full_miss", None, "unknown", "full_miss"),
    ("hit", None, "full_miss", "hit"),
    ("guard_miss", None, "full_miss", "guard_miss"),
])  # fmt: skip
def test_the_finer_outcome_is_taken(of_trace: str, detailed: str | None, of_text: str, wanted: str) -> None:
    trace = process("trace", [lookup(outcome=of_trace, status_detailed=detailed)])
    (run,) = join_processes([trace, process("text", [lookup(outcome=of_text)])])
    assert [one.outcome for one in run.lookups] == [wanted]


def test_lookups_of_one_key_are_joined_one_by_one() -> None:
    trace = process("trace", [lookup(at=1), lookup(at=3, outcome="hit"), lookup(at=5, outcome="hit")])
    text = process("text", [lookup(at=3.01, outcome="hit", guards_expr="of the second")])
    (run,) = join_processes([trace, text])
    assert [one.guards_expr for one in run.lookups] == [None, "of the second", None]


def test_what_only_the_text_log_tells_is_added_in_its_place() -> None:
    trace = process("trace", [lookup("f1", 1), lookup("f3", 5, compile_id="2/0")])
    between = lookup("f2", 3, compile_id="1/0")
    text = process("text", [lookup("f1", 1), between, lookup("f3", 5, compile_id="2/0")])
    (run,) = join_processes([trace, text])
    assert [one.cache_key for one in run.lookups] == ["f1", "f2", "f3"]


def test_a_bypass_without_a_key_is_the_lookup_that_an_exception_ended() -> None:
    bypass = lookup(None, 2, "bypass", cache="aotautograd", bypass_reason="no")
    other = lookup(None, 2, "bypass", cache="aotautograd", bypass_reason="other", compile_id="8/0")
    trace = process("trace", [lookup("f1", 1), other, bypass])
    text = process("text", [lookup("f1", 1), lookup("a1", 1.5, "unknown", guards_expr="told")])
    (run,) = join_processes([trace, text])
    told = {one.bypass_reason: one.guards_expr for one in run.lookups if one.cache == "aotautograd"}
    assert (len(run.lookups), told) == (3, {"no": "told", "other": None})
    # One whose end was seen is a lookup of its own.
    trace = process("trace", [lookup("f1", 1), lookup(None, 2, "bypass", cache="aotautograd")])
    text = process("text", [lookup("f1", 1), lookup("a1", 1.5)])
    (run,) = join_processes([trace, text])
    assert len(run.lookups) == 3


def test_a_process_that_looked_nothing_up_did_where_another_log_tells_of_a_lookup() -> None:
    trace = process("trace", [], looked_up=False)
    (run,) = join_processes([trace, process("text", [lookup(at=20)], last=30)])
    assert run.looked_up
    (run,) = join_processes([process("trace", [], looked_up=False), process("text", [])])
    assert not run.looked_up


def test_a_trace_without_a_time_tells_nothing_of_what_only_the_text_log_has() -> None:
    trace = process("trace", [lookup()], start_time=None)
    (run,) = join_processes([trace, process("text", [lookup(), lookup("f2", 5)])])
    assert [one.cache_key for one in run.lookups] == ["f1", "f2"]
    assert run.lookups[1].compile_error is None
    assert run.lookups[1].time == NOON_NS + 5 * S


@pytest.mark.parametrize(("of_text", "wanted"), [
    ([lookup("f2", 12)], False),
    # A compile of the trace looked up something else than the text log says.
    ([lookup("f2", 12, compile_id="9/0")], True),
    ([lookup("f2", 12), lookup("f1", 12)], False),
    ([lookup("f2", 1), lookup("f1", 1)], True),
    ([lookup("a2", 12)], True),
])  # fmt: skip
def test_where_two_traces_have_one_pid_compiles_must_agree(of_text: list[LookupRow], wanted: bool) -> None:
    other = process("trace-b", [lookup("f9", 501)], first=500, last=510)
    text = process("text", deepcopy(of_text), last=20)
    joined = [run.sources for run in join_processes([process("trace-a", [lookup()]), other, text])]
    assert (("trace-a", "text") in joined) is wanted
    # Where there is one trace, it is the one.
    alone = join_processes([process("trace-a", [lookup()]), process("text", [lookup("f2", 12)], last=20)])
    assert sources(alone) == [("trace-a", "text")]


def test_a_trace_without_a_key_there_does_not_disagree() -> None:
    trace = process("trace-a", [lookup(None, 1, "bypass", cache="fxgraph")])
    other = process("trace-b", [lookup("f9", 501)], first=500, last=510)
    runs = join_processes([trace, other, process("text", [lookup("f2", 12)], last=20)])
    assert ("trace-a", "text") in sources(runs)


def test_two_text_logs_of_one_process() -> None:
    def texts(*lookups: LookupRow, **told: Any) -> list[tuple[str, ...]]:
        return sources(join_processes([process("text-a", [lookup()]), process("text-b", lookups, **told)]))

    assert texts(lookup()) == texts() == [("text-a", "text-b")]
    # No trace says that these are all lookups of their time; nor that there are others.
    assert len(texts(lookup("f2", 12), last=20)) == 2
    assert len(texts(lookup("f2", 5))) == 2
    # Only of a trace it is known that it records when a lookup ended.
    assert len(texts(lookup(at=5, outcome="unknown"))) == 2
    assert len(texts(lookup(at=None), pid=None)) == 2


def test_the_rank_that_a_log_adds_counts_for_the_next_one() -> None:
    def runs(rank: int) -> list[tuple[str, ...]]:
        texts = [process("text-a", [lookup()], rank=1), process("text-b", [lookup()], rank=rank)]
        return sources(join_processes([process("trace", [lookup()]), *texts]))

    assert runs(1) == [("trace", "text-a", "text-b")]
    assert sorted(runs(2)) == [("text-b",), ("trace", "text-a")]
    # So does the pid.
    nameless = process("trace", [lookup()], pid=None)
    (run,) = join_processes([nameless, process("text-a", [lookup()]), process("text-b", [lookup()])])
    assert (run.pid, len(run.sources)) == (7, 3)


@pytest.mark.parametrize("first", [-500, 500])
def test_the_rank_that_a_log_adds_counts_for_its_own_run_alone(first: int) -> None:
    other = process("trace-b", [lookup("f9", first + 1)], first=first, last=first + 10)
    texts = [process(f"text-{rank}", [lookup()], rank=rank) for rank in (1, 2)]
    runs = join_processes([other, process("trace-a", [lookup()]), *texts])
    assert sorted(sources(runs)) == [("text-2",), ("trace-a", "text-1"), ("trace-b",)]


def test_one_key_that_two_logs_share_is_enough() -> None:
    """Where two traces have one pid, though another compile looked up something else."""
    other = process("trace-b", [lookup("f9", 501)], first=500, last=510)
    trace = process("trace-a", [lookup(), lookup("f3", 2, compile_id="1/0")])
    text = process("text", [lookup(), lookup("f2", 2, compile_id="1/0")])
    assert ("trace-a", "text") in sources(join_processes([trace, other, text]))


def test_what_a_run_knows_already_stays() -> None:
    own = {"cache_dir": "/own", "command": "own", "exit_status": 0, "rank": 1, "looked_up": True}
    trace = process("trace", [lookup()], **own)
    text = process("text", [lookup()], cache_dir="/other", command="other", exit_status=2, rank=1)
    (run,) = join_processes([trace, text])
    assert (run.cache_dir, run.command, run.exit_status, run.rank) == ("/own", "own", 0, 1)
    assert run.looked_up
    (run,) = join_processes([process("trace", [], looked_up=True), process("text", [])])
    assert run.looked_up


def test_a_text_log_of_a_compile_that_failed_says_which_code() -> None:
    trace = process("trace", [lookup()], compiles=compiles("1/0", 4, 6))
    text = process("text", [lookup(), lookup("f2", 5, compile_id="1/0")])
    (run,) = join_processes([trace, text])
    assert [one.function for one in run.lookups] == [None, "f"]


def test_of_lookups_of_one_key_those_are_one_that_are_nearest() -> None:
    def guards(*of_trace: LookupRow, at: float, **told: Any) -> list[str | None]:
        text = process("text", [lookup(at=at, guards_expr="told", **told)])
        (run,) = join_processes([process("trace", of_trace), text])
        return [one.guards_expr for one in run.lookups]

    assert guards(lookup(at=1), lookup(at=3), at=1.1) == ["told", None]
    assert guards(lookup(at=1), lookup(at=3), at=2.9) == [None, "told"]
    assert guards(lookup(at=1), lookup(at=1.2), at=1.1) == ["told", None]
    assert guards(lookup(at=1), lookup(at=2), lookup(at=3), at=2.9) == [None, None, "told"]
    # A trace says when a lookup ended, and a text log when its outcome was written down.
    ended = lookup(at=3, logged_time=NOON_NS + 4 * S)
    assert guards(lookup(at=1), ended, at=1.9, logged_time=NOON_NS + 4 * S) == [None, "told"]


def test_of_runs_that_begin_together_those_of_no_rank_are_where_those_of_the_first_are() -> None:
    def order(*ranks: int | None) -> list[int | None]:
        made = [process(f"text-{at}", [lookup(f"f{at}")], pid=at, rank=rank) for at, rank in enumerate(ranks)]
        return [run.rank for run in join_processes(made)]

    assert order(1, 0) == [0, 1]
    assert order(None, 0, 1) == [None, 0, 1]
    assert order(0, None, 1) == [0, None, 1]
    assert order(1, None, 0) == [None, 0, 1]


def test_of_runs_that_are_equally_near_the_first_is_taken() -> None:
    for first, second in ((7, None), (None, 7)):
        made = [
            process("trace-a", [lookup()], pid=first),
            process("trace-b", [lookup()], pid=second, first=0.5),
            process("text", [lookup()]),
        ]
        assert ("trace-a", "text") in sources(join_processes(made))


def test_a_lookup_that_a_trace_says_no_beginning_of_began_when_the_text_log_says() -> None:
    trace = process("trace", [lookup(at=None, logged_time=NOON_NS + S)])
    (run,) = join_processes([trace, process("text", [lookup(at=0.9)])])
    assert run.lookups[0].time == NOON_NS + int(0.9 * S)
    for of_trace, of_text, wanted in ((1.0, 0.9, 0.9), (0.9, 1.0, 0.9), (1.0, None, 1.0)):
        logs = process("trace", [lookup(at=of_trace)]), process("text", [lookup(at=of_text)])
        (run,) = join_processes([*logs])
        assert run.lookups[0].time == NOON_NS + int(wanted * S)


@pytest.mark.parametrize(("told", "is_one"), [
    ({}, True),
    ({"source": "other.log"}, False),
    ({"pid": 8}, False),
    ({"pid": None}, False),
    ({"first": 3_600, "last": 3_610}, False),
])  # fmt: skip
def test_what_vllm_and_torch_say_in_one_log(told: dict[str, Any], is_one: bool) -> None:
    """Of two containers that share a folder of logs, both may have the pid 7."""
    text = process("server.log", [lookup()], "text")
    vllm = process(**{"source": "server.log", "lookups": [lookup("v", cache="vllm")], "kind": "vllm", **told})
    assert len(join_processes([text, vllm])) == (1 if is_one else 2)
    nameless = process("server.log", [lookup()], "text", pid=None)
    assert len(join_processes([nameless, vllm])) == 2
    # A second process of vLLM is not the first one.
    assert len(join_processes([text, vllm, deepcopy(vllm)])) == (2 if is_one else 3)


# torch 2.5.1: a model's forward graph, of which the compiler took half a minute; of its details the first.
KEY = "fhbvjteq3ozftr2hbdqc7dsadl7tl7zw3zg4uyc47sesfv4n2omp"
DETAIL = "[6oz6bzszxqne3hfgecyvxfviralaqiimft22soigmt67pjanlwl] gm: GraphModule()"
TRACE_OF_2_5 = (
    'V1128 07:42:16.530000 25594 torch/_logging/structured.py:22] {"str": ["/a/prog.py", 1]}\n'
    'V1128 07:42:51.571000 25594 torch/_inductor/codecache.py:1379] {"artifact": {"name": "fx_graph_cache_hash", "encoding": "json"}, '
    '"frame_id": 0, "frame_compile_id": 0, "attempt": 0, "has_payload": "7d2c23bfdf27d2494202a66b75df301b"}\n'
    f'\t{{"key": "{KEY}", "components": ["{DETAIL}"], "time_taken_ns": 30757687098, "cache_state": "miss"}}\n'
)
LOG_OF_2_5 = (
    f"V1128 07:42:20.809000 25594 torch/_inductor/codecache.py:799] [0/0] FX graph cache hash details for key {KEY}:\n"
    f"V1128 07:42:20.809000 25594 torch/_inductor/codecache.py:799] [0/0] {DETAIL}\n"
    f"V1128 07:42:20.812000 25594 torch/_inductor/codecache.py:1329] [0/0] fx graph cache miss for key {KEY}\n"
)


def test_a_trace_of_2_5_that_says_how_long_compiles_took_is_of_the_process_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "trace.log").write_text(TRACE_OF_2_5)
    (tmp_path / "torch.log").write_text(LOG_OF_2_5)
    scope = cachescope.read(tmp_path)
    assert len(scope.runs) == len(scope.lookups) == 1
    (row,) = scope.lookups.to_dict("records")
    assert row["end_time"] - row["time"] > timedelta(seconds=30.75)


def looked_up(text: str) -> LookupRow:
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
    assert [one.cache_key for one in put_in_order([looked_up(line) for line in lines])] == wanted.split()


@pytest.mark.parametrize(("lines", "wanted"), [
    (["f1 hit 0/0 @50", "a1 hit 0/0 @70"], [("a1", 49), ("f1", 50)]),
    (["f1 hit 0/0 @50", "a1 hit 0/0 @30"], [("a1", 30), ("f1", 50)]),
    (["f1 hit 0/0", "a1 hit 0/0 @70"], [("a1", 70), ("f1", None)]),
    # Where all have times, these tell.
    (["f2 hit 1/0 @9", "f1 hit 0/0 @5"], [("f1", 5), ("f2", 9)]),
    (["f2 hit 1/0 @9", "f1 hit 0/0", "f0 hit 2/0 @5"], [("f2", 9), ("f1", None), ("f0", 5)]),
])  # fmt: skip
def test_times_agree_with_the_order(lines: list[str], wanted: list[tuple[str, int | None]]) -> None:
    made = put_in_order([looked_up(line) for line in lines])
    assert [(one.cache_key, one.time) for one in made] == wanted


HOUR_US = 3_600 * 10**6


def starts(*made: tuple[str, int, float | None, Mapping[str, str]]) -> list[int]:
    """Of lookups by compile id, segment, hours after some time, and hash details."""
    store = HashDetails()
    lookups, clocks = [], []
    for compile_id, segment, hours, fields in made:
        looked_up = LookupRow(cache="aotautograd", cache_key="a1", compile_id=compile_id, segment=segment)
        if fields:
            looked_up.detail_set = set_of(store, fields)
        lookups.append(looked_up)
        clocks.append(None if hours is None else int(hours * HOUR_US))
    return run_starts(lookups, clocks, store)


FIRST_BUILD, SECOND_BUILD = {"torch_version": "b'one'"}, {"torch_version": "b'two'"}
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
    ([("0/0", 1, 10, FIRST_BUILD), ("1/0", 1, 11, FIRST_BUILD), ("0/0", 2, 12, SECOND_BUILD)], [0, 2]),
    ([("0/0", 1, 10, FIRST_BUILD), ("0/0", 2, 11, NONE), ("1/0", 1, 12, SECOND_BUILD)], [0, 1]),
    ([("0/0", 1, 10, FIRST_BUILD), ("0/0", 2, 11, FIRST_BUILD), ("0/0", 3, 12, SECOND_BUILD), ("0/0", 4, 13, SECOND_BUILD)], [0, 2]),
    ([("0/0", 1, 10, FIRST_BUILD), ("1/0", 1, 11, SECOND_BUILD)], [0]),
    ([("0/0", 1, 10, FIRST_BUILD), ("0/0", 2, 11, NONE), ("0/0", 3, 12, NONE), ("1/0", 1, 13, SECOND_BUILD)], [0, 2]),
    ([("0/0", 1, 10, FIRST_BUILD), ("0/0", 2, 12, SECOND_BUILD), ("0/0", 3, 14, FIRST_BUILD)], [0, 1, 2]),
    # Two lookups of one first compile are one beginning.
    ([("0/0", 1, 10, FIRST_BUILD), ("0/0", 2, 11, SECOND_BUILD), ("0/0", 2, 11, SECOND_BUILD)], [0, 1]),
    ([("0/0", 0, 10, NONE), ("0/0", 0, 9, NONE)], [0, 1]),
    ([("0/0", 1, 10, NONE), ("0/0", 1, 9, NONE)], [0]),
])  # fmt: skip
def test_where_processes_begin(
    made: list[tuple[str, int, float | None, Mapping[str, str]]], wanted: list[int]
) -> None:
    assert starts(*made) == wanted


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
    # Each must record a looked_up of the log at its moment.
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
    # One outside of all, or without a time, is of the process of the looked_up before it.
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
    ({}, {}, ["a", "b"]), ({"pid": None}, {}, ["ab"]), ({"rank": 3}, {"rank": 3}, ["a", "b"]),
    ({"rank": 3}, {}, ["a", "b"]), ({"rank": 3}, {"rank": 4}, ["ab"]), ({"start_time": None}, {}, ["ab"]),
    ({"clock_first_us": None}, {}, ["ab"]), ({}, {"start_time": None}, ["ab"]),
    ({}, {"clock_first_us": None}, ["ab"]), ({}, {"clock_last_us": None}, ["ab"]),
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
