"""The classes of rows: what their fields declare, the frames made of them, and values of the types they say."""

from dataclasses import fields
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pandas as pd
import pytest

import cachescope
import cachescope.frames
from cachescope.columns import frame_of, rows_of
from cachescope.frames.described import FRAMES
from cachescope.rows import (
    FLAG,
    REAL,
    TEXT,
    TIME,
    TUPLE,
    WHOLE,
    Column,
    Time,
    col,
    columns_of,
    frame_name,
    grain,
    row,
    same_as,
)

SAMPLES = ("tour", "whole_directory", "isolation_context", "entry_truncated", "triton_kernels", "four_ranks")


@row("things")
class Thing:
    """One thing, of which there
    may be many.

    It is made by hand.
    """

    number: int = col("its number")
    made_time: Time | None = col("when it was made", unit="UTC", missing="not recorded", torch_name="t")
    name: str = col("what it is called", default="none")
    is_new: bool | None = col("whether it is new", missing="not known", default=None)
    share: float | None = col("its share", missing="not known", default=None)
    texts: tuple[str, ...] = col("its texts", default=())
    numbers: tuple[int, ...] = col("its numbers", default=())
    note: str | None = None


@row("others")
class Other:
    name: str = same_as(Thing, "name")


def test_the_fields_of_a_row_declare_the_columns_of_its_frame() -> None:
    assert (frame_name(Thing), grain(Thing)) == ("things", "one thing, of which there may be many")
    assert columns_of(Thing) == (
        Column("number", WHOLE, "its number"),
        Column("made_time", TIME, "when it was made", "UTC", "not recorded", "t"),
        Column("name", TEXT, "what it is called"),
        Column("is_new", FLAG, "whether it is new", missing="not known"),
        Column("share", REAL, "its share", missing="not known"),
        Column("texts", TUPLE, "its texts"),
        Column("numbers", TUPLE, "its numbers", is_of_numbers=True),
    )
    assert columns_of(Other) == (Column("name", TEXT, "what it is called"),)


def test_a_frame_has_the_columns_of_its_rows_and_their_types() -> None:
    frame = frame_of([Thing(1, 10**18 + 1, numbers=(1, 2)), Thing(2, None, "b", True, 0.5, ("x",))], Thing)
    wanted = {
        "number": pd.array([1, 2], "Int64"),
        "made_time": pd.to_datetime([10**18 + 1, None], unit="ns", utc=True),
        "name": pd.Series(["none", "b"], dtype=frame["name"].dtype),
        "is_new": pd.array([None, True], "boolean"),
        "share": pd.array([None, 0.5], "Float64"),
        "texts": [(), ("x",)],
        "numbers": [(1, 2), ()],
    }
    pd.testing.assert_frame_equal(frame, pd.DataFrame(wanted))
    assert pd.api.types.is_string_dtype(frame["name"].dtype)
    assert frame_of([], Thing).dtypes.equals(frame.dtypes)


@pytest.mark.parametrize("name", FRAMES)
def test_exactly_the_columns_that_say_what_is_missing_may_be_missing(name: str) -> None:
    hints = get_type_hints(FRAMES[name])
    for column in columns_of(FRAMES[name]):
        assert (NoneType in get_args(hints[column.name])) == (column.missing != "never"), column.name


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_of_rows_is_the_frame_that_they_were_read_from(name: str) -> None:
    kind = FRAMES[name]
    made = [kind(**values(kind, 1)), kind(**values(kind, 2))]
    frame = frame_of(made, kind)
    assert frame.columns.tolist() == [column.name for column in columns_of(kind)]
    assert rows_of(frame, kind) == made
    pd.testing.assert_frame_equal(frame_of(rows_of(frame, kind), kind), frame)
    assert rows_of(frame_of([], kind), kind) == []


def values(kind: type, number: int) -> dict[str, object]:
    """Made by hand: a value in each column, or none where there may be none in the second row."""
    some = {
        WHOLE: number, TIME: number, TEXT: str(number), FLAG: number == 1, REAL: number / 2, TUPLE: ("a",),
    }  # fmt: skip
    return {
        column.name: None if number == 2 and column.missing != "never" else some[column.dtype]
        for column in columns_of(kind)
    }


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES)
def test_what_was_recorded_is_of_the_types_that_rows_say(sample: str) -> None:
    scope = cachescope.read(cachescope.sample(sample))
    frames = {name: one for name in FRAMES if isinstance(one := getattr(scope, name, None), pd.DataFrame)}
    for name in ("hit_rates", "context_groups", "context_pairs", "sensitivity", "locks"):
        frames[name] = getattr(scope, name)()
    if len(scope.runs):
        frames["predictions"] = cachescope.will_hit(scope, scope)
    assert len(frames) >= 20
    for name, frame in frames.items():
        kind = FRAMES[name]
        hints = get_type_hints(kind)
        for one in rows_of(frame, kind):
            held = {field.name: getattr(one, field.name) for field in fields(kind)}
            wrong = {name: value for name, value in held.items() if not fits(value, hints[name])}
            assert not wrong, name


def fits(value: object, hint: Any) -> bool:
    if value is None:
        return NoneType in get_args(hint)
    if NoneType in get_args(hint):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(isinstance(part, get_args(hint)[0]) for part in value)
    return isinstance(value, hint) or (hint is float and isinstance(value, int))
