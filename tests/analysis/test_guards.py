"""Guards are decided as torch decides them, and nothing else is evaluated."""

import contextlib
import importlib
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cachescope
from cachescope.analysis.guards import GuardError, guard_symbols, holds
from tests.conftest import Recording

SIZES = st.lists(st.integers(0, 5000), min_size=3, max_size=3)


def terms(depth: int = 3) -> st.SearchStrategy[str]:
    leaf = st.one_of(st.sampled_from(["L['t0']", "L['t1']", "L['t2']"]), st.integers(0, 4096).map(str))
    if depth == 0:
        return leaf
    inner = terms(depth - 1)
    return st.one_of(
        leaf,
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
            lambda t: f"({' '.join(t)})"
        ),
        st.tuples(st.sampled_from(["max", "min"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        inner.map(lambda t: f"math.floor({t} / 2)"),
        inner.map(lambda t: f"(-{t})"),
    )


CONDITIONS = st.tuples(terms(), st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), terms()).map(" ".join)
EXPRESSIONS = st.one_of(
    CONDITIONS,
    st.lists(CONDITIONS, min_size=2, max_size=3).map(" and ".join),
    st.lists(CONDITIONS, min_size=2, max_size=3).map(lambda c: f"not ({' or '.join(c)})"),
)


@pytest.fixture(scope="module")
def shape_env(cache_root: Path) -> object:
    return importlib.import_module("torch.fx.experimental.symbolic_shapes").ShapeEnv()


def holds_as(evaluated: Callable[[], object], expression: str, sizes: list[int]) -> None:
    """It holds where another evaluates it to something true, and cannot be decided where that one divides by zero."""
    try:
        expected = bool(evaluated())
    except ZeroDivisionError:
        with pytest.raises(GuardError):
            holds(expression, sizes)
        return
    assert holds(expression, sizes) is expected


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS, SIZES)
@example("11 <= L['t0'] and L['t0'] <= 4096", [5, 0, 0])
@example("(L['t0'] % 8) == 0", [16, 0, 0])
def test_guards_hold_where_torch_says_so(shape_env: object, expression: str, sizes: list[int]) -> None:
    holds_as(lambda: shape_env.evaluate_guards_expression(expression, sizes), expression, sizes)


@pytest.mark.parametrize("expression", [
    "__import__('os').system('true')", "().__class__.__bases__", "L['t0'].__class__",
    "[x for x in range(9)]", "open('/etc/passwd')", "lambda: 1", "L[0]", "M['t0']", "'a' * 3", "max(*L)",
    "round(1, ndigits=2)", "round(L['t0'], -99999999)", "L['t9'] > 1", "9 ** 9 ** 9", "(" * 5000 + "1" + ")" * 5000,
    "1 +" * 60_000 + " 1", "not a guard (", "\x00", "math.__doc__", "f'{L}'", "L['t0'] << 60", "(x := 1)",
])  # fmt: skip
def test_what_torch_does_not_print_is_refused(expression: str) -> None:
    with pytest.raises(GuardError):
        holds(expression, [4])


@given(st.text(max_size=60))
def test_any_text_is_decided_or_refused(text: str) -> None:
    with contextlib.suppress(GuardError):
        assert holds(text, [4]) in (True, False)


def test_no_guards_hold_always() -> None:
    assert holds(None, [])
    assert holds("", [])
    assert guard_symbols(None) == ()
    assert guard_symbols("L['t1'] > 2 and L['t0'] == L['t1']") == ("t0", "t1")


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0", "2.15.0"])
def test_the_entry_that_torch_used_is_the_one_whose_guards_hold(version: str, recording: Recording) -> None:
    # The recording looked up batch 20 (made), 5 (its guard fails, made), 30 (hit), 7 (hit).
    guards = cachescope.read(recording(version, "dynamic_guards") / "cache").guards
    assert guards["cache"].value_counts().to_dict() == {"fxgraph": 2, "aotautograd": 2}
    for _, candidates in guards.groupby("cache_key"):
        assert list(candidates["symbols"]) == [("t0",), ("t0",)]
        made_for_20, made_for_5 = candidates.sort_values("modified_time")["guards_expr"]
        for size, is_first in ((20, True), (5, False), (30, True), (7, False)):
            assert (holds(made_for_20, [size]), holds(made_for_5, [size])) == (is_first, not is_first)


@settings(max_examples=60, deadline=None)
@given(EXPRESSIONS, SIZES)
def test_guards_hold_where_python_says_so(expression: str, sizes: list[int]) -> None:
    """Python's own rules, for expressions made here; torch says so as well, where it is installed."""
    known = {"L": {f"t{n}": size for n, size in enumerate(sizes)}, "math": math, "max": max, "min": min}
    holds_as(lambda: eval(expression, {"__builtins__": {}}, known), expression, sizes)


@pytest.mark.parametrize(("expression", "wanted"), [
    ("L['t0'] == 4", True),
    ("L['t0'] != 4", False),
    ("4 < L['t0']", False),
    ("4 <= L['t0'] <= 4", True),
    ("5 > L['t0'] > 3", True),
    ("4 >= L['t0'] > 4", False),
    ("L['t0'] > 3 or L['t9'] > 1", True),
    ("L['t0'] > 9 and L['t9'] > 1", False),
    ("not L['t0'] > 9", True),
    ("+L['t0'] - 2 * 1 == 2", True),
    ("L['t0'] / 8 == 0.5", True),
    ("L['t0'] // 3 == 1", True),
    ("L['t0'] % 3 == 1", True),
    ("2 ** L['t0'] == 16", True),
    ("1 if L['t0'] > 3 else 0", True),
    ("0 if L['t0'] > 3 else 1", False),
    ("math.inf > L['t0']", True),
    ("torch.sym_float(L['t0']) == 4.0", True),
    ("torch._sym_sqrt(L['t0']) == 2", True),
    ("cast_symbool_to_symint_guardless(L['t0'] > 3) == 1", True),
    ("max(L['t0'], 9) == 9 and min(L['t0'], 9) == 4", True),
    ("abs(-L['t0']) == 4", True),
    ("True", True),
    # The first operand that decides, and what comes behind it is never evaluated.
    ("L['t0'] > 3 and L['t0'] > 9", False),
    ("L['t0'] > 9 and L['t0'] > 3", False),
    ("L['t0'] > 3 and L['t0'] < 9", True),
    ("L['t0'] > 9 or L['t0'] > 3", True),
    ("L['t0'] > 9 or L['t0'] > 8", False),
    ("(L['t0'] and 0) == 0", True),
    ("(0 or L['t0']) == 4", True),
    ("3 < L['t0'] < 5 < 6", True),
    ("3 < L['t0'] < 5 < 5", False),
    ("5 < L['t0'] < L['t9']", False),
    ("math.e < math.pi", True),
    ("math.nan == math.nan", False),
    ("float(L['t0']) == 4.0 and int(4.9) == 4 and bool(L['t0'])", True),
    ("round(4.4) == L['t0']", True),
])  # fmt: skip
def test_guards_of_every_form(expression: str, wanted: bool) -> None:
    assert holds(expression, [4]) is wanted
    assert holds(expression, {"t0": 4}) is wanted


@pytest.mark.parametrize(
    ("limit", "most"),
    # "1 + 1 > 1" has nine characters; a comparison, its sign, an addition, its sign, and three numbers.
    [("_MOST_CHARACTERS", 9), ("_MOST_NODES", 7)],
)
def test_an_expression_as_long_as_may_be(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"cachescope.analysis.guards.{limit}", most)
    assert holds("1 + 1 > 1", [])
    monkeypatch.setattr(f"cachescope.analysis.guards.{limit}", most - 1)
    with pytest.raises(GuardError, match=r"too (long|many) to evaluate"):
        holds("1 + 1 > 1", [])


@pytest.mark.parametrize(("expression", "is_within"), [
    # A power is judged by the bits of its base times the exponent, any other number by its own.
    ("2 ** 2048 > 1", True), ("2 ** 2049 > 1", False), ("(-2) ** 2048 > 1", True),
    ("(-2) ** 2049 < 1", False), ("2 ** 2047 * 2 ** 2048 > 1", True),
    ("2 ** 2048 * 2 ** 2048 > 1", False), ("2.0 ** 1000 > 1", True), ("2 ** 900.5 > 1", True),
    ("2 ** -1 == 0.5", True),
])  # fmt: skip
def test_a_number_as_great_as_may_be(expression: str, is_within: bool) -> None:
    if is_within:
        assert holds(expression, [])
    else:
        with pytest.raises(GuardError, match="beyond any size"):
            holds(expression, [])


@pytest.mark.parametrize(("expression", "said"), [
    ("1 @ 1", "not an operator of guards: MatMult"),
    ("1 in L['t0']", "not a comparison of guards: In"),
    ("M['t0'] > 1", "not a size: \"M['t0']\""),
    ("L['t0'][0] > 1", "not a size: \"L['t0'][0]\""),
    ("L['t7'] > 1", "the guards need t7, which was not given"),
    ("eval(1)", "not a guard that torch prints: 'eval(1)'"),
    ("a.b.c.d(1)", "not a guard that torch prints: 'a.b.c.d(1)'"),
    ("1 / 0", "these guards cannot be evaluated: division by zero"),
    ("math.sqrt(-1) > 1", "these guards cannot be evaluated: "),
    ("1 >", "no guard expression: '1 >'"),
    (f"1 > {'(' * 90}", f"no guard expression: '1 > {'(' * 76}'"),
    (f"eval('{'x' * 90}')", "not a guard that torch prints: \"eval('" + "x" * 74 + '"'),
])  # fmt: skip
def test_it_is_said_why_guards_cannot_be_evaluated(expression: str, said: str) -> None:
    with pytest.raises(GuardError) as error:
        holds(expression, [4])
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("expression", "symbols"),
    [("1 > 0", ()), ("L['b'] > L['a'] + L['b']", ("a", "b")), ("L[0] > M['t0']", ()), ("max(L['t1'], 2) > 1", ("t1",))],
)  # fmt: skip
def test_the_sizes_that_guards_name(expression: str, symbols: tuple[str, ...]) -> None:
    assert guard_symbols(expression) == symbols
