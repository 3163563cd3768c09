"""Bounds that guards say of symbols, against their values one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.analysis.compiles.ranges import Bounds, bounds_of, guarded_bounds, remaining_ranges
from cachescope.frames.compile_rows import SymbolRow

VALUES = range(-300, 300)


def within(value: int, bounds: Bounds) -> bool:
    return (bounds.least is None or bounds.least <= value) and (bounds.most is None or value <= bounds.most)


@given(
    st.sampled_from(["<", "<=", ">", ">="]), st.integers(-5, 5), st.integers(-40, 40), st.integers(-5, 5),
    st.integers(-40, 40),
)  # fmt: skip
def test_bounds_hold_exactly_where_the_guard_does(operator: str, a: int, b: int, c: int, d: int) -> None:
    expr = f"{a}*s0 + {b} {operator} {c}*s0 + {d}"
    found = guarded_bounds(expr)
    assert (found == {}) == (a == c)
    for value in VALUES if found else ():
        assert eval(expr, {"s0": value}) == within(value, found["s0"])


@pytest.mark.parametrize(("expr", "found"), [
    ("s0 > 10", {"s0": Bounds(11, None)}),
    ("10 > s0", {"s0": Bounds(None, 9)}),
    ("2*s0 >= 8", {"s0": Bounds(4, None)}),
    ("s0*2 >= 8", {"s0": Bounds(4, None)}),
    ("2*3*s0 >= 8", {"s0": Bounds(2, None)}),
    ("Eq(s0, 12)", {"s0": Bounds(12, 12)}),
    ("Eq(2*s0, 13)", {"s0": Bounds(7, 6)}),
    ("2 <= s0 <= 9", {"s0": Bounds(2, 9)}),
    ("(s0 > 3) & (s1 <= 5)", {"s0": Bounds(4, None), "s1": Bounds(None, 5)}),
    ("And(s0 > 3, s0 < 5)", {"s0": Bounds(4, 4)}),
    ("-s0 < -4", {"s0": Bounds(5, None)}),
    # Nothing certain is said of one symbol, or these are no guards.
    ("s0 > s1", {}),
    ("s0*s1 > 4", {}),
    ("s0*s0 > 4", {}),
    ("Ne(s0, 4)", {}),
    ("Eq(Mod(s0, 8), 0)", {}),
    ("(s0 > 3) | (s0 < 2)", {}),
    ("Not(s0 > 3)", {}),
    ("s0//2 > 4", {}),
    ("s0 > 2.5", {}),
    ("s0 > True", {}),
    ("4 > 3", {}),
    ("s0 >", {}),
    ("", {}),
    ("(" * 5000 + "s0" + ")" * 5000, {}),
    ("-" * 3000 + "s0 > 1", {}),
])  # fmt: skip
def test_what_a_guard_says(expr: str, found: dict[str, Bounds]) -> None:
    assert guarded_bounds(expr) == found


@pytest.mark.parametrize(
    "text", [None, "", "[2, oo]", "[-oo, oo]", "[2]", "[2, 3", "[a, b]", "[2, " + "9" * 50 + "]"]
)
def test_a_range_that_is_none(text: str | None) -> None:
    assert bounds_of(text) is None


def symbol(name: str, range_: str | None, *guards: str, value: str | None = None) -> SymbolRow:
    told = tuple(f"model.py:8: {guard}" for guard in guards)
    return SymbolRow(symbol=name, range=range_, guards=told, specialized=value)


def test_equal_symbols_have_one_range() -> None:
    rows = [
        symbol("s0", "[2, int_oo]", "Eq(s0, s1)", "s0 > 5"),
        symbol("s1", "[3, 90]", "Eq(s0, s1)", "Eq(s2, s1)"),
        symbol("s2", "[2, int_oo]", "Eq(s2, s1)", "s2 <= 40"),
        symbol("s3", "[2, int_oo]", "s3 > s0"),
        symbol("s4", "[2, int_oo]", value="7"),
        symbol("s5", None, "s5 > 2"),
        symbol("zf6", "[-oo, oo]", "zf6 > 2"),
        # Its range is not recorded, the value that it was fixed to is.
        symbol("s7", None, value="7"),
        symbol("s8", "[2, int_oo]", value="2*s0"),
    ]
    found = {name: str(bounds) for name, bounds in remaining_ranges(rows).items()}
    assert found == {
        "s0": "[6, 40]", "s1": "[6, 40]", "s2": "[6, 40]", "s3": "[2, int_oo]", "s4": "[7, 7]",
        "s8": "[2, int_oo]",
    }  # fmt: skip


@pytest.mark.parametrize(("bounds", "words"), [
    ((None, None), "any"), ((None, 20), "at most 20"), ((11, None), "11 or more"),
    ((11, 4096), "11 to 4096"), ((12, 12), "12"), ((7, 6), "none"),
])  # fmt: skip
def test_bounds_in_words(bounds: tuple[int | None, int | None], words: str) -> None:
    assert Bounds(*bounds).in_words == words
