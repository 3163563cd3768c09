"""The JSON in logs: parsed in one place, with each value checked for type and range.

A log may contain anything: numbers of any size, half a character, an object instead of a
text. Users of this module need not expect that: values returned here fit a column, and the others are reported.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeGuard, TypeVar

from cachescope.checked_json import called
from cachescope.json_types import JsonObject

MOST_OF_A_COLUMN: Final = (1 << 63) - 1
MOST_OF_A_COUNT: Final = (1 << 31) - 1
# From 1970 to the end of 2199: times outside are invalid, and a sum of such a time and a duration still fits a column.
MOST_NS: Final = 7_258_118_400 * 10**9
# A hundred days: many such durations can be added up.
MOST_NS_OF_A_DURATION: Final = 1 << 53
_DIGITS_OF_64_BITS: Final = 20
_MOST_OF_A_VERSION: Final = 200

Kind = TypeVar("Kind")


def _none(data: bytes | bytearray | memoryview) -> Any:
    raise ValueError("no other parser is there")


strict_json: Callable[[bytes | bytearray | memoryview], Any] = _none
"""Parses nearly all JSON, and raises ValueError of the rest, which `load_json` reads."""
with contextlib.suppress(ImportError):  # in a browser there is none
    from orjson import loads as strict_json


def load_json(data: bytes | bytearray) -> Any:
    r"""Parse JSON as torch writes it with ``json.dumps``, including NaN and half a character.

    Half a character (``\ud800`` alone) becomes an escape, since it cannot be encoded. A whole number beyond 64 bits becomes a
    float, one of hundreds of digits infinity.
    """
    try:
        return strict_json(data)
    except ValueError:
        pass
    try:
        value = json.loads(data, parse_int=_whole)
        return _well_formed(value) if b"\\u" in data or b"\xed" in data else value
    except RecursionError:
        raise ValueError("nested too deep") from None


def _whole(digits: str) -> float:
    number = int(digits) if len(digits) <= _DIGITS_OF_64_BITS else 1 << 64
    return number if -(1 << 63) <= number < 1 << 64 else float(digits)


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [_well_formed(one) for one in value]
    if isinstance(value, dict):
        return {well_formed(name): _well_formed(one) for name, one in value.items()}
    return value


class Record:
    """The values of one JSON object; a value that is missing or of the wrong type reads as None.

    Attributes
    ----------
    values : dict
        The unchecked values.
    wrong : list of str
        The messages about wrong values.
    """

    def __init__(self, values: object, wrong: list[str] | None = None) -> None:
        self.wrong = [] if wrong is None else wrong
        if isinstance(values, dict):
            self.values: JsonObject = values
        else:
            self.values = {}
            self.wrong.append(f"{called(values)} where an object belongs")

    def text(self, name: str) -> str | None:
        """A text."""
        return self._of(str, name, "a text")

    def texts(self, name: str) -> list[str] | None:
        """A list of texts."""
        return self._of(
            list, name, "a list of texts", lambda value: all(isinstance(one, str) for one in value)
        )

    def version(self, name: str) -> str | None:
        """A text that may be a version: short and not empty."""
        value = self.text(name)
        if value is None or 0 < len(value) <= _MOST_OF_A_VERSION:
            return value
        self._say(name, value, "a version")
        return None

    def flag(self, name: str) -> bool | None:
        """True or false."""
        return self._of(bool, name, "true or false")

    def whole(self, name: str, least: int = 0, most: int = MOST_OF_A_COUNT) -> int | None:
        """A whole number from `least` to `most`, both included."""
        return self._of(
            int, name, f"a whole number from {least} to {most}", lambda value: least <= value <= most
        )

    def moment_ns(self, name: str) -> int | None:
        """Nanoseconds since the epoch."""
        return self.whole(name, 0, MOST_NS)

    def moment_of_us(self, name: str) -> int | None:
        """Nanoseconds since the epoch, from microseconds that may have a fraction."""
        value: Any = self.values.get(name)
        if value is None or (type(value) in (int, float) and 0 <= value <= MOST_NS // 1000):
            return None if value is None else round(value * 1000)
        self._say(name, value, "microseconds since the epoch")
        return None

    def duration_ns(self, name: str, unit_ns: int = 1) -> int | None:
        """A duration in nanoseconds, from a number of units; it may be negative if a clock was set back."""
        value: Any = self.values.get(name)
        if value is None:
            return None
        is_number = type(value) is int or (unit_ns > 1 and type(value) is float and math.isfinite(value))
        if is_number and abs(value) <= MOST_NS_OF_A_DURATION // unit_ns:
            return value * unit_ns if type(value) is int else round(value * unit_ns)
        self._say(name, value, "a duration")
        return None

    def record(self, name: str) -> Record | None:
        """A nested object, which adds its messages to the same list."""
        value = self.values.get(name)
        return None if value is None else Record(value, self.wrong)

    def objects(self, name: str) -> list[JsonObject]:
        """A list of objects; empty if it is missing."""
        return [Record(one, self.wrong).values for one in self._of(list, name, "a list of objects") or ()]

    def _of(
        self, kind: type[Kind], name: str, wanted: str, fits: Callable[[Kind], bool] = lambda value: True
    ) -> Kind | None:
        """A value of one type."""
        value = self.values.get(name)
        if value is None or (type(value) is kind and fits(value)):
            return value
        self._say(name, value, wanted)
        return None

    def _say(self, name: str, value: object, wanted: str) -> None:
        self.wrong.append(f"{name} is {called(value)}, not {wanted}")


def moment_ns(text: str | None) -> int | None:
    """The time of a snapshot in nanoseconds since the epoch; None if it is no time, or outside the years 1970 to 2199."""
    try:
        moment = datetime.fromisoformat(text or "")
        # Whole microseconds: a float would lose some of them.
        since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.fromtimestamp(0, UTC)
    except (ValueError, OverflowError):
        return None
    found = ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000
    return found if 0 <= found <= MOST_NS else None


def well_formed(text: str) -> str:
    """A text that can be encoded: half a surrogate pair, which JSON may contain, becomes an escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def are_texts(value: object) -> TypeGuard[dict[str, str]]:
    """Whether a value is an object of texts."""
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
