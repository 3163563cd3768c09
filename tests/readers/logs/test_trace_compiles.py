"""To which compile a lookup belongs, and how that ended; compiles, symbols and guards: records made by hand, and traces cut and mixed up."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cachescope
from cachescope.frames.compile_rows import SymbolRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.json_record import Record
from cachescope.readers.logs import trace_compiles
from cachescope.readers.logs.compiled_frames import CompiledFrames
from cachescope.readers.reading import Compile, Process
from cachescope.terms import AOTAUTOGRAD, FXGRAPH
from tests.analysis.compiles.test_recorded_compiles import RECORDED, unpacked
from tests.conftest import Archive

SECOND = 10**9


def fx(compile_id: str | None = "0/0", **told: Any) -> LookupRow:
    return made(FXGRAPH, compile_id, **told)


def aot(compile_id: str | None = "0/0", **told: Any) -> LookupRow:
    return made(AOTAUTOGRAD, compile_id, **told)


def made(cache: str, compile_id: str | None, outcome: str = "full_miss", **told: Any) -> LookupRow:
    return LookupRow(cache=cache, cache_key="key", outcome=outcome, compile_id=compile_id, **told)


def frame(name: object = "f", file: object = "/mine.py", line: object = 7) -> dict[str, Any]:
    return {"name": name, "filename": file, "line": line}


WRAPPER = frame("inner", "/lib/torch/_dynamo/external_utils.py")
MODULE = frame("_call_impl", "/lib/torch/nn/modules/module.py")
IN_2_4 = frame("__call__", "/lib/torch/_dynamo/convert_frame.py")


@pytest.mark.parametrize(("stack", "wanted"), [
    ([frame()], ("f", "/mine.py", 7)),
    ([frame("main"), frame("g", "/other.py", 9)], ("g", "/other.py", 9)),
    # Who calls what torch wraps is left out since 2.9, and the last one there is who calls that.
    ([frame(), WRAPPER], ("inner", "/lib/torch/_dynamo/external_utils.py", 7)),
    # A module is called by the user's code.
    ([frame(), MODULE, WRAPPER], ("f", "/mine.py", 7)),
    ([frame(), frame("g", "/lib/torch/nn/modules/linear.py")], ("g", "/lib/torch/nn/modules/linear.py", 7)),
    ([frame(), frame("g", "C:\\torch\\_dynamo\\utils.py")], ("f", "/mine.py", 7)),
    # Nothing but wrappers.
    ([MODULE, WRAPPER], ("inner", "/lib/torch/_dynamo/external_utils.py", 7)),
    # A text that many stacks hold is written once.
    ([frame(file=3)], ("f", "/interned.py", 7)),
    ([frame(file=4)], ("f", None, 7)),
    ([frame(), frame("w", 5)], ("f", "/mine.py", 7)),
    ([], (None, None, None)),
    # torch 2.4 leaves out the code itself: its caller is not what is compiled.
    ([frame("main"), MODULE, IN_2_4], (None, None, None)),
])  # fmt: skip
def test_the_code_of_a_compile(stack: list[dict[str, Any]], wanted: tuple[object, ...]) -> None:
    compiles = trace_compiles.TraceCompiles()
    compiles.note_string("3", "/interned.py")
    compiles.note_string("5", "/x/torch/_dynamo/y.py")
    compiles.begin("0/0", 5, stack, [])
    lookup = fx()
    compiles.note(lookup, is_over=False)
    assert (lookup.function, lookup.file, lookup.line) == wanted


def graph(*lines: str) -> bytes:
    """As torch prints a graph: comments on the lines of the program, above their operators."""
    return "\n".join(
        f"\t        # File: {line}, code: x = y"
        for line in ("/v/site-packages/torch/nn/a.py:1 in forward", *lines)
    ).encode()


@pytest.mark.parametrize(("stack", "lines", "function"), [
    ([WRAPPER], ("/mine.py:8 in g", "/mine.py:9 in g"), ("g", "/mine.py", 8)),
    # Since 2.10 the caller is left out, and its own caller is the last one there.
    ([frame("main"), WRAPPER], ("/mine.py:8 in g",), ("g", "/mine.py", 8)),
    # Which of them calls the other is not known.
    ([WRAPPER], ("/mine.py:8 in g", "/mine.py:2 in h"), ("inner", WRAPPER["filename"], 7)),
    ([WRAPPER], (), ("inner", WRAPPER["filename"], 7)),
    # What is the user's own, or a module of torch that the user calls, has its place.
    ([frame()], ("/mine.py:8 in g",), ("f", "/mine.py", 7)),
    ([frame(), MODULE, WRAPPER], ("/mine.py:8 in g",), ("f", "/mine.py", 7)),
])  # fmt: skip
def test_the_function_under_a_wrapper(
    stack: list[dict[str, Any]], lines: tuple[str, ...], function: tuple[str, str, int]
) -> None:
    compiles, lookup = trace_compiles.TraceCompiles(), fx("0/0_1")
    compiles.begin("0/0", 5, stack, [])
    data = graph(*lines)
    for compile_id in ("0/0_1", "7/0"):
        compiles.note_graph(
            compile_id, trace_compiles.traced_in(data), trace_compiles.function_in(data, 0, len(data))
        )
    compiles.note(lookup, is_over=False)
    assert (lookup.function, lookup.file, lookup.line) == function
    # At the limit nothing is known of the function: torch records no beginning.
    compiles.end("0/1", 9, "E: why", trace_compiles.NOWHERE)
    assert compiles.rows[-1].function != "g"


@pytest.mark.parametrize("stack", [None, [], [frame("main"), IN_2_4], [frame("g", 8, 3)], [frame()]])
def test_the_metrics_name_what_no_beginning_names(stack: list[dict[str, Any]] | None) -> None:
    """It is lost, of torch 2.4, or of a file whose name is lost."""
    compiles, lookups = trace_compiles.TraceCompiles(), [fx("0/0"), aot("0/0_1"), fx("0/1")]
    if stack is not None:
        compiles.begin("0/0", 5, stack, [])
    for lookup in lookups:
        compiles.note(lookup, is_over=True)
    compiles.end("0/0", 9, None, trace_compiles.Place("g", "/other.py", 3))
    wanted = ("f", "/mine.py", 7) if stack == [frame()] else ("g", "/other.py", 3)
    told = [(one.function, one.file, one.line) for one in lookups]
    assert told == [wanted, wanted, (None, None, None)]
    assert [(one.compile_id, one.function, one.file, one.line) for one in compiles.rows] == [("0/0", *wanted)]


def test_a_graph_costs_no_more_than_its_length() -> None:
    """Within the time limit of a test: what is tried again at each byte would take hours."""
    for line in (b"a" + b":1 in x" * 500_000, b"File: a" * 500_000, b"# File: " * 500_000):
        data = b"\t        # File: " + line
        assert trace_compiles.function_in(data, 0, len(data)) is None


def test_what_is_wrong_with_a_frame_is_said() -> None:
    wrong: list[str] = []
    trace_compiles.TraceCompiles().begin("0/0", None, [frame(line="seven")], wrong)
    assert len(wrong) == 1 and wrong[0].startswith("line is the text 'seven'")


def ended(*steps: tuple[Any, ...]) -> list[LookupRow]:
    """`begin`, `end` and lookups one after the other, then the end of the log; the lookups."""
    compiles, lookups = trace_compiles.TraceCompiles(), []
    for what, *rest in steps:
        if what == "begin":
            compiles.begin(rest[0], 1, [frame(rest[0])], [])
        elif what == "end":
            compiles.end(rest[0], 2, rest[1] if len(rest) > 1 else None, trace_compiles.NOWHERE)
        else:
            lookups.append(rest[0])
            compiles.note(rest[0], is_over=what == "over")
    compiles.finish()
    return lookups


@pytest.mark.parametrize(("steps", "wanted"), [
    ([("look", fx())], [(False, None)]),
    ([("look", fx()), ("end", "0/0")], [(True, None)]),
    ([("look", fx()), ("end", "0/0", "E: why")], [(True, "E: why")]),
    ([("over", fx())], [(True, None)]),
    ([("over", fx()), ("end", "0/0", "E")], [(True, None)]),
    ([("look", fx(None)), ("end", "0/0")], [(None, None)]),
    ([("look", fx()), ("end", None)], [(False, None)]),
    # After another has ended, it is not known whether this one did.
    ([("look", fx()), ("end", "1/0")], [(None, None)]),
    ([("look", fx()), ("end", "1/0"), ("end", "0/0")], [(True, None)]),
    ([("look", fx()), ("end", "1/0"), ("look", fx("2/0"))], [(None, None), (False, None)]),
    ([("look", fx()), ("end", "0/0"), ("look", fx())], [(True, None), (False, None)]),
    ([("look", fx()), ("end", "1/0"), ("end", "0/0"), ("look", fx())], [(True, None), (False, None)]),
    # Its entry is stored with the backward graph, which is compiled later.
    ([("over", aot()), ("end", "0/0", "E")], [(True, "E")]),
    ([("over", aot()), ("end", "0/0")], [(True, None)]),
    ([("over", aot(outcome="hit")), ("end", "0/0", "E")], [(True, None)]),
    ([("over", aot()), ("begin", "0/0"), ("end", "0/0", "E")], [(True, None)]),
    ([("over", aot()), ("end", "1/0", "E")], [(True, None)]),
])  # fmt: skip
def test_whether_a_compile_ended(
    steps: list[tuple[Any, ...]], wanted: list[tuple[bool | None, str | None]]
) -> None:
    assert [(one.compile_ended, one.compile_error) for one in ended(*steps)] == wanted


def test_a_compile_that_begins_again_is_another_segment() -> None:
    ways = ("look", fx()), ("begin", "0/0"), ("look", fx()), ("begin", "1/0"), ("begin", "0/0")
    found = ended(*ways, ("look", fx()))
    assert [one.segment for one in found] == [0, 1, 2]
    assert [one.function for one in found] == [None, "0/0", "0/0"]


def test_a_later_attempt_is_of_the_compile_that_began() -> None:
    """Torch notes the beginning once: a graph break begins another attempt, whose lookups have its number."""
    first = [("begin", "0/0"), ("look", fx("0/0_1")), ("end", "0/0_1", "E")]
    found = ended(*first, ("begin", "0/0"), ("look", fx("0/0_2")))
    assert [one.segment for one in found] == [1, 2]
    assert [one.function for one in found] == ["0/0", "0/0"]
    assert [one.compile_error for one in found] == ["E", None]


def test_the_end_of_a_later_attempt_ends_its_compile() -> None:
    compiles = trace_compiles.TraceCompiles()
    compiles.begin("0/0", 1, [frame("f")], [])
    compiles.end("0/0_1", 2, None, trace_compiles.NOWHERE)
    assert [(one.compile_id, one.function, one.ended_us) for one in compiles.rows] == [("0/0", "f", 2)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small_breaks", "small_training"])
def test_every_lookup_of_a_real_program_has_its_code(name: str, archive: Archive) -> None:
    """Each function of the first has a graph break, and the same compile ids come again after a reset."""
    lookups = cachescope.read(archive(f"models/{name}") / "trace").lookups
    assert len(lookups) > 10
    assert lookups["function"].notna().all()
    assert (lookups["segment"] > 0).all()


@pytest.mark.parametrize(("rows", "lookup", "wanted"), [
    ([("0/0", 0, 9)], (1, "0/0"), ("f0", True, None)),
    ([("0/0", 0, 9, "E")], (1, "0/0"), ("f0", True, "E")),
    ([("0/0", 0, None)], (1, "0/0"), ("f0", False, None)),
    # Another one that ended later: this one may have ended without a record.
    ([("0/0", 0, None), ("1/0", 0, 9)], (1, "0/0"), ("f0", None, None)),
    ([("0/0", 0, None), ("1/0", 0, 1)], (1, "0/0"), ("f0", False, None)),
    ([("1/0", 0, 9)], (1, "0/0"), (None, None, None)),
    # The latest that had begun; one without a beginning began before the log.
    ([("0/0", 0, 1), ("0/0", 2, 9)], (3, "0/0"), ("f1", True, None)),
    ([("0/0", 0, 1), ("0/0", 4, 9)], (3, "0/0"), ("f0", True, None)),
    ([("0/0", 3, 9)], (3, "0/0"), ("f0", True, None)),
    ([("0/0", None, 9)], (3, "0/0"), ("f0", True, None)),
    ([("0/0", 4, 9)], (3, "0/0"), (None, None, None)),
    ([("0/0", 0, 9)], (None, "0/0"), (None, None, None)),
    ([("0/0", 0, 9)], (1, None), (None, None, None)),
])  # fmt: skip
def test_lookups_of_the_text_log_alone_get_their_compile_by_time(
    rows: list[tuple[Any, ...]], lookup: tuple[float | None, str | None], wanted: tuple[object, ...]
) -> None:
    """Rows are id, begin, end and error, in seconds after the trace's first line, which is at 100 s of its clock."""
    clock = [None if at is None else (100 + at) * 10**6 for row in rows for at in row[1:3]]
    compiles = [
        Compile(id_, clock[2 * at], f"f{at}", "/mine.py", 7, clock[2 * at + 1], *error)
        for at, (id_, _, _, *error) in enumerate(rows)
    ]
    process = Process(source="/log", kind="trace", pid=1, compiles=compiles)
    at, compile_id = lookup
    one = fx(compile_id, time=None if at is None else int((5_000 + at) * SECOND))
    trace_compiles.tell_of_compiles(process, [one])
    assert (one.function, one.compile_ended, one.compile_error) == (None, None, None)
    process.clock_first_us = 100 * 10**6
    trace_compiles.tell_of_compiles(process, [one])
    assert (one.function, one.compile_ended, one.compile_error) == (None, None, None)
    process.start_time = 5_000 * SECOND
    trace_compiles.tell_of_compiles(process, [one])
    assert (one.function, one.compile_ended, one.compile_error) == wanted


def test_lookups_of_the_text_log_alone_get_the_segment_of_their_compile() -> None:
    """The first of three compiles of one id began before the trace."""
    compiles = [Compile("0/0", began and began * 10**6, "f") for began in (None, 1, 3)]
    process = Process(source="/log", kind="trace", start_time=0, clock_first_us=0, compiles=compiles)
    lookups = [fx(time=at * SECOND, segment=7) for at in (0, 2, 4)]
    trace_compiles.tell_of_compiles(process, lookups)
    assert [one.segment for one in lookups] == [0, 1, 2]


ID = {"frame_id": 1, "frame_compile_id": 2}


@pytest.mark.parametrize(("ids", "wanted"), [
    (ID, "1/2"), ({**ID, "attempt": 0}, "1/2"), ({**ID, "attempt": 3}, "1/2_3"),
    ({"compiled_autograd_id": 4, **ID}, "!4/1/2"), ({"compiled_autograd_id": 4}, "!4"),
    ({"compiled_autograd_id": 0}, "!0"), ({"frame_id": 0, "frame_compile_id": 0}, "0/0"), ({}, None),
])  # fmt: skip
def test_a_compile_id_is_printed_as_torch_prints_it(ids: dict[str, int], wanted: str | None) -> None:
    assert trace_compiles.compile_id_of(Record(ids)) == wanted


@pytest.mark.parametrize(("line", "wanted"), [
    (b'{"str": ["text", 3]}', ("3", "text")),
    (b'{"str": ["a\\"b\\\\", 12]}', ("12", 'a"b\\')),
    (b'{"str": ["\\x", 3]}', ("3", '"\\x"')),
    (b'{"str": ["text"]}', None),
    (b'{"str": [3, 3]}', None),
    (b' {"str": ["text", 3]}', None),
])  # fmt: skip
def test_a_text_that_is_written_once(line: bytes, wanted: tuple[str, str] | None) -> None:
    assert trace_compiles.interned_string(line) == wanted


@pytest.mark.parametrize(("metrics", "wanted"), [
    ({"fail_type": "E", "fail_reason": "why"}, "E: why"), ({"fail_type": "E", "fail_reason": ""}, "E"),
    ({"fail_type": "E", "fail_reason": None}, "E"), ({"fail_type": "E"}, "E"),
    ({"fail_type": None, "fail_reason": "why"}, None), ({"fail_reason": "why"}, None), ({}, None),
])  # fmt: skip
def test_the_error_of_a_compile(metrics: dict[str, Any], wanted: str | None) -> None:
    assert trace_compiles.error_in(Record(metrics)) == wanted


PREFIX = "V1123 03:32:34.178000 5425 torch/_dynamo/x.py:1] "


def record(kind: str, value: object, payload: str = "", **ids: object) -> str:
    envelope = {kind: value, "frame_id": 0, "frame_compile_id": 0, "attempt": 0} | ids
    lines = "".join(f"\t{line}\n" for line in payload.split("\n")) if payload else ""
    return f"{PREFIX}{json.dumps(envelope)}\n{lines}"


def metrics(kind: str = "compilation_metrics", **values: object) -> str:
    return record(kind, {"is_forward": True, "duration_us": 5, "start_time_us": 7} | values)


def backward_of_2_5(**values: object) -> str:
    return metrics("bwd_compilation_metrics", is_forward=None, **values)


def read(tmp_path: Path, *records: str) -> CompiledFrames:
    log = tmp_path / "trace.log"
    # Each has a moment of its own.
    moments = (f":34.{number:06} " for number in range(len(records)))
    log.write_text("".join(one.replace(":34.178000 ", at) for one, at in zip(records, moments, strict=True)))
    return CompiledFrames(str(log))


START = record("dynamo_start", {"stack": [{"name": "f", "line": 3, "filename": "model.py"}]})


@pytest.mark.parametrize(("records", "expected"), [
    ([START, metrics()], ["first"]),
    # After a reset.
    ([START, metrics(), START, metrics()], ["first", "first"]),
    # A backward graph while it compiles, and a later one; the second record is that of torch 2.5.
    ([START, metrics(is_forward=False)], ["first", "backward"]),
    ([START, metrics(), metrics(is_forward=False)], ["first", "backward"]),
    ([START, metrics(), backward_of_2_5()], ["first", "backward"]),
    ([START, metrics(), backward_of_2_5(fail_type="InductorError")], ["first", "backward"]),
    # It began before the log.
    ([metrics()], ["first"]),
    # The limit, as it is called now, in torch 2.6, and in 2.5.
    ([metrics(fail_type="RecompileLimitExceeded", fail_reason="recompile_limit reached")], ["limit"]),
    ([backward_of_2_5(fail_type="RecompileLimitExceeded")], ["limit"]),
    ([metrics(fail_type="CacheLimitExceeded")], ["limit"]),
    ([START, metrics(fail_type="InductorError")], ["first"]),
])  # fmt: skip
def test_the_kind_of_a_compile(records: list[str], expected: list[str], tmp_path: Path) -> None:
    found = read(tmp_path, *records)
    assert [one.row.kind for one in found.rows] == expected
    assert not found.problems


def test_a_compile_with_no_end_takes_no_known_time(tmp_path: Path) -> None:
    (one,) = read(tmp_path, START).rows
    assert (one.row.start_time, one.row.time_taken_ns, one.row.error) == (None, None, None)
    assert one.place == ("f", "model.py", 3)


def test_a_whole_record_at_the_end_needs_no_newline(tmp_path: Path) -> None:
    (one,) = read(tmp_path, START, metrics().removesuffix("\n")).rows
    assert (one.has_ended, one.row.time_taken_ns) == (True, 5_000)
    # torch 2.4 and 2.5 write seconds alone.
    (one,) = read(tmp_path, START, metrics(duration_us=None, entire_frame_compile_time_s=1.5)).rows
    assert one.row.time_taken_ns == 1_500_000_000


def test_where_the_limit_is_reached_the_place_is_that_of_the_frame(tmp_path: Path) -> None:
    failed = {"fail_type": "RecompileLimitExceeded", "duration_us": 1}
    limit = record("compilation_metrics", failed, frame_compile_id=8)
    found = [one.row for one in read(tmp_path, START, metrics(), limit).rows]
    told = [(one.compile_id, one.kind, one.function) for one in found]
    assert told == [("0/0", "first", "f"), ("0/8", "limit", "f")]


def test_what_lost_its_beginning_is_not_said_of_other_code(tmp_path: Path) -> None:
    """A compile 0/1 whose beginning is lost, ids that begin again, and another 0/1."""
    reasons = record("artifact", {"name": "recompile_reasons"}, "0/0: lost", frame_compile_id=1)
    symbol = record("create_symbol", {"symbol": "s1"}, frame_compile_id=1)
    other = record("dynamo_start", {"stack": [{"name": "g", "line": 9, "filename": "b.py"}]})
    again = record("dynamo_start", {"stack": []}, frame_compile_id=1)
    ended = record("compilation_metrics", {"is_forward": True}, frame_compile_id=1)
    found = read(tmp_path, START, metrics(), reasons, other, metrics(), again, ended, symbol, ended).rows
    places = [(one.row.compile_id, one.row.function) for one in found]
    assert places == [("0/0", "f"), ("0/0", "g"), ("0/1", None), ("0/1", None)]
    assert all((one.row.recompile_reasons, one.symbols) == ((), []) for one in found)


WHERE = "Graph break in user code at model.py:7\n"


@pytest.mark.parametrize(("payload", "reason"), [
    # Behind the word, or in a line of its own.
    (f"{WHERE}Reason: Unsupported: print\nUser code traceback:\n  File", "Unsupported: print"),
    (f"{WHERE}Graph Break Reason: Call to `print`\n  Explanation: none", "Call to `print`"),
    (f"{WHERE}Graph Break Reason: Encountered:\n\n  Call to `print`\n  Hint", "Call to `print`"),
    (f"{WHERE}Graph Break Reason: Encountered:\n\n", "Encountered:"),
    # No form that is known: what it says first.
    ("  skipped by a rule\nUser code traceback:\n  File", "skipped by a rule"),
    ("skipped by a rule", "skipped by a rule"),
])  # fmt: skip
def test_the_reason_of_a_graph_break(payload: str, reason: str, tmp_path: Path) -> None:
    told = record("artifact", {"name": "dynamo_graph_break_reason"}, payload)
    (one,) = read(tmp_path, START, told, metrics()).rows
    where = "model.py:7: " if payload.startswith(WHERE) else ""
    assert one.row.graph_breaks == (f"{where}{reason}",)


@pytest.mark.parametrize(("payload", "expected"), [
    ("0/0: x == 1       # code", ("0/0: x == 1 # code",)),
    ('[\n"0/1: a\\nUser stack trace:",\n"0/0: b"\n]', ("0/1: a", "0/0: b")),
    ("[1, null]", ()),
    # Lines of the list are lost.
    ('[\n"0/1: a', ()),
    ("", ("",)),
])  # fmt: skip
def test_reasons_are_one_text_or_a_list(payload: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    reasons = record("artifact", {"name": "recompile_reasons"}, payload, frame_compile_id=1)
    again = record("dynamo_start", {"stack": []}, frame_compile_id=1)
    *_, one = read(tmp_path, START, metrics(), reasons, again).rows
    assert one.row.recompile_reasons == expected


@pytest.mark.parametrize(("told", "restarts"), [
    ({"restart_reasons": ["one", "two\n  in lines"]}, ("one", "two")),
    ({"restart_reasons": []}, ()),
    ({"restart_reasons": None}, ()),
    ({}, ()),
])  # fmt: skip
def test_why_the_analysis_began_again(
    told: dict[str, object], restarts: tuple[str, ...], tmp_path: Path
) -> None:
    found = read(tmp_path, START, metrics(**told))
    assert [one.row.restarts for one in found.rows] == [restarts]
    assert not found.problems


@pytest.mark.parametrize("wrong", [
    record("dynamo_start", {"stack": 5}),
    record("dynamo_start", 5),
    record("create_symbol", {"symbol": 5, "user_stack": [7]}),
    metrics(start_time_us="now", duration_us=1e300, restart_reasons=[1], fail_type=3, is_forward="yes"),
    record("compilation_metrics", {}, frame_id="x"),
    f'{PREFIX}{{"dynamo_start": {{"stack"\n',
])  # fmt: skip
def test_values_that_torch_never_writes_are_problems(wrong: str, tmp_path: Path) -> None:
    found = read(tmp_path, START, wrong, START)
    assert [one.row.compile_id for one in found.rows if one.row.line == 3] == ["0/0", "0/0"]
    assert found.problems


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("trace")
    unpacked(RECORDED[0], folder)
    (log,) = folder.glob("*/trace/*.log")
    return log.read_bytes()


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from(["cut", "drop", "shuffle", "flip"]))
def test_a_damaged_trace_invents_nothing(trace: bytes, tmp_path_factory, seed: int, how: str) -> None:  # type: ignore[no-untyped-def]
    chance, lines = random.Random(seed), trace.split(b"\n")
    if how == "cut":
        data = trace[: chance.randrange(len(trace))]
    elif how == "drop":
        data = b"\n".join(line for line in lines if chance.random() < 0.9)
    elif how == "shuffle":
        chance.shuffle(lines)
        data = b"\n".join(lines)
    else:
        data = bytearray(trace)
        for _ in range(50):
            data[chance.randrange(len(data))] = chance.randrange(256)
    log = tmp_path_factory.mktemp("damaged") / "trace.log"
    log.write_bytes(data)
    rows = CompiledFrames(str(log)).rows
    assert {one.row.kind for one in rows} <= {"first", "recompile", "resume", "backward", "limit"}
    (tmp := log.parent / "whole.log").write_bytes(trace)
    whole = [(one.row.compile_id, one.place) for one in CompiledFrames(str(tmp)).rows]
    if how == "cut":
        assert [(one.row.compile_id, one.place) for one in rows] == whole[: len(rows)]
    elif how == "drop":
        functions = {place.function for _, place in whole} | {None}
        assert {one.row.compile_id for one in rows} <= {compile_id for compile_id, _ in whole}
        assert {one.place.function for one in rows} <= functions


TORCH = "/env/lib/python3.11/site-packages/torch"
USER = {"name": "forward", "line": 8, "filename": "/home/model.py", "loc": "if x.shape[0] > 10:"}
LINEAR = {"name": "forward", "line": 134, "filename": f"{TORCH}/nn/modules/linear.py", "loc": "return …"}
TRACED_AGAIN = {"name": "trace", "line": 9, "filename": f"{TORCH}/fx/experimental/proxy_tensor.py"}


def symbol(name: str = "s0", stack: object = (USER,), kind: str = "create_symbol", **ids: object) -> str:
    told = {"symbol": name, "val": "20", "vr": "[2, int_oo]", "source": "L['x'].size()[0]"}
    return record(kind, {**told, "user_stack": stack}, **ids)


def guard(expr: str = "s0 > 10", stack: object = (USER,), **ids: object) -> str:
    return record("guard_added_fast", {"expr": expr, "user_stack": stack}, **ids)


def symbols(tmp_path: Path, *records: str) -> list[SymbolRow]:
    found = read(tmp_path, START, *records)
    assert not found.problems
    (one,) = found.rows
    return one.symbols


def test_a_guard_belongs_to_each_symbol_that_it_names(tmp_path: Path) -> None:
    expr = "2*s0 > s10 + 3"
    made = symbols(tmp_path, symbol("s0"), symbol("s1"), symbol("s10"), guard(expr), metrics())
    told = (f"/home/model.py:8: {expr}",)
    assert [row.guards for row in made] == [told, (), told]
    assert made[0].guard_code == ("if x.shape[0] > 10:",)


def test_an_attempt_begins_with_no_symbols(tmp_path: Path) -> None:
    again = {"attempt": 1}
    later = symbol("s0", **again), guard("s0 > 6", **again)
    rows = symbols(tmp_path, symbol("s0"), symbol("s1"), guard(), *later)
    assert [(row.symbol, row.guards) for row in rows] == [("s0", ("/home/model.py:8: s0 > 6",))]


@pytest.mark.parametrize("stack", [[], None, [USER, TRACED_AGAIN]])
def test_a_guard_of_no_line_of_the_program_may_be_suppressed(stack: object, tmp_path: Path) -> None:
    (row,) = symbols(tmp_path, symbol(), guard(stack=stack))
    assert row.guards == ()


@pytest.mark.parametrize("stack", [[], None, [USER, TRACED_AGAIN]])
def test_what_is_traced_again_makes_no_further_number(stack: object, tmp_path: Path) -> None:
    unbacked = symbol("u1", stack, "create_unbacked_symbol")
    rows = symbols(tmp_path, symbol("u0", kind="create_unbacked_symbol"), unbacked)
    assert [row.symbol for row in rows] == ["u0"]


@pytest.mark.parametrize(("stack", "place"), [
    ([], (None, None, None)),
    (None, (None, None, None)),
    ([USER, TRACED_AGAIN], ("trace", TRACED_AGAIN["filename"], 9)),
])  # fmt: skip
def test_a_size_of_an_argument_needs_no_line_of_the_program(
    stack: object, place: tuple[object, ...], tmp_path: Path
) -> None:
    (row,) = symbols(tmp_path, symbol(stack=stack))
    assert (row.symbol, row.function, row.file, row.line) == ("s0", *place)


def test_the_line_is_of_the_program_not_of_the_modules_that_it_calls(tmp_path: Path) -> None:
    for stack, (file, line) in (
        ([USER, LINEAR], ("/home/model.py", 8)),
        ([LINEAR], (LINEAR["filename"], 134)),
    ):
        (row,) = symbols(tmp_path, symbol(stack=stack), guard(stack=stack))
        assert (row.function, row.file, row.line) == ("forward", file, line)
        assert row.guards == (f"{file}:{line}: s0 > 10",)


def test_what_follows_the_end_of_a_compile_is_of_a_later_backward_graph(tmp_path: Path) -> None:
    rows = read(tmp_path, START, symbol(), metrics(), guard(), symbol("s1"), metrics(is_forward=False)).rows
    assert [[(row.symbol, row.guards) for row in one.symbols] for one in rows] == [[("s0", ())], []]


@pytest.mark.parametrize(("stack", "place"), [([USER], "/home/model.py:8"), (None, None)])
def test_a_symbol_that_became_a_value(stack: object, place: str | None, tmp_path: Path) -> None:
    told = {"symbol": "s0", "sources": ["L['x'].size()[0]"], "value": "12", "user_stack": stack}
    s0, s1 = symbols(tmp_path, symbol("s0"), symbol("s1"), record("symbolic_shape_specialization", told))
    assert (s0.specialized, s0.specialized_at) == ("12", place)
    assert (s1.specialized, s1.specialized_at) == (None, None)


@pytest.mark.parametrize("wrong", [
    guard(stack=5), guard(stack=["x"]), guard(stack=[{"line": "x", "name": 5, "filename": []}]),
    record("guard_added_fast", {"expr": 5}), record("guard_added_fast", {"expr": 5, "user_stack": [USER]}),
    record("guard_added_fast", 5), record("create_symbol", {"symbol": 5, "user_stack": [USER]}),
    record("create_symbol", 5), record("symbolic_shape_specialization", {"symbol": 5, "value": 12}),
    record("create_unbacked_symbol", {"symbol": [], "user_stack": {}}), guard(attempt="x"),
])  # fmt: skip
def test_values_of_symbols_that_torch_never_writes_are_problems(wrong: str, tmp_path: Path) -> None:
    found = read(tmp_path, START, symbol(), wrong, metrics())
    assert [row.symbol for row in found.rows[0].symbols] == ["s0"]
    assert found.problems


def test_one_record_of_two_kinds_is_read_as_the_first(tmp_path: Path) -> None:
    both = symbol().replace('{"create_symbol"', '{"guard_added_fast": {"expr": "s0 > 1"}, "create_symbol"')
    assert symbols(tmp_path, both) == []
