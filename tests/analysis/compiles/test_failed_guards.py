"""Which sizes guards failed for: nothing is said where the recorded values do not make them fail, or a size is not known."""

from dataclasses import replace

import pytest

from cachescope.analysis.compiles.failed_guards import (
    FailedGuards,
    failed_guards,
    failed_in,
    fails,
    in_words,
    is_one_size,
    only_placeholder,
    placeholders,
)
from cachescope.analysis.compiles.ranges import Bounds
from cachescope.frames.compile_rows import SymbolRow


def symbol(
    name: str, value: str | None, source: str | None = None, after: str | None = None, *guards: str
) -> SymbolRow:
    place = (None, None, None)
    texts = tuple(f"a: b.py:1: {guard}" for guard in guards)
    return SymbolRow(
        0, "0/0", 1, name, value, source, None, *place, None, after, texts, ("",) * len(texts), None, None
    )


X = symbol("s0", "5", "L['x'].size()[0]")
Y = symbol("s1", "20", "L['y'].size()[1]")
TENSOR = "TensorMetadata(dtype=torch.float32, shape=torch.Size([s0, s1]))"


@pytest.mark.parametrize(("source", "words"), [
    ("L['x'].size()[0]", "x.size(0)"),
    ("L['n']", "n"),
    ("L['self'].flag", "self.flag"),
    ("L['self']._modules['x'].weight.size()[1]", "self._modules['x'].weight.size(1)"),
    ("G['table'].stride()[0]", "G['table'].stride()[0]"),
])  # fmt: skip
def test_sources_in_the_words_of_the_program(source: str, words: str) -> None:
    assert in_words(source) == words


@pytest.mark.parametrize(("inputs", "symbols", "found"), [
    (["('s0',)", TENSOR, "('s1',)"], [X, Y], {"t0": "s0", "t1": "s1"}),
    # A symbol may be passed twice; floats and numbers from data are no placeholders.
    (["('s0',)", "('zf7',)", "('u0',)", "('s0',)"], [X], {"t0": "s0", "t1": "s0"}),
    (["('s_0',)", TENSOR], [X, symbol("zf1", "2.5", "L['f']")], {"t0": "s0"}),
    (["('s_0',)", "('s_0',)"], [X], {"t0": "s0", "t1": "s0"}),
    # Which number is which symbol is not known, an expression, a value or a source that is not recorded.
    (["('s_0',)", "('s_1',)"], [X, Y], None),
    (["('s_0',)"], [X, Y], None),
    (["('2*s0',)"], [X], None),
    (["('s0',)"], [symbol("s0", None, "L['n']")], None),
    (["('s0',)"], [symbol("s0", "5")], None),
    (["('s0',)"], [], None),
    ([TENSOR], [X], {}),
])  # fmt: skip
def test_what_the_placeholders_of_guards_stand_for(
    inputs: list[str], symbols: list[SymbolRow], found: dict[str, str] | None
) -> None:
    of = placeholders(inputs, symbols)
    assert (None if of is None else {name: row.symbol for name, row in of.items()}) == found


def test_of_one_symbol_every_placeholder_is_that_symbol() -> None:
    guards = ["11 <= L['t0'] and L['t1'] <= 90"]
    assert only_placeholder(guards, [X, symbol("zf1", "2.5", "L['f']")]) == {"t0": X, "t1": X}
    assert only_placeholder(guards, [X, replace(Y, specialized="20")]) == {"t0": X, "t1": X}
    assert only_placeholder(guards, [X, Y]) is None
    assert only_placeholder(guards, [symbol("s0", None, "L['n']")]) is None
    assert only_placeholder(guards, []) is None


OF = {"t0": X, "t1": Y}


@pytest.mark.parametrize(("guards", "sizes", "bounds", "conditions"), [
    (["11 <= L['t0']"], ["s0"], [(11, None)], ["11 <= x.size(0)"]),
    (["2 <= L['t1'] and 11 <= L['t0'] and L['t0'] <= 90"], ["s0"], [(11, 90)], ["11 <= x.size(0)"]),
    # Several entries.
    (["11 <= L['t0'] and L['t0'] <= 20", "31 <= L['t0']"], ["s0"], [(11, 20), (31, None)], None),
    (["11 <= L['t0']", "L['t1'] <= 6"], ["s0", "s1"], [], None),
    # Bounds alone do not say what the entry needs.
    (["11 <= L['t0'] and L['t0'] % 8 == 0"], ["s0"], [], ["11 <= x.size(0) and x.size(0) % 8 == 0"]),
    (["L['t0'] > L['t1']"], ["s0", "s1"], [], ["x.size(0) > y.size(1)"]),
])  # fmt: skip
def test_what_guards_fail_for(
    guards: list[str], sizes: list[str], bounds: list[tuple[int, int | None]], conditions: list[str] | None
) -> None:
    found = failed_guards(guards, OF)
    assert found is not None
    assert [row.symbol for row, _ in found.sizes] == sizes
    assert list(found.bounds) == [Bounds(*one) for one in bounds]
    assert conditions is None or list(found.conditions) == conditions


@pytest.mark.parametrize("guards", [
    [],
    # One of the entries would have hit: something else is true.
    ["11 <= L['t0']", "2 <= L['t0']"], ["L['t0'] <= 10"], ["11 <= L['t7']"],
    ["11 <= L['t0'] and L['t7'] > 2"], ["__import__('os')"], ["11 <="],
    ["11 <= L['t0']" + " + 0" * 20_000], ["not " * 300 + "L['t0']"], ["1 > 2"],
])  # fmt: skip
def test_where_guards_are_not_known_to_fail_nothing_is_said(guards: list[str]) -> None:
    assert failed_guards(guards, OF) is None


@pytest.mark.parametrize(("expr", "is_failed"), [
    ("s0 > 10", True), ("Eq(s0, 5)", False), ("Ne(s0, 5)", True), ("Eq(Mod(s0, 2), 0)", True),
    ("Eq(PythonMod(s0, 2), 1)", False), ("FloorDiv(s0, 2) >= 3", True), ("s0 > s1", True),
    # Not known, so not said to fail.
    ("s0 > s9", False), ("Max(s0, 2) > 90", False), ("open('x') > 3", False), ("s0 >", False),
    ("s0 > 10" + " + 0" * 20_000, False),
])  # fmt: skip
def test_a_guard_fails_only_where_it_is_known_to(expr: str, is_failed: bool) -> None:
    assert fails(expr, {"s0": 5, "s1": 20}) is is_failed


def test_guards_of_the_compiles_that_stored() -> None:
    stored = symbol("s0", "20", "L['x'].size()[0]", "[11, 4096]", "s0 > 10", "s0 < 4097")
    found = failed_in([[stored]], [X])
    assert found == FailedGuards(((X, 5),), (Bounds(11, 4096),), ("x.size(0) > 10",), 1)
    remainder = symbol("s0", "16", "L['x'].size()[0]", "[2, int_oo]", "Eq(Mod(s0, 8), 0)")
    found = failed_in([[remainder]], [X])
    assert found == FailedGuards(((X, 5),), (), ("x.size(0) % 8 == 0",), 1)
    # Of several sizes no bound is told: it would be read as that of one of them.
    wide = symbol("s1", "4", "L['y'].size()[1]", "[2, 6]", "s1 < 7")
    found = failed_in([[stored], [wide]], [X, Y])
    assert found == FailedGuards(((X, 5), (Y, 20)), (), ("x.size(0) > 10", "y.size(1) < 7"), 2)
    # Nor of one size whose bounds in one of the entries are not known.
    found = failed_in([[stored], [replace(stored, range_after=None)]], [X])
    assert found == FailedGuards(((X, 5),), (), ("x.size(0) > 10",), 2)
    other = symbol("s0", "20", "L['z'].size()[0]", "[11, int_oo]", "s0 > 10")
    unguarded = symbol("s0", "20", "L['x'].size()[0]", "[2, int_oo]")
    for compiles in ([], [[]], [[other]], [[unguarded]], [[stored], [unguarded]]):
        assert failed_in(compiles, [X]) is None
    assert failed_in([[stored]], [symbol("s0", None, "L['x'].size()[0]")]) is None
    assert failed_in([[stored]], []) is None


@pytest.mark.parametrize(("source", "inputs", "is_one"), [
    ("L['x'].size()[0]", ["('s0',)", "TensorMetadata(shape=torch.Size([s0, 16]), stride=(16, 1))"], True),
    # A symbol that is another size as well cannot be padded alone; of a number nothing is padded; nothing is known.
    ("L['x'].size()[0]", ["TensorMetadata(shape=torch.Size([s0, s0]), stride=(s0, 1))"], False),
    ("L['x'].size()[0]", ["T(shape=torch.Size([s0]))", "T(shape=torch.Size([4, 2*s0]))"], False),
    ("L['x'].size()[0]", ["T(shape=torch.Size([s10]))", "T(shape=torch.Size([s0]))"], True),
    ("L['n']", ["T(shape=torch.Size([s0]))"], False),
    ("L['x'].size()[0]", [], False),
])  # fmt: skip
def test_only_a_size_of_its_own_can_be_padded(source: str, inputs: list[str], is_one: bool) -> None:
    assert is_one_size(symbol("s0", "5", source), inputs) is is_one
