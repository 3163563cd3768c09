"""Values that changed, from reasons to compile again: only those of the symbol itself."""

import pytest

from cachescope.analysis.compiles.frames import value_before

SIZE = "tensor 'x' size mismatch at index 1. expected 3, actual 5"


@pytest.mark.parametrize(("source", "value", "reasons", "before"), [
    ("L['x'].size()[1]", "5", [f"0/0: {SIZE}"], "3"),
    ("L['x'].size()[1]", "5", [f"0/0: {SIZE} # return x # a.py:3 in f"], "3"),
    ("L['self']._modules['x'].weight.size()[0]", "5",
     ["2/0: tensor 'self._modules['x'].weight' size mismatch at index 0. expected 4, actual 5"], "4"),
    ("L['f']", "2.5", ["0/0: L['f'] == 1.5"], "1.5"),
    ("L['n']", "-3", ["0/1: len(layers) == 2", "0/0: n == -2 # return x * n"], "-2"),
    ("L['self'].flag", "2", ["0/0: self.flag == 1 # return (HINT: an attribute)"], "1"),
    # Another size, another input, the same number by chance, or nothing of it.
    ("L['x'].size()[0]", "5", [f"0/0: {SIZE}"], None),
    ("L['y'].size()[1]", "5", [f"0/0: {SIZE}"], None),
    ("L['x'].size()[1]", "6", [f"0/0: {SIZE}"], None),
    ("L['n']", "2", ["0/0: n == 2"], None),
    ("L['n']", "2", ["0/0: m.n == 3"], None),
    ("L['n']", "2", ["0/0: text == '3'", "GLOBAL_STATE changed: grad_mode", ""], None),
    (None, "2", ["0/0: n == 3"], None),
    ("L['n']", None, ["0/0: n == 3"], None),
    ("L['n']", "2", [], None),
])  # fmt: skip
def test_value_before(source: str | None, value: str | None, reasons: list[str], before: str | None) -> None:
    assert value_before(source, value, reasons) == before
