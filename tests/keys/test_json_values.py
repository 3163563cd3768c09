"""What a snapshot keeps of values JSON cannot hold, and when a key survives JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.keys.json_values import UnsupportedValueError, json_ready, sorted_json

KEYS = st.text() | st.integers() | st.none() | st.booleans() | st.floats()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner, max_size=4),
)


@pytest.mark.slow
@given(value=VALUES)
def test_nothing_named_means_that_the_hashed_text_survives_json(value: object) -> None:
    ready, kept_as_text = json_ready(value)
    read_back = json.loads(json.dumps(ready))
    if not kept_as_text:
        assert sorted_json(value) == sorted_json(ready) == sorted_json(read_back)


@pytest.mark.slow
@given(value=st.dictionaries(st.text(), VALUES | st.binary() | st.sets(st.integers())))
def test_what_is_kept_can_always_be_written(value: object) -> None:
    ready, _ = json_ready(value)
    assert json.loads(sorted_json(ready)) is not None


class Odd:
    """Neither plain nor named."""

    __module__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<odd>"


def named() -> None: ...


NAMED = f"{named.__module__}.named"


@pytest.mark.parametrize(("value", "ready", "paths"), [
    (None, None, []),
    ("text", "text", []),
    ([1, (2.5, True)], [1, [2.5, True]], []),
    ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 1}]}}, []),
    # Keys as JSON writes them.
    ({1: 0, 2: 0}, {"1": 0, "2": 0}, []),
    ({True: 0}, {"true": 0}, []),
    ({None: 0}, {"null": 0}, []),
    ({1.5: 0}, {"1.5": 0}, []),
    # Keys that sort otherwise once they are text, become one, or cannot be sorted or written at all.
    ({"a": {2: 0, 10: 0}}, {"a": {"2": 0, "10": 0}}, ["a"]),
    ({2: 0, 10: 0}, {"2": 0, "10": 0}, [""]),
    ({"x": {"1": 0, 1: 1}}, {"x": {"1": 1}}, ["x"]),
    ({"x": {(1, 2): 0}}, {"x": {"(1, 2)": 0}}, ["x"]),
    # What is no JSON becomes text, and its path is named.
    (1j, "1j", [""]),
    ({"a": [0, {1j}, 1j]}, {"a": [0, "set(1j)", "1j"]}, ["a[1]", "a[2]"]),
    ([[b"x"]], [["b'x'"]], ["[0][0]"]),
    ({"f": frozenset({"b", "a"})}, {"f": "frozenset('a', 'b')"}, ["f"]),
    ({"f": {frozenset({2, 1})}}, {"f": "set(frozenset(1, 2))"}, ["f"]),
    (named, NAMED, [""]),
    (len, "builtins.len", [""]),
    (Odd(), "<odd>", [""]),
    (Odd, "builtins.Odd", [""]),
])  # fmt: skip
def test_what_json_can_hold_and_what_becomes_text(value: object, ready: object, paths: list[str]) -> None:
    assert json_ready(value) == (ready, paths)


@pytest.mark.parametrize(("value", "text"), [
    ({"b": 1, "a": {"d": 1, "c": 2}}, '{"a": {"c": 2, "d": 1}, "b": 1}'),
    ((1, [2.0, None]), "[1, [2.0, null]]"),
    ("ä", '"\\u00e4"'),
    ({10: 0, 2: 0}, '{"2": 0, "10": 0}'),
])  # fmt: skip
def test_the_text_that_is_hashed(value: object, text: str) -> None:
    assert sorted_json(value) == text


@pytest.mark.parametrize(("value", "path", "said"), [
    ({"a": [1, {1}]}, "a[1]", "a[1] cannot be written as JSON, so torch has no key for it"),
    ({1}, "", "the value cannot be written as JSON, so torch has no key for it"),
    ({"a": {1: 0, "1": 0}}, "a", "a cannot be written as JSON"),
])  # fmt: skip
def test_what_cannot_be_hashed_is_named(value: object, path: str, said: str) -> None:
    with pytest.raises(UnsupportedValueError) as error:
        sorted_json(value)
    assert error.value.path == path
    assert str(error.value).startswith(said)


def test_what_holds_itself_cannot_be_hashed() -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    with pytest.raises(UnsupportedValueError, match="the value cannot be written as JSON"):
        sorted_json(cycle)
