"""Frames as plain rows, and JSON that every reader takes."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.report.as_json import frame_rows, json_text


def test_missing_values_are_null_and_times_are_iso() -> None:
    frame = pd.DataFrame(
        {
            "whole": pd.Series([1, None], dtype="Int64"),
            "real": pd.Series([float("nan"), 2.5]),
            "text": pd.Series(["x", None], dtype="str"),
            "time": pd.to_datetime(pd.Series([0, None], dtype="Int64"), unit="ns", utc=True),
            "tuple": pd.Series([("a", None), ()], dtype=object),
            "detail_set": [1, 2],
        }
    )
    assert frame_rows(frame) == [
        {"whole": 1, "real": None, "text": "x", "time": "1970-01-01T00:00:00+00:00", "tuple": ["a", None]},
        {"whole": None, "real": 2.5, "text": None, "time": None, "tuple": []},
    ]


@given(st.text(alphabet=st.characters(), max_size=60))
def test_any_text_survives_and_steers_nothing(text: str) -> None:
    for ascii_only in (False, True):
        printed = json_text({"text": text}, ascii_only=ascii_only)
        assert json.loads(printed) == {"text": text}
        assert not any(ord(c) < 32 and c != "\n" for c in printed)
        assert not any(c in printed for c in "\x7f\x9b\u2028\u202e\u2066")
        printed.encode("utf-8")


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_text(float("nan"))
