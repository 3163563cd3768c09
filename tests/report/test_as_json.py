"""Frames as plain rows, and JSON that every reader takes."""

import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.report.as_json import frame_rows
from cachescope.report.json_text import json_text
from tests.output_gates import acting_in, strict_json


def test_missing_values_are_null_and_times_are_iso() -> None:
    frame = pd.DataFrame({
        "whole": pd.Series([1, None], dtype="Int64"),
        "real": pd.Series([float("nan"), 2.5]),
        "text": pd.Series(["x", None], dtype="str"),
        "time": pd.to_datetime(pd.Series([0, None], dtype="Int64"), unit="ns", utc=True),
        "tuple": pd.Series([("a", None), ()], dtype=object),
        "detail_set": [1, 2],
    })  # fmt: skip
    assert frame_rows(frame) == [
        {"whole": 1, "real": None, "text": "x", "time": "1970-01-01T00:00:00+00:00", "tuple": ["a", None]},
        {"whole": None, "real": 2.5, "text": None, "time": None, "tuple": []},
    ]


def without_halves(text: str) -> str:
    """Half of a surrogate pair is no character, and a parser may refuse it: what would escape it stands for it."""
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=60))
def test_any_text_survives_and_steers_nothing(text: str) -> None:
    for ascii_only in (False, True):
        printed = json_text({"text": text, text: None}, ascii_only=ascii_only)
        assert strict_json(printed) == {"text": without_halves(text), without_halves(text): None}
        assert acting_in(printed) == [] and "\t" not in printed
        assert printed.isascii() or not ascii_only


def test_numbers_within_a_value_are_finite() -> None:
    frame = pd.DataFrame({"value": pd.Series([{"a": [float("nan"), 1.5]}, [float("inf")]], dtype=object)})
    assert strict_json(json_text(frame_rows(frame))) == [{"value": {"a": [None, 1.5]}}, {"value": [None]}]


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_text(float("nan"))
