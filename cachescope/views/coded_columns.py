"""Columns of a frame as whole numbers: filters and sorts of a hundred thousand rows look at each distinct value once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.answers.chosen import Span

SEARCHED: Final = ("cache", "compile_id", "function", "cache_key", "outcome", "verdict", "reason")
"""The columns that a text search covers."""


class CodedColumns:
    """The columns of a frame, each made into codes when it is first asked for.

    Parameters
    ----------
    frame : DataFrame
    """

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


def within(times: pd.Series[Any], span: Span) -> npt.NDArray[np.bool_]:
    """Which times are between two moments; a missing one is not."""
    first, last = (pd.Timestamp(moment, tz="UTC") for moment in span)
    found: npt.NDArray[np.bool_] = times.between(first, last).to_numpy(dtype=bool)
    return found
