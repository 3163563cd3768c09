"""To which compile a lookup belongs, and how that compile ended: records in, lookups out, made by hand."""

from typing import Any

import pytest

import cachescope
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.json_record import Record
from cachescope.readers.logs import trace_compiles
from cachescope.readers.reading import Compile, Process
from cachescope.terms import AOTAUTOGRAD, FXGRAPH
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
    compiles.end("0/1", 9, "E: why", *trace_compiles.NOWHERE)
    assert compiles.rows[-1].function != "g"


@pytest.mark.parametrize("stack", [None, [], [frame("main"), IN_2_4], [frame("g", 8, 3)], [frame()]])
def test_the_metrics_name_what_no_beginning_names(stack: list[dict[str, Any]] | None) -> None:
    """It is lost, of torch 2.4, or of a file whose name is lost."""
    compiles, lookups = trace_compiles.TraceCompiles(), [fx("0/0"), aot("0/0_1"), fx("0/1")]
    if stack is not None:
        compiles.begin("0/0", 5, stack, [])
    for lookup in lookups:
        compiles.note(lookup, is_over=True)
    compiles.end("0/0", 9, None, "g", "/other.py", 3)
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
            compiles.end(rest[0], 2, rest[1] if len(rest) > 1 else None, *trace_compiles.NOWHERE)
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
    compiles.end("0/0_1", 2, None, *trace_compiles.NOWHERE)
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
    (ID, "1/2"),
    ({**ID, "attempt": 0}, "1/2"),
    ({**ID, "attempt": 3}, "1/2_3"),
    ({"compiled_autograd_id": 4, **ID}, "!4/1/2"),
    ({"compiled_autograd_id": 4}, "!4"),
    ({"compiled_autograd_id": 0}, "!0"),
    ({"frame_id": 0, "frame_compile_id": 0}, "0/0"),
    ({}, None),
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
    ({"fail_type": "E", "fail_reason": "why"}, "E: why"),
    ({"fail_type": "E", "fail_reason": ""}, "E"),
    ({"fail_type": "E", "fail_reason": None}, "E"),
    ({"fail_type": "E"}, "E"),
    ({"fail_type": None, "fail_reason": "why"}, None),
    ({"fail_reason": "why"}, None),
    ({}, None),
])  # fmt: skip
def test_the_error_of_a_compile(metrics: dict[str, Any], wanted: str | None) -> None:
    assert trace_compiles.error_in(Record(metrics)) == wanted
