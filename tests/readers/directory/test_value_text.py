"""Values of pickles as text: as Python prints them, cut where they are long or deep."""

import pickle
from fractions import Fraction
from typing import Any

import pytest
from hostile_pickles import Object, entry_bytes

from cachescope.readers.directory.entry_file import value_text
from cachescope.readers.pickles.inert_pickle import loads_harmless, loads_inert


@pytest.mark.parametrize("value", [1, "a", None, 2.5, True, [1, 2], (1,), {"a": [1]}, {1, 2}, b"x", ""])
def test_short_values_are_as_python_prints_them(value: object) -> None:
    assert value_text(value) == repr(value)


def test_long_values_are_cut() -> None:
    assert value_text(list(range(60))) == f"[{', '.join(map(str, range(50)))}, ...]"
    for whole, longer in (("x" * 198, "x" * 199), ("x" * 198, "x" * 5_000), (10**199, 10**200)):
        assert value_text(whole) == repr(whole)
        assert len(value_text(longer)) == 200 and "..." in value_text(longer)
    long = value_text(["y" * 150] * 50)
    assert len(long) == 2_000 and long.endswith("…")
    edge = value_text(["y" * 150] * 12)
    assert len(edge) < 2_000 and edge.endswith("]")
    assert value_text(10**5_000) == "(int)" and value_text([10**5_000, 3]) == "[(int), 3]"


def held(value: Any) -> object:
    """A pickled object as the reader holds it: its class, and what it is made from."""
    return loads_harmless(pickle.dumps(value))


def nested(depth: int) -> object:
    value: object = held(Fraction(1, 3))
    for _ in range(depth):
        outer: Any = held(Fraction(1, 3))
        outer.args = (value,)
        value = outer
    return value


@pytest.mark.parametrize(("depth", "cut"), [(0, 0), (7, 0), (8, 1), (9, 1)])
def test_objects_are_told_to_the_eighth_in_another(depth: int, cut: int) -> None:
    text = value_text(nested(depth))
    assert text.count("(...)") == cut
    assert text.startswith("Fraction(" * min(depth + 1, 8))
    assert cut == 0 or "fractions.Fraction(...)" in text


@pytest.mark.parametrize(("depth", "cut"), [(7, 0), (8, 1), (12, 1)])
def test_attributes_are_shown_to_the_same_depth(depth: int, cut: int) -> None:
    inner = Object("m.One", {})
    for _ in range(depth):
        inner = Object("m.One", {"part": inner})
    text = value_text(loads_inert(entry_bytes(inner)))
    assert text.count("(...)") == cut
    assert text.startswith("One(part=" * min(depth, 7) + "One(")


@pytest.mark.parametrize("count", [49, 50, 51])
def test_of_an_object_so_many_parts_are_told(count: int) -> None:
    many: Any = held(Fraction(1, 3))
    many.args = tuple(range(count))
    assert value_text(many) == f"Fraction({', '.join(map(str, range(min(count, 50))))})"
    named = loads_inert(entry_bytes(Object("m.Many", {f"a{n}": n for n in range(count)})))
    assert value_text(named) == f"Many({', '.join(f'a{n}={n}' for n in range(min(count, 50)))})"


@pytest.mark.parametrize("length", [1_999, 2_000, 2_001])
def test_a_text_of_the_most_letters_is_whole(length: int) -> None:
    name = "x" * (length - len("One(=1)"))
    whole = f"One({name}=1)"
    assert len(whole) == length
    found = value_text(loads_inert(entry_bytes(Object("m.One", {name: 1}))))
    assert found == (whole if length <= 2_000 else whole[:1_999] + "…")
