"""Symbols and guards of a trace: those of the last attempt, with the program's own line; records made by hand."""

from pathlib import Path

import pytest

from cachescope.frames.compile_rows import SymbolRow
from tests.readers.logs.test_compiled_frames import START, metrics, read, record

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
    rows = symbols(
        tmp_path, symbol("s0"), symbol("s1"), guard(), symbol("s0", **again), guard("s0 > 6", **again)
    )
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
def test_values_that_torch_never_writes_are_problems(wrong: str, tmp_path: Path) -> None:
    found = read(tmp_path, START, symbol(), wrong, metrics())
    assert [row.symbol for row in found.rows[0].symbols] == ["s0"]
    assert found.problems


def test_one_record_of_two_kinds_is_read_as_the_first(tmp_path: Path) -> None:
    both = symbol().replace('{"create_symbol"', '{"guard_added_fast": {"expr": "s0 > 1"}, "create_symbol"')
    assert symbols(tmp_path, both) == []
