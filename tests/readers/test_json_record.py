"""Values of JSON objects: what is asked for and is there, and what is said of the rest."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cachescope.readers import json_record
from cachescope.readers.json_record import MOST_NS, MOST_NS_OF_A_DURATION, MOST_OF_A_COUNT, Record, load_json

MOST_US = MOST_NS // 1000


def asked(method: str, value: object, *more: object) -> tuple[object, list[str]]:
    """What a record gives for a value, and what it says is wrong."""
    record = Record({"x": value})
    found = getattr(record, method)("x", *more)
    if isinstance(found, Record):
        found = found.values
    return found, record.wrong


@pytest.mark.parametrize(("method", "value", "more", "wanted"), [
    (method, value, more, wanted) for method, more, pairs in [
    ("text", (), [("a", "a"), ("", "")]),
    ("texts", (), [(["a", "b"], ["a", "b"]), ([], [])]),
    ("version", (), [("2.13.0", "2.13.0")]),
    ("flag", (), [(True, True), (False, False)]),
    ("whole", (), [(0, 0), (7, 7)]),
    # Bounds may be asked for.
    ("whole", (3, 5), [(3, 3), (5, 5)]),
    ("moment_ns", (), [(0, 0), (MOST_NS, MOST_NS)]),
    # Other units are made nanoseconds.
    ("moment_of_us", (), [(0, 0), (5, 5_000), (1.5, 1_500), (MOST_US, MOST_US * 1_000)]),
    ("duration_ns", (), [(-5, -5), (-MOST_NS_OF_A_DURATION, -MOST_NS_OF_A_DURATION)]),
    ("duration_ns", (1,), [(3, 3)]),
    # They are rounded, and whole ones are exact.
    ("duration_ns", (1_000,), [(3, 3_000), (1.5, 1_500), (0.0004, 0), (0.0006, 1)]),
    ("duration_ns", (10**9,), [(-2, -2 * 10**9)]),
    ("duration_ns", (10**6,), [(0, 0)]),
    ("duration_ns", (2,), [(2.0, 4)]),
    ("record", (), [({"a": 1}, {"a": 1})]),
] for value, wanted in pairs])  # fmt: skip
def test_what_is_as_it_should_be_is_given(
    method: str, value: object, more: tuple[int, ...], wanted: object
) -> None:
    assert asked(method, value, *more) == (wanted, [])


@pytest.mark.parametrize(
    "method",
    ["text", "texts", "version", "flag", "whole", "moment_ns", "moment_of_us", "duration_ns", "record"],
)
def test_what_is_not_there_is_none_and_nothing_is_wrong(method: str) -> None:
    assert asked(method, None) == (None, [])
    record = Record({})
    assert getattr(record, method)("x") is None
    assert record.wrong == []


@pytest.mark.parametrize(("method", "value", "wanted"), [(method, value, wanted) for method, wanted, values in [
    ("text", "a text", [7, ["a"]]),
    ("texts", "a list of texts", ["ab", ["a", 7], {"a": 1}]),
    ("version", "a version", ["", "1" * 5_000]),
    ("version", "a text", [7]),
    ("flag", "true or false", [1, "true"]),
    ("whole", "a whole number from 0 to ", [-1, 1.0, True, "7"]),
    ("moment_ns", f"a whole number from 0 to {MOST_NS}", [MOST_NS + 1, -1]),
    ("moment_of_us", "microseconds since the epoch", [-1, MOST_US + 1, "5", True, math.inf]),
    ("duration_ns", "a duration", [1.5, "5", True, 10**30, -(10**30)]),
] for value in values])  # fmt: skip
def test_what_is_something_else_is_none_and_is_said(method: str, value: object, wanted: str) -> None:
    found, (wrong,) = asked(method, value)
    assert found is None
    assert wrong.startswith("x is ") and f", not {wanted}" in wrong


@pytest.mark.parametrize(("method", "value", "more"), [
    ("whole", 2, (3, 5)),
    ("whole", 6, (3, 5)),
    # Only of units above nanoseconds a part can be said.
    ("duration_ns", 2.0, ()),
    *(("duration_ns", value, (1_000,)) for value in (math.inf, -math.inf, math.nan, 1e300)),
])  # fmt: skip
def test_what_is_beyond_its_bounds_is_none(method: str, value: object, more: tuple[int, ...]) -> None:
    assert asked(method, value, *more)[0] is None


@pytest.mark.parametrize("value", [7, "text", ["a"], None, True])
def test_anything_but_an_object_has_no_values(value: object) -> None:
    record = Record(value)
    assert record.values == {}
    (wrong,) = record.wrong
    assert wrong.endswith(" where an object belongs")


def test_an_object_inside_says_what_is_wrong_where_the_outer_one_does() -> None:
    outer = Record({"inner": {"n": "x"}, "other": 7})
    inner = outer.record("inner")
    assert inner is not None and inner.whole("n") is None
    assert outer.record("other") is not None
    assert len(outer.wrong) == 2


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, True]}, [], "é", 2**63, -(2**63), 2**70])
def test_json_is_parsed_as_python_parses_it(value: Any) -> None:
    assert load_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize("data", [b"", b"{", b"[1", b"nul", b"[" * 100_000, b'"\\ud800'])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        load_json(data)


def test_half_a_character_is_made_one_that_can_be_written() -> None:
    found = load_json(b'{"a\\ud800": ["\\udfff", {"b": "\\ud83d\\ude00"}], "n": 5}')
    json.dumps(found).encode()
    for text in ("".join(found), str(found)):
        text.encode()
    assert found["n"] == 5 and "\U0001f600" in str(found)


@pytest.mark.parametrize(("value", "said"), [
    (None, "null"), (True, "true"), (7, "7"), (-1.5, "-1.5"), (10**24 - 1, str(10**24 - 1)),
    (10**24, "a huge number"), (-(10**24), "a huge number"), (1e30, "1e+30"), ("text", "the text 'text'"),
    ("t" * 41, f"the text '{'t' * 40}'"), ([1], "a list"),
])  # fmt: skip
def test_what_stands_there_is_named(value: object, said: str) -> None:
    assert Record(value).wrong == [f"{said} where an object belongs"]
    if value is not None and value is not True:
        assert Record({"x": value}).flag("x") is None
        wrong: list[str] = []
        Record({"x": value}, wrong).flag("x")
        assert wrong == [f"x is {said}, not true or false"]
    assert asked("text", {"a": 1})[1] == ["x is an object, not a text"]


@pytest.mark.parametrize(("method", "asked_for", "most"), [
    ("version", (), "1" * 200),
    ("moment_ns", (), MOST_NS),
    ("duration_ns", (), MOST_NS_OF_A_DURATION),
    ("whole", (), MOST_OF_A_COUNT),
    ("duration_ns", (10**6,), MOST_NS_OF_A_DURATION // 10**6),
])  # fmt: skip
def test_the_most_that_is_taken(method: str, asked_for: tuple[int, ...], most: Any) -> None:
    found, wrong = asked(method, most, *asked_for)
    assert (found, wrong) == (most * (asked_for or (1,))[0], [])
    beyond = most + ("1" if isinstance(most, str) else 1)
    assert asked(method, beyond, *asked_for)[0] is None


@pytest.mark.parametrize(("number", "read"), [
    (2**64 - 1, 2**64 - 1), (-(2**63), -(2**63)), (2**64, float(2**64)),
    (-(2**63) - 1, float(-(2**63) - 1)), (int("9" * 308), 1e308), (int("9" * 309), math.inf),
    (-int("9" * 4_000), -math.inf),
])  # fmt: skip
def test_a_whole_number_is_one_within_64_bits(number: int, read: float) -> None:
    for more in ("", ", NaN"):
        (found, *_) = load_json(f"[{number}{more}]".encode())
        assert found == read and type(found) is type(read)


TOKENS = (
    '{"a": ', '"a"', '"\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', "[", "]", "}", ",", ":", "1", "-0", "1e999", "1.5", "NaN", "Infinity", "null", "true",
    str(2**64), str(-(2**63) - 1), "9" * 400, " ", "\n", "\x00", "é", "\ufeff",
)  # fmt: skip


def outcome(parse: Callable[[bytes], Any], data: bytes) -> str:
    """Of NaN, which differs from itself, its text."""
    try:
        return repr(parse(data))
    except ValueError:
        return "refused"


@given(st.lists(st.sampled_from(TOKENS), max_size=9).map("".join).map(str.encode) | st.binary(max_size=40))
@example(b"[" * 3_000)
@example(b'{"a": ' * 3_000)
@example(b'"\xed\xa0\x80"')
@example(b'"\xff"')
@example(b'\xef\xbb\xbf{"a": 1}')
@example('{"a": 1}'.encode("utf-16"))
@example(b'{"a": 1, "a": 2}')
def test_without_orjson_the_same_is_read(data: bytes) -> None:
    """As in a browser."""
    found = outcome(load_json, data)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_record, "strict_json", json_record._none)
        assert outcome(load_json, data) == found
    found.encode()
