"""Values of pickles as text: as Python prints them, cut where they are long or deep."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import pytest

from cachescope.readers.directory.value_text import value_text
from cachescope.readers.pickles.hostile_pickles import loads_harmless


@pytest.mark.parametrize("value", [1, "a", None, 2.5, True, [1, 2], (1,), {"a": [1]}, {1, 2}, b"x", ""])
def test_short_values_are_as_python_prints_them(value: object) -> None:
    assert value_text(value) == repr(value)


def test_long_values_are_cut() -> None:
    assert value_text(list(range(60))) == f"[{', '.join(map(str, range(50)))}, ...]"
    assert len(value_text("x" * 5_000)) < 250
    long = value_text(["y" * 150] * 50)
    assert len(long) == 2_000 and long.endswith("…")
    edge = value_text(["y" * 150] * 12)
    assert len(edge) < 2_000 and edge.endswith("]")
    assert value_text(10**5_000) == "(int)"


def held(value: Any) -> object:
    """A pickled object as the reader holds it: its class, and what it is made from."""
    return loads_harmless(pickle.dumps(value))


def test_objects_are_their_class_and_what_they_hold() -> None:
    assert value_text([held(Fraction(7, 3))]) == "[Fraction(7, 3)]"


def nested(depth: int) -> object:
    value: object = held(Fraction(1, 3))
    for _ in range(depth):
        outer: Any = held(Fraction(1, 3))
        outer.args = (value,)
        value = outer
    return value


def test_objects_in_objects_are_told_to_a_depth() -> None:
    shallow, deep = value_text(nested(5)), value_text(nested(40))
    assert shallow.count("Fraction(") == 6
    assert shallow.count("(...)") == 0
    assert 6 < deep.count("Fraction(") < 12
    assert deep.count("(...)") == 1
