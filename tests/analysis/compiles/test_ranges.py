"""Bounds that guards say of symbols, against their values one by one; and symbols that were recorded, against what torch's ShapeEnv knew and the lines of the program."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.analysis.compiles.ranges import Bounds, bounds_of, guarded_bounds, remaining_ranges
from cachescope.frames.compile_rows import SymbolRow
from cachescope.scope import Scope
from tests.conftest import unpacked

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
    (f"s0 > {'9' * 3000}*{'9' * 3000}", {}),
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
        symbol("s0", "[2, int_oo]", "Eq(s0, s1)", "5 < s1"),
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


_DATA = Path(__file__).parents[2] / "data"
RECORDED = sorted((_DATA / "shapes").glob("*.tar.xz"))
PROGRAM = (_DATA / "shape_programs.py").read_text(encoding="utf-8").split("\n")


class Recorded(NamedTuple):
    scope: Scope
    facts: dict[str, dict[str, Any]]

    def of(self, function: str) -> pd.DataFrame:
        """The symbols of one function of the program, without its resumed rest."""
        compiles = self.scope.compiles
        of_function = compiles[compiles["function"] == function]
        (compile_id,) = of_function[of_function["symbols"].map(len) > 0]["compile_id"]
        symbols = self.scope.symbols
        return symbols[symbols["compile_id"] == compile_id]


def of_folder(folder: Path) -> Recorded:
    return Recorded(cachescope.read(folder / "trace"), json.loads((folder / "facts.json").read_text()))


@pytest.fixture(scope="module", params=RECORDED, ids=lambda path: path.name.removesuffix(".tar.xz"))
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return of_folder(unpacked(request.param, tmp_path_factory.mktemp("shapes")))


def bounds(least: str, most: str) -> tuple[float, float]:
    numbers = {"-int_oo": float("-inf"), "int_oo": float("inf")}
    return numbers.get(least) or float(least), numbers.get(most) or float(most)


def check_ranges(recorded: Recorded) -> None:
    """Within torch's own range; every value that torch's guards let pass is in it; and where it is narrower, its end passes."""
    checked = 0
    for row in recorded.scope.symbols.dropna(subset="range_after").itertuples():
        least, most = bounds(*row.range_after[1:-1].split(", "))
        fact = recorded.facts[row.compile_id][row.symbol]
        of_torch = bounds(*fact["range"])
        assert of_torch[0] <= least <= most <= of_torch[1]
        if fact["held"]:
            first, last, _ = fact["held"]
            assert (least <= max(first, of_torch[0])) and (most >= last or most == of_torch[1])
            assert least in (of_torch[0], first)
            assert most in (of_torch[1], last)
        checked += 1
    assert checked > 15


def check_sources(recorded: Recorded) -> None:
    """Every symbol that Dynamo made, and no other: those of AOTAutograd, u1 and u2, are about the same number."""
    names = {(compile_id, name) for compile_id, facts in recorded.facts.items() for name in facts}
    symbols = recorded.scope.symbols
    own = set(zip(symbols["compile_id"], symbols["symbol"], strict=True))
    assert len(own) == len(symbols)
    assert {name for _, name in names - own} == {"u1", "u2"}
    assert own <= names
    for row in symbols.dropna(subset="source").itertuples():
        if not row.symbol.startswith("z"):
            assert row.source == recorded.facts[row.compile_id][row.symbol]["sources"][0]


CHECKS = (check_ranges, check_sources)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_symbols_are_what_torch_says(check: Any, recorded: Recorded) -> None:
    check(recorded)


@pytest.mark.slow
@pytest.mark.parametrize(("function", "ranges", "lines"), [
    ("bounded", ["[11, 4096]"], ["if x.shape[0] > 10 and"] * 2),
    ("two_inputs", ["[2, int_oo]", "[2, int_oo]"], ["if x.shape[0] * 2 >"]),
    ("equal_inputs", ["[11, int_oo]", "[11, int_oo]"], ["z = x + y", "if z.shape[0] > 10"]),
    ("shared", ["[5, int_oo]"], ["if x.shape[0] > 4"]),
    ("remainder", ["[2, int_oo]"], ["if x.shape[0] % 8"]),
    ("scaled", ["[5, int_oo]"], ["if 2 * x.shape[0]"]),
    ("expression", ["[2, 20]"], ["if z.shape[0] <= 40"]),
    ("unequal", ["[2, int_oo]"], ["if x.shape[0] != 7"]),
    ("fixed", ["[12, 12]"], ["if x.shape[0] == 12"]),
    ("from_data", ["[2, 50]"], ["torch._check(n >= 2)", "torch._check(n <= 50)"]),
    ("restarted", ["[4, int_oo]"], ["if x.shape[0] > 3"]),
    ("called", ["[2, 100]"], ["if is_large(x)"]),
    ("forward", ["[5, int_oo]"], ["if y.shape[0] >= 5"]),
    ("trained", ["[4, 32]"], []),
])  # fmt: skip
def test_each_guard_has_the_line_that_added_it(
    function: str, ranges: list[str], lines: list[str], recorded: Recorded
) -> None:
    rows = recorded.of(function)
    assert rows["range_after"].tolist() == ranges
    wanted = [next(at for at, line in enumerate(PROGRAM, 1) if text in line) for text in lines]
    found = {
        (int(match[1]), code, match[2])
        for row in rows.itertuples()
        for text, code in zip(row.guards, row.guard_code, strict=True)
        if (match := re.fullmatch(r".*/shape_programs\.py:(\d+): (.*)", text))
    }
    assert sorted(line for line, _, _ in found) == sorted(wanted)
    # torch 2.6 does not write the text of lines.
    printed = [PROGRAM[line - 1].strip() for line, _, _ in found]
    assert [code for _, code, _ in found] in ([""] * len(found), printed)


def test_a_symbol_that_became_one_value_says_where(recorded: Recorded) -> None:
    symbols = recorded.scope.symbols
    fixed = symbols[symbols["specialized"].notna()]
    (line,) = (at for at, text in enumerate(PROGRAM, 1) if "if x.shape[0] == 12" in text)
    assert fixed["specialized"].tolist() == ["12"]
    (file,) = recorded.scope.compiles["file"].dropna().drop_duplicates()
    assert fixed["specialized_at"].tolist() == [f"{file}:{line}"]


@pytest.mark.torch
def test_symbols_of_a_process_that_runs_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(_DATA)
    from record_kind import shapes

    recorded = of_folder(shapes(tmp_path))
    for check in CHECKS:
        check(recorded)
