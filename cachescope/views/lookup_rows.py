"""All lookups, filtered and sorted by codes: quick at a hundred thousand, since only one page of them becomes text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.answers.read import Read
from cachescope.views.table import Head
from cachescope.wording import SHORT_KEY, duration

HEADS: Final = (
    Head("lookup", "Lookup", number=True),
    Head("run", "Run", number=True),
    Head("rank", "Rank", number=True),
    Head("cache", "Cache"),
    Head("compile_id", "Compile"),
    Head("function", "Function"),
    Head("cache_key", "Key"),
    Head("outcome", "Outcome"),
    Head("verdict", "Verdict"),
    Head("time_taken_ns", "Compile time", number=True),
    Head("reason", "Why", fills=True),
)
SEARCHED: Final = ("cache", "compile_id", "function", "cache_key", "outcome", "verdict", "reason")
"""The columns that a text search covers."""

FRAME: Final = 'scope.lookups.merge(scope.misses, on="lookup", how="left").merge(scope.runs[["run", "rank"]], on="run", how="left")'
"""The frame behind the table, as an expression."""

Positions = npt.NDArray[np.intp]


def lookups_frame(scope: Read) -> pd.DataFrame:
    """Every lookup with the rank of its run and why it missed."""
    lookups = scope.lookups.merge(scope.misses, on="lookup", how="left")
    return lookups.merge(scope.runs[["run", "rank"]], on="run", how="left")


class LookupRows:
    """The rows of the Lookups table.

    Parameters
    ----------
    frame : DataFrame
        From `lookups_frame`.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.heads: Sequence[Head] = [
            h for h in HEADS if h.name not in ("rank", "function") or frame[h.name].notna().any()
        ]
        self._codes: dict[str, tuple[npt.NDArray[np.intp], pd.Index[Any]]] = {}
        self._ranks: dict[str, npt.NDArray[np.intp]] = {}
        self._filters: dict[str, object] = {}
        self._sort = ("lookup", True)
        self.at: Positions = np.arange(len(frame))
        """The places of the rows shown, in their order."""

    def filter(self, filters: Mapping[str, object]) -> None:
        """Show the rows that have these values; ``text`` is searched for in `SEARCHED`."""
        self._filters = dict(filters)
        self._arrange()

    def order(self, column: str, ascending: bool) -> None:
        """Sort by a column; rows without a value come last."""
        self._sort = (column, ascending)
        self._arrange()

    def values(self, column: str) -> list[Any]:
        """The distinct values of a column, sorted."""
        return sorted(self._factorized(column)[1].tolist())

    def shown(self) -> pd.DataFrame:
        """The rows shown, as a frame."""
        return self.frame.iloc[self.at].reset_index(drop=True)

    def __len__(self) -> int:
        """The number of rows shown."""
        return len(self.at)

    def page(self, first: int, count: int) -> list[tuple[int, list[str]]]:
        """Some rows, each with its lookup and its cells as text."""
        names = [head.name for head in self.heads]
        rows = self.frame.iloc[self.at[first : first + count]][names].astype(object)
        rows = rows.where(rows.notna(), None)
        return [(row[0], [_cell(n, v) for n, v in zip(names, row, strict=True)]) for row in rows.to_numpy()]

    def _arrange(self) -> None:
        at = np.flatnonzero(self._mask())
        column, ascending = self._sort
        ranks = self._rank_of(column)[at]
        missing = ranks < 0
        order = np.argsort(ranks if ascending else -ranks, kind="stable")
        order = np.concatenate([order[~missing[order]], order[missing[order]]])
        self.at = at[order]

    def _mask(self) -> npt.NDArray[np.bool_]:
        mask = np.ones(len(self.frame), dtype=bool)
        for name, value in self._filters.items():
            mask &= self._has_text(str(value)) if name == "text" else self._equals(name, value)
        return mask

    def _equals(self, column: str, value: object) -> npt.NDArray[np.bool_]:
        codes, values = self._factorized(column)
        found = np.flatnonzero(np.asarray(values == value))
        if not len(found):
            return np.zeros(len(codes), dtype=bool)
        mask: npt.NDArray[np.bool_] = codes == found[0]
        return mask

    def _has_text(self, text: str) -> npt.NDArray[np.bool_]:
        mask = np.zeros(len(self.frame), dtype=bool)
        for column in SEARCHED:
            codes, values = self._factorized(column)
            if not len(values):
                continue
            # Each distinct text once; the last place stands for a missing one, whose code is -1.
            has = np.append(contains(pd.Series(values, dtype="str"), text), False)
            mask |= has[codes]
        return mask

    def _factorized(self, column: str) -> tuple[npt.NDArray[np.intp], pd.Index[Any]]:
        if column not in self._codes:
            self._codes[column] = pd.factorize(self.frame[column])
        return self._codes[column]

    def _rank_of(self, column: str) -> npt.NDArray[np.intp]:
        """The place of each row among the sorted distinct values; -1 for a row without a value."""
        if column not in self._ranks:
            self._ranks[column] = pd.factorize(self.frame[column], sort=True)[0]
        return self._ranks[column]


def contains(texts: pd.Series[str], text: str) -> npt.NDArray[np.bool_]:
    """Which texts contain a text, ignoring case."""
    found: npt.NDArray[np.bool_] = texts.str.contains(text, case=False, regex=False).to_numpy(dtype=bool)
    return found


def query(filters: Mapping[str, object], sort: tuple[str, bool]) -> str:
    """The line of Python that returns the frame behind the table."""
    masks = [f"(f[{name!r}] == {value!r})" for name, value in filters.items() if name != "text"]
    if "text" in filters:
        search = f"c.str.contains({filters['text']!r}, case=False, regex=False, na=False)"
        masks.append(f"f[{list(SEARCHED)!r}].apply(lambda c: {search}).any(axis=1)")
    line = FRAME
    if masks:
        line += f".loc[lambda f: {' & '.join(masks)}]"
    if sort != ("lookup", True):
        line += f'.sort_values({sort[0]!r}, ascending={sort[1]!r}, kind="stable")'
    return f"{line}.reset_index(drop=True)"


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "time_taken_ns":
        return duration(int(value))
    if name == "cache_key":
        return f"{value[:SHORT_KEY]}…"
    return str(value)
