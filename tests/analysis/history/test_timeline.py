"""When compiles ended and what they stored: rows in, worked out by hand."""

from dataclasses import replace
from typing import Any

import pytest

from cachescope.analysis.history.timeline import Timeline, error_line
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import TEMPLATE, history_of, run_row

WRITTEN = {"entry_path": "/cache/e"}


def row(at: int, cache: str, **told: Any) -> LookupRow:
    usual = {"lookup": at, "cache": cache, "cache_key": f"k{at}", "direction": None}
    return replace(TEMPLATE, **(usual | told))


def aot(at: int = 0, **told: Any) -> LookupRow:
    return row(at, "aotautograd", **told)


def fx(at: int = 1, above: int | None = 0, **told: Any) -> LookupRow:
    return row(at, "fxgraph", aot_lookup=above, **told)


def timeline(*made: LookupRow, exit_status: int | None = None) -> Timeline:
    return history_of(made, runs=[run_row(0, None, exit_status=exit_status)]).timeline


@pytest.mark.parametrize(("made", "has_ended"), [
    ([fx(0, None)], False),
    ([fx(0, None, time_taken_ns=1)], True),
    ([fx(0, None, **WRITTEN)], True),
    # What the record of the compile says goes before.
    ([fx(0, None, compile_ended=True)], True),
    ([fx(0, None, compile_ended=True, compile_error="no")], False),
    ([fx(0, None, compile_ended=False, time_taken_ns=1)], False),
    ([aot()], False),
    ([aot(**WRITTEN)], True),
    # An AOTAutograd lookup has ended with the last of its graphs, and its own time is none.
    ([aot(time_taken_ns=1)], False),
    ([aot(), fx(1, time_taken_ns=1)], True),
    ([aot(), fx(1, outcome="hit")], True),
    ([aot(), fx(1)], False),
    ([aot(), fx(1, time_taken_ns=1), fx(2)], False),
    ([aot(), fx(1, time_taken_ns=1), fx(2, outcome="hit"), fx(3, **WRITTEN)], True),
    ([aot(), fx(1, 7, time_taken_ns=1)], False),
])  # fmt: skip
def test_whether_a_compile_is_known_to_have_ended(made: list[LookupRow], has_ended: bool) -> None:
    assert timeline(*made).has_ended(0) is has_ended


@pytest.mark.parametrize(("made", "is_stored"), [
    ([fx(0, None, **WRITTEN)], True),
    # Only the text log of its own process would tell of a failure to write it.
    ([fx(0, None, time_taken_ns=1)], False),
    ([fx(0, None, time_taken_ns=1), fx(1, None, **WRITTEN)], True),
    ([fx(0, None, time_taken_ns=1), fx(1, None, run=7, **WRITTEN)], False),
    ([fx(0, None), fx(1, None, **WRITTEN)], False),
    ([fx(0, None, **WRITTEN, save_error="OSError: full")], False),
    ([aot(time_taken_ns=1), fx(1, **WRITTEN)], False),
])  # fmt: skip
def test_whether_a_result_is_known_to_have_been_stored(made: list[LookupRow], is_stored: bool) -> None:
    assert timeline(*made).is_stored(0) is is_stored


FULL = "Traceback (most recent call last):\nOSError: [Errno 28] No space left on device"
HALF = [aot(), fx(1, direction="forward", time_taken_ns=1)]
LATER = fx(9, None, compile_id="9/0", time_taken_ns=1)
KILLED, FAILED, RIGHT = 137, 3, 0
NOT_STORED: dict[str, tuple[list[LookupRow], int | None, tuple[str, str, bool] | None]] = {
    "as far as is known it is stored": ([fx(0, None)], None, None),
    "torch would not": ([fx(0, None, save_bypass="no")], None, ("never stored", "torch would not store it: no", True)),
    "torch could not": ([fx(0, None, save_error=FULL)], None, ("not saved", "torch could not store it: OSError", True)),
    "the compile failed": ([fx(0, None, compile_error="A\nB")], None, ("failed compile", "its compile failed: A", True)),
    "the directory was full": ([fx(0, None, compile_error=FULL)], None, ("not saved", "its compile failed: OSError", True)),
    "written before it failed": ([fx(0, None, compile_error="B", time_taken_ns=1)], None, None),
    "written before it was killed": ([fx(0, None, **WRITTEN, compile_ended=False)], KILLED, None),
    # An AOTAutograd lookup of the last compile of a process.
    "no graph, and the log ends": ([aot()], None, ("not known", "its log ends within", False)),
    "no graph, and the process ended well": ([aot()], RIGHT, ("not known", "its log ends within", False)),
    "no graph, and it was killed": ([aot()], KILLED, ("process ended", "signal SIGKILL", True)),
    "no graph, and it failed": ([aot()], FAILED, ("process ended", "exit status 3", True)),
    "no graph, and another compile after it": ([aot(), LATER], None, None),
    "no graph, and killed in another compile": ([aot(), LATER], KILLED, None),
    "a graph": ([aot(), fx()], None, None),
    "a graph of an outcome that was not seen": ([aot(), fx(outcome="unknown")], None, ("not known", "its log ends", False)),
    "one of two of which it was not seen": ([aot(), fx(1, outcome="unknown"), fx(2)], None, ("not known", "its log ends", False)),
    "a graph, and it was killed": ([aot(), fx()], KILLED, None),
    "a graph and a text log, and it was killed": ([aot(), fx(**WRITTEN)], KILLED, ("process ended", "SIGKILL", True)),
    "a text log of another process": ([aot(), fx(), fx(2, None, run=7, **WRITTEN)], KILLED, None),
    "a text log, and the process ended well": ([aot(), fx(**WRITTEN)], RIGHT, ("not known", "its text log names", False)),
    "a text log and a trace, which has its end": ([aot(compile_ended=True), fx(**WRITTEN)], RIGHT, None),
    "its compile ended": ([aot(compile_ended=True)], None, None),
    "its compile ended, and it was killed": ([aot(compile_ended=True)], KILLED, None),
    "its compile did not end": ([aot(compile_ended=False), fx()], None, ("not known", "its log ends within", False)),
    "its compile did not end, and was killed": ([aot(compile_ended=False), fx()], KILLED, ("process ended", "SIGKILL", True)),
    # A training graph is stored with its backward graph.
    "a forward graph alone": (HALF, None, ("never stored", "with its backward graph", False)),
    "a forward graph alone, and it was killed": (HALF, KILLED, ("process ended", "SIGKILL", True)),
    "a forward graph alone, and another compile": ([*HALF, LATER], None, ("never stored", "with its backward graph", False)),
    "a forward graph alone, and killed later": ([*HALF, LATER], KILLED, ("never stored", "with its backward graph", False)),
    "a forward graph alone, and compiled autograd": (
        [*HALF, fx(9, None, compile_id="!0/1/0", time_taken_ns=1)], None, ("compiled autograd", "graphs of its own", False),
    ),
    "both graphs": ([*HALF, fx(2, direction="backward")], None, None),
    "an inference graph": ([aot(), fx(direction="inference")], None, None),
    # An attempt that was begun anew before it looked up a graph.
    "begun anew": ([aot(), aot(1, compile_id="0/0_1")], None, ("restarted compile", "restarted its compile", True)),
    "begun anew, and killed": ([aot(), aot(1, compile_id="0/0_1")], KILLED, ("restarted compile", "restarted its compile", True)),
    "another compile anew": ([aot(), aot(1, compile_id="1/0_1")], None, None),
    "anew in another process": ([aot(), aot(1, run=7, compile_id="0/0_1"), LATER], None, None),
    "anew before it": ([aot(5), aot(1, compile_id="0/0_1"), LATER], None, None),
    "anew after a graph": ([aot(), fx(), aot(2, compile_id="0/0_1")], None, None),
    "the same attempt": ([aot(compile_id="0/0_1"), aot(1, compile_id="0/0_1"), LATER], None, None),
    "the attempt after": ([aot(compile_id="0/0_1"), aot(1, compile_id="0/0_2"), LATER], None, ("restarted compile", "restarted", True)),
    "the attempt before": ([aot(compile_id="0/0_2"), aot(1, compile_id="0/0_1"), LATER], None, None),
    "of no compile": ([aot(compile_id=None), aot(1, compile_id="0/0_1")], None, None),
    "anew as an FX lookup": ([aot(), fx(1, None, compile_id="0/0_1")], None, None),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_STORED)
def test_why_nothing_was_stored(case: str) -> None:
    made, exit_status, wanted = NOT_STORED[case]
    why = timeline(*made, exit_status=exit_status).not_stored.get(0)
    if wanted is None or why is None:
        assert why is wanted
    else:
        assert (why.kind, why.is_recorded) == (wanted[0], wanted[2])
        assert wanted[1] in why.why


def test_the_status_of_a_process_comes_before_that_of_its_command() -> None:
    for own, how in ((143, "signal SIGTERM"), (0, None)):
        run = run_row(0, None, exit_status=1, own_exit_status=own)
        (why,) = history_of([aot()], runs=[run]).timeline.not_stored.values()
        assert (how in why.why) if how else why.kind == "not known"


# The graph of an AOTAutograd lookup, the second of the rows.
OF_GRAPHS: dict[str, tuple[list[LookupRow], int | None, str | None]] = {
    "the log goes on": ([aot(), fx(), LATER], None, None),
    "its compile did not end": ([aot(compile_ended=False), fx(compile_ended=False)], None, "not known"),
    "its compile did not end, and was killed": ([aot(compile_ended=False), fx(compile_ended=False)], KILLED, "process ended"),
    "that of AOTAutograd did not end": ([aot(compile_ended=False), fx()], None, "not known"),
    "that of AOTAutograd did not end, and was killed": ([aot(compile_ended=False), fx()], KILLED, "process ended"),
    "without an AOTAutograd lookup": ([aot(), fx(above=None, compile_ended=False), LATER], None, "not known"),
    "written": ([aot(compile_ended=False), fx(time_taken_ns=1, compile_ended=False)], KILLED, None),
    "AOTAutograd hit": ([aot(outcome="hit", compile_ended=False), fx()], KILLED, None),
    # What was bypassed above, or stored with another graph, says nothing of the graph.
    "AOTAutograd would not": ([aot(save_bypass="no", compile_ended=False), fx()], None, None),
    "a training graph": ([aot(), fx(direction="forward"), LATER], None, None),
}  # fmt: skip


@pytest.mark.parametrize("case", OF_GRAPHS)
def test_why_the_graph_of_a_compile_was_not_stored(case: str) -> None:
    made, exit_status, wanted = OF_GRAPHS[case]
    why = timeline(*made, exit_status=exit_status).not_stored.get(1)
    assert (None if why is None else why.kind) == wanted


@pytest.mark.parametrize(("status", "how"), [
    (None, None), (0, None), (1, "exit status 1"), (128, "exit status 128"), (129, "signal SIGHUP"),
    (137, "signal SIGKILL"), (255, "exit status 255"),
])  # fmt: skip
def test_how_a_process_ended(status: int | None, how: str | None) -> None:
    why = timeline(aot(), exit_status=status).not_stored[0]
    assert why.why.endswith(how or "the rest is missing")


@pytest.mark.parametrize(
    ("compile_id", "is_later"),
    [("0/0_1", True), ("0/0_0", False), ("0/0_x", False), ("0/0_", False), ("0/0_123456789", True), ("0/0_1234567890", False)],
)  # fmt: skip
def test_the_attempt_of_a_compile(compile_id: str, is_later: bool) -> None:
    why = timeline(aot(), aot(1, compile_id=compile_id), LATER).not_stored.get(0)
    assert (why is not None) is is_later


@pytest.mark.parametrize(("text", "line"), [
    ("a", "a"), ("\na\n  b", "a"), ("", ""), (FULL, "OSError: [Errno 28] No space left on device"),
    # torch 2.12: an error of Inductor ends with the code that it is of.
    ("LoweringException: NotImplementedError: not supported for CPU.\n  target: flex_attention\n    out = hop(", "LoweringException: NotImplementedError: not supported for CPU."),
])  # fmt: skip
def test_the_line_that_tells_an_error(text: str, line: str) -> None:
    assert error_line(text) == line


def test_the_graphs_of_a_lookup() -> None:
    found = timeline(aot(), fx(1), aot(2), fx(3), fx(4, 2), fx(5, None))
    assert [list(found.graphs_of(at)) for at in range(6)] == [[1, 3], [], [4], [], [], []]
