"""Columns of a frame as whole numbers, and what they hold in short: each distinct value is looked at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.answers.chosen import Span
from cachescope.json_types import JsonObject
from cachescope.wording import harmless_cut, percent, plural

SEARCHED: Final = ("cache", "compile_id", "function", "cache_key", "outcome", "verdict", "reason")
"""The columns that a text search covers."""

_PARTS: Final = 5
_FEW: Final = 4
_BINS: Final = 16
_LONGEST: Final = 60

Codes = npt.NDArray[np.intp]


class CodedColumns:
    """The columns of a frame, each made into codes when it is first asked for."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self._codes: dict[str, tuple[npt.NDArray[np.intp], pd.Index[Any]]] = {}
        self._ranks: dict[str, npt.NDArray[np.float64]] = {}

    def passing(self, filters: Mapping[str, object]) -> npt.NDArray[np.bool_]:
        """Which rows have these values; ``text`` is searched for in `SEARCHED`."""
        mask = np.ones(len(self._frame), dtype=bool)
        for name, value in filters.items():
            if name == "text":
                mask &= self._has_text(str(value))
            elif name == "span":
                mask &= within(self._frame["time"], cast(Span, value))
            else:
                mask &= self.equal(name, value)
        return mask

    def equal(self, column: str, value: object) -> npt.NDArray[np.bool_]:
        """Which rows have a value."""
        codes, values = self.codes(column)
        found = np.flatnonzero(np.asarray(values == value))
        if not len(found):
            return np.zeros(len(codes), dtype=bool)
        mask: npt.NDArray[np.bool_] = codes == found[0]
        return mask

    def _has_text(self, text: str) -> npt.NDArray[np.bool_]:
        mask = np.zeros(len(self._frame), dtype=bool)
        for column in SEARCHED:
            codes, values = self.codes(column)
            if not len(values):
                continue
            # Each distinct text once; the last place is for a missing one, whose code is -1.
            has = np.append(contains(pd.Series(values, dtype="str"), text), False)
            mask |= has[codes]
        return mask

    def codes(self, column: str) -> tuple[npt.NDArray[np.intp], pd.Index[Any]]:
        """The code of each row, -1 where it has no value, and the value of each code."""
        if column not in self._codes:
            self._codes[column] = pd.factorize(self._frame[column])
        return self._codes[column]

    def ranks(self, column: str) -> npt.NDArray[np.float64]:
        """The place of each row among the sorted distinct values; NaN for a row without a value."""
        if column not in self._ranks:
            codes = pd.factorize(self._frame[column], sort=True)[0]
            self._ranks[column] = np.where(codes < 0, np.nan, codes)
        return self._ranks[column]


def contains(texts: pd.Series[str], text: str) -> npt.NDArray[np.bool_]:
    """Which texts contain a text, ignoring case."""
    found: npt.NDArray[np.bool_] = texts.str.contains(text, case=False, regex=False).to_numpy(dtype=bool)
    return found


def distinct(codes: Codes) -> JsonObject:
    """How many values there are; of many, too many to draw."""
    return _summary(plural(len(np.unique(codes[codes >= 0])), "value"), "")


def shares(codes: Codes, values: Sequence[Any], colours: Mapping[str, str]) -> JsonObject:
    """The commonest values, the others as one part. A missing value has code -1: its part is left blank."""
    counts = np.bincount(codes[codes >= 0], minlength=len(values))
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    parts: list[list[Any]] = [
        [harmless_cut(str(values[at]), _LONGEST), int(counts[at]), colours.get(str(values[at]), "")]
        for at in order[:_PARTS].tolist()
    ]
    if rest := order[_PARTS:].tolist():
        parts.append([f"{plural(len(rest), 'other value')}", int(counts[rest].sum()), ""])
    named = [f"{name}: {count:,}" for name, count, _ in parts]
    missing = int(np.count_nonzero(codes < 0))
    said = ", ".join([*named, *([f"none: {missing:,}"] if missing else [])])
    text = plural(len(order), "value")
    if parts and len(order) <= _FEW and isinstance(values[order[0]], str):
        # The share first: what is cut is the end.
        text = f"{percent(parts[0][1] / len(codes))} {parts[0][0]}"
    elif parts and isinstance(values[order[0]], int):
        # Shorter than how many there are, in columns that are narrow.
        numbers = sorted(values[at] for at in order.tolist())
        text = _ends(str(numbers[0]), str(numbers[-1]))
    return _summary(text, said, parts=parts, rows=len(codes))


def spread(numbers: npt.NDArray[np.float64], text: Callable[[float], str], *, log: bool) -> JsonObject:
    """How known numbers spread from the smallest to the largest; with `log`, each bar is so many times the last."""
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        return _summary("", "none is known")
    low, high = float(known.min()), float(known.max())
    ends = _ends(text(low), text(high))
    scaled = np.log(np.maximum(known, 1)) if log else known
    counts, _ = np.histogram(scaled, bins=_BINS if low < high else 1)
    missing = len(numbers) - len(known)
    said = f"{len(known):,} from {ends}" + (f", {missing:,} not known" if missing else "")
    return _summary(ends, said, bars=counts.tolist())


def _ends(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _summary(text: str, said: str, **drawn: Any) -> JsonObject:
    return {"text": text, "said": said, "parts": [], "bars": [], **drawn}


def within(times: pd.Series[Any], span: Span) -> npt.NDArray[np.bool_]:
    """Which times are between two moments; a missing one is not."""
    first, last = (pd.Timestamp(moment, tz="UTC") for moment in span)
    found: npt.NDArray[np.bool_] = times.between(first, last).to_numpy(dtype=bool)
    return found
