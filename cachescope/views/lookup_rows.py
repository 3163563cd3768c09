"""All lookups, filtered, sorted and folded by codes: quick at a hundred thousand, since only one page of them becomes text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.answers.chosen import Span
from cachescope.answers.read import Read
from cachescope.figures.palette import OUTCOME_COLOURS
from cachescope.json_types import JsonObject
from cachescope.views.coded_columns import SEARCHED, CodedColumns, distinct, shares, spread
from cachescope.views.table import Fold, Head, Whole, whole
from cachescope.wording import duration, short_key

Positions = npt.NDArray[np.intp]
NONE = -1

FRAME: Final = 'scope.lookups.merge(scope.misses, on="lookup", how="left").merge(scope.runs[["run", "rank"]], on="run", how="left")'
"""The frame behind the table, as an expression."""

_TIME: Final = "time_taken_ns"
_HEADS: Final = (
    ("lookup", "Lookup"), ("run", "Run"), ("rank", "Rank"), ("cache", "Cache"), ("compile_id", "Compile"),
    ("function", "Function"), ("cache_key", "Key"), ("outcome", "Outcome"), ("verdict", "Verdict"),
    ("time_taken_ns", "Compile time"), ("reason", "Why"),
)  # fmt: skip
_NUMBERS: Final = ("lookup", "run", "rank", "time_taken_ns")
# Of more values than these, how they spread says more than which they are.
_MOST_SHARES: Final = 8


def lookups_frame(scope: Read) -> pd.DataFrame:
    """Every lookup with the rank of its run and why it missed."""
    lookups = scope.lookups.merge(scope.misses, on="lookup", how="left")
    return lookups.merge(scope.runs[["run", "rank"]], on="run", how="left")


def _head(name: str, label: str) -> Head:
    colours = OUTCOME_COLOURS if name == "outcome" else {}
    return Head(name, label, number=name in _NUMBERS, fills=name == "reason", colours=colours)


class Folding:
    """What is below what, and what is open."""

    def __init__(self, above: Positions) -> None:
        self.above = above
        self._open: set[int] = set()
        self._top: Positions = np.arange(0)
        self._below: Positions = np.arange(0)
        self._of_below: Positions = np.arange(0)
        self.seen: Positions = np.arange(0)
        """The places of the rows that are seen, in their order."""

    def is_below(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Which rows are below one that is among those of the mask, and among them themselves."""
        found: npt.NDArray[np.bool_] = mask & (self.above != NONE) & mask[self.above]
        return found

    def arrange(self, top: Positions, below: Positions) -> None:
        """Take rows in their order: those on top, and those below one of them."""
        by_above = np.argsort(self.above[below], kind="stable")
        self._top, self._below = top, below[by_above]
        self._of_below = self.above[self._below]
        self._unfold()

    def toggle(self, place: int) -> None:
        """Open or close what is below a row."""
        self._open ^= {place}
        self._unfold()

    def count(self, place: int) -> int:
        """How many rows are below one."""
        first, end = self._bounds(place)
        return end - first

    def is_open(self, place: int) -> bool:
        """Whether what is below a row is seen."""
        return place in self._open

    def _bounds(self, place: int) -> tuple[int, int]:
        first, end = np.searchsorted(self._of_below, [place, place + 1])
        return int(first), int(end)

    def _unfold(self) -> None:
        at = np.flatnonzero(np.isin(self._top, np.array(sorted(self._open), dtype=np.intp)))
        groups = [self._below[slice(*self._bounds(place))] for place in self._top[at].tolist()]
        where = np.repeat(at + 1, [len(group) for group in groups])
        self.seen = np.insert(self._top, where, np.concatenate([self._top[:0], *groups]))


class LookupRows:
    """The rows of the Lookups table; lookups of FX graphs are folded below the AOTAutograd lookup of their compile."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        # Ranks and functions only where one is known.
        self.heads: Sequence[Head] = [
            _head(*one) for one in _HEADS if one[0] not in ("rank", "function") or frame[one[0]].notna().any()
        ]
        self._columns = CodedColumns(frame)
        self._sort = ("lookup", True)
        self._mask = np.ones(len(frame), dtype=bool)
        self._below = ~self._mask
        self._times_below = np.full(len(frame), np.nan)
        self._summaries: list[JsonObject | None] | None = None
        self._folding = Folding(_above(frame))
        self._times = frame[_TIME].to_numpy(dtype=float, na_value=np.nan)
        self.at: Positions = np.arange(len(frame))
        """The places of the rows that pass the filters, in their order."""
        self.filter({})

    def filter(self, filters: Mapping[str, object]) -> None:
        """Show the rows that have these values; ``text`` is searched for in `SEARCHED`."""
        self._mask = self._columns.passing(filters)
        self._below = self._folding.is_below(self._mask)
        self._times_below = self._time_below()
        self._summaries = None
        self._arrange()

    def order(self, column: str, ascending: bool) -> None:
        """Sort by a column; rows without a value come last."""
        self._sort = (column, ascending)
        self._arrange()

    def fold(self, row: int) -> None:
        """Open or close what is below a lookup."""
        found = np.flatnonzero(self.frame["lookup"].to_numpy() == row)
        if len(found):
            self._folding.toggle(int(found[0]))

    def values(self, column: str) -> list[Any]:
        """The distinct values of a column, sorted."""
        return sorted(self._columns.codes(column)[1].tolist())

    def shown(self) -> pd.DataFrame:
        """The rows shown, as a frame."""
        return self.frame.iloc[self.at].reset_index(drop=True)

    def __len__(self) -> int:
        """The number of rows seen."""
        return len(self._folding.seen)

    def page(self, first: int, count: int) -> list[tuple[int, list[str]]]:
        """Some rows, each with its lookup and its cells as text."""
        names = [head.name for head in self.heads]
        places = self._folding.seen[first : first + count]
        rows = self.frame.iloc[places][names].astype(object)
        rows = rows.where(rows.notna(), None)
        found = [(row[0], [_cell(n, v) for n, v in zip(names, row, strict=True)]) for row in rows.to_numpy()]
        at = names.index(_TIME)
        for (_, cells), ns in zip(found, self._times_below[places].tolist(), strict=True):
            if not cells[at] and ns == ns:
                cells[at] = f"{duration(int(ns))} below"
        return found

    def folds(self, first: int, count: int) -> list[Fold]:
        """How the rows of a page are folded."""
        of, places = self._folding, self._folding.seen[first : first + count].tolist()
        return [Fold(2 if self._below[at] else 1, of.count(at), of.is_open(at)) for at in places]

    def summaries(self) -> list[JsonObject | None]:
        """What each column holds in the rows that pass the filters."""
        if self._summaries is None:
            self._summaries = [self._summary(head.name) for head in self.heads]
        return self._summaries

    def whole(self, first: int = 0, count: int | None = None) -> Whole:
        """The columns and values of some rows as they are seen; without `count` of all that pass the filters."""
        places = self.at if count is None else self._folding.seen[first : first + count]
        return whole(self.frame.iloc[places], [head.name for head in self.heads])

    def _summary(self, column: str) -> JsonObject | None:
        if column == "lookup":
            return None
        if column == _TIME:
            # The units stay with their numbers.
            return spread(
                self._times[self._mask], lambda ns: duration(int(ns)).replace(" ", "\xa0"), log=True
            )
        codes, values = self._columns.codes(column)
        codes = codes[self._mask]
        if column in ("run", "rank") and len(values) > _MOST_SHARES:
            numbers = np.append(values.to_numpy(dtype=float), np.nan)
            return spread(numbers[codes], lambda number: f"{number:.0f}", log=False)
        if column in ("cache_key", "reason"):
            return distinct(codes)
        return shares(codes, values.tolist(), OUTCOME_COLOURS if column == "outcome" else {})

    def _arrange(self) -> None:
        column, ascending = self._sort
        by = self._columns.ranks(column)
        self.at = _ordered(np.flatnonzero(self._mask), by, ascending)
        is_below = self._below[self.at]
        top = self.at[~is_below]
        if column == _TIME:
            # A lookup of AOTAutograd has no compile time of its own: it is sorted by that of its graphs.
            own = self._times
            top = _ordered(np.sort(top), np.where(np.isnan(own), self._times_below, own), ascending)
        self._folding.arrange(top, self.at[is_below])

    def _time_below(self) -> npt.NDArray[np.float64]:
        """The compile time of what is folded below each row; not known where that of a miss is not."""
        below = np.flatnonzero(self._below)
        above, times = self._folding.above[below], self._times[below]
        count = len(self._times)
        sums = np.bincount(above, np.nan_to_num(times), count)
        known = np.bincount(above, ~np.isnan(times), count) > 0
        is_hit = self._columns.equal("outcome", "hit")[below]
        lost = np.bincount(above, np.isnan(times) & ~is_hit, count) > 0
        return np.where(known & ~lost, sums, np.nan)


def _above(frame: pd.DataFrame) -> Positions:
    """The place of the AOTAutograd lookup that each lookup belongs to."""
    lookups = pd.Index(frame["lookup"])
    belongs = frame["aot_lookup"].to_numpy(dtype=float, na_value=np.nan)
    places = np.full(len(frame), NONE, dtype=np.intp)
    known = np.flatnonzero(~np.isnan(belongs))
    places[known] = lookups.get_indexer(belongs[known].astype(np.int64))
    return places


def _ordered(places: Positions, by: npt.NDArray[np.float64], ascending: bool) -> Positions:
    """Places sorted by a number of each; those without one come last either way."""
    keys = by[places]
    return places[np.argsort(keys if ascending else -keys, kind="stable")]


def query(filters: Mapping[str, object], sort: tuple[str, bool]) -> str:
    """The line of Python that returns the frame behind the table."""
    masks = [f"(f[{name!r}] == {value!r})" for name, value in filters.items() if name not in ("text", "span")]
    if isinstance(span := filters.get("span"), tuple):
        masks.append(between("f", span))
    if "text" in filters:
        search = f"c.str.contains({filters['text']!r}, case=False, regex=False, na=False)"
        masks.append(f"f[{list(SEARCHED)!r}].apply(lambda c: {search}).any(axis=1)")
    line = FRAME
    if masks:
        line += f".loc[lambda f: {' & '.join(masks)}]"
    if sort != ("lookup", True):
        line += f'.sort_values({sort[0]!r}, ascending={sort[1]!r}, kind="stable")'
    return f"{line}.reset_index(drop=True)"


def between(frame: str, span: Span) -> str:
    """The expression for the rows of a frame, by its name, that are of a span of time."""
    first, last = (pd.Timestamp(moment, tz="UTC").isoformat() for moment in span)
    return f"{frame}['time'].between({first!r}, {last!r})"


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "time_taken_ns":
        return duration(int(value))
    if name == "cache_key":
        return short_key(value)
    return str(value)
