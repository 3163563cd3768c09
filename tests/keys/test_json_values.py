"""What a snapshot keeps of values JSON cannot hold, and when a key survives JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.keys.json_values import json_ready, sorted_json

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


def test_keys_that_sort_otherwise_as_text_are_named() -> None:
    assert json_ready({"a": {2: 0, 10: 0}}) == ({"a": {"2": 0, "10": 0}}, ["a"])
    assert json_ready({"a": {2: 0, 3: 0}}) == ({"a": {"2": 0, "3": 0}}, [])


def test_a_callable_is_kept_by_name_and_a_set_in_order() -> None:
    ready, kept_as_text = json_ready({"pass": json.dumps, "names": {"b", "a"}})
    assert ready == {"pass": "json.dumps", "names": "set('a', 'b')"}
    assert kept_as_text == ["pass", "names"]
