"""Rows as plain values, and JSON that every reader takes."""

import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cachescope.readers.json_record import MOST_NS
from cachescope.report.as_json import plain_rows
from cachescope.report.json_text import json_text
from cachescope.rows import Time, col, row
from tests.hostile_texts import TEXTS
from tests.output_gates import acting_in, strict_json


@row("kinds")
class Kinds:
    """One value of each kind of column."""

    whole: int | None = col("")
    real: float | None = col("")
    text: str | None = col("")
    time: Time | None = col("")
    texts: tuple[Any, ...] = col("")
    detail_set: int = col("")


def test_missing_values_are_null_and_times_are_iso() -> None:
    rows = Kinds(1, float("nan"), "x", 0, ("a", None), 1), Kinds(None, 2.5, None, None, (), 2)
    assert plain_rows(rows) == [
        {"whole": 1, "real": None, "text": "x", "time": "1970-01-01T00:00:00+00:00", "texts": ["a", None]},
        {"whole": None, "real": 2.5, "text": None, "time": None, "texts": []},
    ]


@given(st.integers(0, MOST_NS))
@example(1_795_348_800_000_000_000)
@example(1_795_348_800_000_001_000)
@example(1_795_348_800_000_000_001)
def test_a_time_has_the_digits_that_pandas_gives_it(ns: int) -> None:
    (made,) = plain_rows([Kinds(None, None, None, ns, (), 0)])
    assert made["time"] == pd.Timestamp(ns, tz="UTC").isoformat()


def without_halves(text: str) -> str:
    """Half of a surrogate pair is no character, and a parser may refuse it: what would escape it stands for it."""
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)


HOSTILE = st.sampled_from([text for name, text in TEXTS.items() if name != "long"])


@given(st.text(max_size=60) | st.lists(HOSTILE, max_size=9).map("".join))
def test_any_text_survives_and_steers_nothing(text: str) -> None:
    for ascii_only in (False, True):
        printed = json_text({"text": text, text: None}, ascii_only=ascii_only)
        assert strict_json(printed) == {"text": without_halves(text), without_halves(text): None}
        assert acting_in(printed) == [] and "\t" not in printed
        assert printed.isascii() or not ascii_only


def test_numbers_within_a_value_are_finite() -> None:
    rows = [Kinds(None, None, None, None, ({"a": [float("nan"), 1.5]}, float("inf")), 0)]
    (made,) = strict_json(json_text(plain_rows(rows)))
    assert made["texts"] == [{"a": [None, 1.5]}, None]


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_text(float("nan"))
