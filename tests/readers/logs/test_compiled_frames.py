"""Compiles, symbols and guards read from records made by hand, and from traces that were cut, mixed up and changed."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachescope.frames.compile_rows import SymbolRow
from cachescope.readers.logs.compiled_frames import CompiledFrames
from tests.analysis.compiles.test_recorded_compiles import RECORDED, unpacked

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
    guard(stack=5),
    guard(stack=["x"]),
    guard(stack=[{"line": "x", "name": 5, "filename": []}]),
    record("guard_added_fast", {"expr": 5}),
    record("guard_added_fast", {"expr": 5, "user_stack": [USER]}),
    record("guard_added_fast", 5),
    record("create_symbol", {"symbol": 5, "user_stack": [USER]}),
    record("create_symbol", 5),
    record("symbolic_shape_specialization", {"symbol": 5, "value": 12}),
    record("create_unbacked_symbol", {"symbol": [], "user_stack": {}}),
    guard(attempt="x"),
])  # fmt: skip
def test_values_of_symbols_that_torch_never_writes_are_problems(wrong: str, tmp_path: Path) -> None:
    found = read(tmp_path, START, symbol(), wrong, metrics())
    assert [row.symbol for row in found.rows[0].symbols] == ["s0"]
    assert found.problems


def test_one_record_of_two_kinds_is_read_as_the_first(tmp_path: Path) -> None:
    both = symbol().replace('{"create_symbol"', '{"guard_added_fast": {"expr": "s0 > 1"}, "create_symbol"')
    assert symbols(tmp_path, both) == []
