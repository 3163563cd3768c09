"""The pane Lookups: every lookup, filtered, sorted and folded, with a summary of each column. Only the page that is seen becomes text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, cast

import ipywidgets
import pandas as pd

from cachescope.answers.cards import cause_names
from cachescope.answers.chosen import Span
from cachescope.answers.names import run_name
from cachescope.answers.read import Read
from cachescope.figures.palette import OUTCOME_COLOURS
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.report.blocks import Column
from cachescope.report.layout import Line
from cachescope.rows import like
from cachescope.views.controls import InPython, Shows, button, choice, markup, row, sentence, text_box
from cachescope.views.state import FILTERS
from cachescope.views.table import ListedRows, Table, Whole, ordered
from cachescope.wording import duration, harmless_cut, percent, plural, short_key

_HINT = "Open a row to see why; Compile time is what a miss cost. ▸ shows the FX lookups below one of AOTAutograd."
_NONE: Final = "No lookup has all of these. Clear the filters to see them again."

SEARCHED: Final = ("cache", "compile_id", "function", "cache_key", "outcome", "verdict", "reason")
"""The columns that a text search covers."""

FRAME: Final = 'scope.lookups.merge(scope.misses, on="lookup", how="left").merge(scope.runs[["run", "rank"]], on="run", how="left")'
"""The frame with the rows of the table, as an expression."""

_TIME: Final = "time_taken_ns"
_COLUMNS: Final = {
    "lookup": Column("Lookup", "name", "lookup"),
    "run": Column("Run", "name", "run"),
    "rank": Column("Rank", "name", "rank", is_optional=True),
    "cache": Column("Cache", "word", "cache"),
    "compile_id": Column("Compile", "word", "compile_id"),
    "function": Column("Function", "word", "function", is_optional=True),
    "cache_key": Column("Key", "word", lambda row: row.cache_key and short_key(row.cache_key)),
    "outcome": Column("Outcome", "word", "outcome", colours=OUTCOME_COLOURS),
    "verdict": Column("Verdict", "word", "verdict"),
    _TIME: Column("Compile time", "number", _TIME),
    "reason": Column("Why", "key", "reason"),
}

# With more values than these, their spread says more than the values.
_MOST_SHARES: Final = 8
_PARTS: Final = 5
_FEW: Final = 4
_BINS: Final = 16
_LONGEST: Final = 60


class Lookups(Shows):
    """The table of lookups with its filters."""

    def parts(self) -> Iterable[ipywidgets.Widget]:
        """The filters, and the table."""
        state = self._state
        self.rows = LookupRows(list(listed_lookups(self._scope)))
        self.text = text_box("Search", "key, compile, field, reason", 240, value=state.text)
        ipywidgets.link((self.text, "value"), (state, "text"))
        self.summary = markup()
        self.rows.filter(state.filters)
        self.rows.order(*state.sort)
        self.table = Table(self.rows, "lookups", _NONE, state.guarded(state.show_why))
        self.table.sort = list(state.sort)
        self.table.observe(lambda change: setattr(state, "sort", tuple(change["new"])), "sort")
        state.observe(state.guarded(lambda change: self.show_chosen()), FILTERS)
        state.observe(lambda change: setattr(self.table, "sort", list(change["new"])), "sort")
        state.observe(lambda change: setattr(self.table, "selected", change["new"]), "lookup")
        self.clear = button("Clear filters", state.show_lookups)
        self._say()
        filters = row(*self._choices(), self.text)
        return [filters, row(self.summary, self.clear), sentence(_HINT, "dim"), self.table]

    def _choices(self) -> list[ipywidgets.Widget]:
        facts, state, rows = self._scope.facts, self._state, self.rows
        runs = [(run_name(facts, run), run) for run in facts.runs]
        made = [choice(state, "run", "Run", runs)]
        if ranks := rows.values("rank"):
            made.append(choice(state, "rank", "Rank", [(str(rank), rank) for rank in ranks]))
        for name, label in (("cache", "Cache"), ("outcome", "Outcome")):
            made.append(choice(state, name, label, [(value, value) for value in rows.values(name)]))
        return [*made, choice(state, "cause", "Cause", cause_names(self._scope))]

    def in_python(self) -> InPython:
        """The rows shown, all pages of them."""
        line = query(self._state.filters, self._state.sort)
        return line, lambda: lookups_frame(self._scope, self.rows.passing() if self.has_parts else ())

    def show_chosen(self) -> None:
        """List what passes the filters, of which the span is one."""
        self.rows.filter(self._state.filters)
        with self.table.hold_sync():
            self.table.page = 0
            self.table.refresh()
        self._say()

    def _say(self) -> None:
        count, all_of_them = self.rows.count, len(self.rows.rows)
        of = f"{count:,} of {all_of_them:,} lookups" if count < all_of_them else f"{count:,} lookups"
        self.clear.disabled = not self._state.filters.keys() - {"span"}
        self.summary.show(Line(of))


@dataclass(frozen=True, slots=True)
class Listed:
    """One lookup, with the rank of its run and the reason of a miss."""

    lookup: int
    run: int
    rank: int | None
    cache: str
    compile_id: str | None
    function: str | None
    cache_key: str | None
    outcome: str
    time_taken_ns: int | None
    time: int | None
    above: int | None  # the AOTAutograd lookup that it belongs to
    verdict: str | None
    reason: str | None
    cause: int | None


def lookups_frame(scope: Read, rows: Iterable[Listed]) -> pd.DataFrame:
    """Some rows of the table as `FRAME` has them."""
    lookups = scope.lookups.merge(scope.misses, on="lookup", how="left")
    frame = lookups.merge(scope.runs[["run", "rank"]], on="run", how="left").set_index("lookup", drop=False)
    return frame.loc[[row.lookup for row in rows]].reset_index(drop=True)


def listed_lookups(scope: Read, numbers: Iterable[int] | None = None) -> Iterator[Listed]:
    """The lookups of what was read, or some of them."""
    facts = scope.facts
    for number in facts.lookups if numbers is None else numbers:
        one, miss = facts.lookups[number], facts.misses.get(number)
        why = {name: getattr(miss, name, None) for name in ("verdict", "reason", "cause")}
        yield like(Listed, one, rank=facts.runs[one.run].rank, above=one.aot_lookup, **why)


class LookupRows(ListedRows):
    """The rows of the Lookups table; lookups of FX graphs are folded below the AOTAutograd lookup of their compile."""

    missing = ""

    def __init__(self, rows: Sequence[Listed]) -> None:
        timed = replace(_COLUMNS[_TIME], of=self._time_text)
        super().__init__({**_COLUMNS, _TIME: timed}, [(row.lookup, row) for row in rows])
        self.rows = rows
        self._sort = ("lookup", True)
        self._open: set[int] = set()
        self.filter({})

    def filter(self, filters: Mapping[str, object]) -> None:
        """Show the rows that have these values; ``text`` is searched for in `SEARCHED`."""
        passing = self.rows
        for name, value in filters.items():
            passing = list(filter(_test(name, value), passing))
        self._passing = passing
        numbers = {row.lookup for row in passing}
        self._below = by_key((row.above, row) for row in passing if row.above in numbers)
        self._summaries: list[JsonObject | None] | None = None
        self._arrange()

    def order(self, column: str, ascending: bool) -> None:
        """Sort by a column; rows without a value come last."""
        self._sort = (column, ascending)
        self._arrange()

    def fold(self, row: int) -> None:
        """Open or close the rows below a lookup."""
        self._open ^= {row}
        self._arrange()

    def passing(self) -> list[Listed]:
        """The rows that pass the filters, in their order."""
        column, ascending = self._sort
        return ordered(self._passing, attrgetter(column), ascending)

    def values(self, column: str) -> list[Any]:
        """The distinct values of a column, sorted."""
        return sorted({*map(attrgetter(column), self.rows)} - {None})

    @property
    def count(self) -> int:
        """The number of rows that pass the filters."""
        return len(self._passing)

    def folds(self, first: int, count: int) -> list[JsonObject]:
        """How the rows of a page are folded."""
        found: list[JsonObject] = []
        for lookup, one in self._rows[first : first + count]:
            level, below = 1 + self._is_below(one), len(self._below.get(lookup, ()))
            found.append({"level": level, "below": below, "is_open": lookup in self._open})
        return found

    def summaries(self) -> list[JsonObject | None]:
        """A summary of each column, for the rows that pass the filters."""
        if self._summaries is None:
            self._summaries = [*map(self._summary, self.columns)]
        return self._summaries

    def whole(self, first: int = 0, count: int | None = None) -> Whole:
        """The columns and values of some rows as shown; without `count`, of all rows that pass the filters."""
        names = [*self.columns]
        seen = (row for _, row in self._rows[first : None if count is None else first + count])
        return names, map(attrgetter(*names), self.passing() if count is None else seen)

    def _summary(self, column: str) -> JsonObject | None:
        values = map(attrgetter(column), self._passing)
        if column == "lookup":
            return None
        if column == _TIME:
            # The units stay with their numbers.
            return spread(values, lambda ns: duration(ns).replace(" ", "\xa0"), log=True)
        if column in ("run", "rank") and len(self.values(column)) > _MOST_SHARES:
            return spread(values, str, log=False)
        if column in ("cache_key", "reason"):
            # Too many to draw: only their number.
            return _summary(plural(len({*values} - {None}), "value"), "")
        return shares(values, OUTCOME_COLOURS if column == "outcome" else {})

    def _is_below(self, row: Listed) -> bool:
        return row.above in self._below

    def _arrange(self) -> None:
        column, ascending = self._sort
        value = attrgetter(column)
        # An AOTAutograd lookup has no compile time of its own, and is sorted by that of its graphs.
        top_value = self._time if column == _TIME else value
        top = [row for row in self._passing if not self._is_below(row)]
        seen: list[Listed] = []
        for one in ordered(top, top_value, ascending):
            seen.append(one)
            if one.lookup in self._open:
                seen += ordered(self._below.get(one.lookup, ()), value, ascending)
        self._rows = [(row.lookup, row) for row in seen]

    def _time(self, row: Listed) -> int | None:
        """The compile time of a row, or of what is folded below it; not known if that of a miss is not."""
        below = self._below.get(row.lookup, ())
        times = [one.time_taken_ns for one in below if one.outcome != "hit" or one.time_taken_ns is not None]
        if row.time_taken_ns is not None or not times or None in times:
            return row.time_taken_ns
        return sum(times)  # type: ignore[arg-type]

    def _time_text(self, row: Listed) -> str | None:
        ns = self._time(row)
        return None if ns is None else duration(ns) + ("" if row.time_taken_ns is not None else " below")


def _test(name: str, value: object) -> Callable[[Listed], bool]:
    if name == "span":
        first, last = cast(Span, value)
        return lambda row: row.time is not None and first <= row.time <= last
    if name != "text":
        return lambda row: getattr(row, name) == value
    text, found = str(value).lower(), dict[str | None, bool]({None: False})
    texts = attrgetter(*SEARCHED)

    def has_text(row: Listed) -> bool:
        for one in texts(row):
            if one not in found:
                found[one] = text in one.lower()
            if found[one]:
                return True
        return False

    return has_text


def shares(values: Iterable[Any], colours: Mapping[str, str]) -> JsonObject:
    """The most common values, and the others as one part. The part of missing values is blank."""
    counts = Counter(values)
    every, missing = counts.total(), counts.pop(None, 0)
    ordered = counts.most_common()
    first = ((str(value), count) for value, count in ordered[:_PARTS])
    parts: list[list[Any]] = [[harmless_cut(text, _LONGEST), n, colours.get(text, "")] for text, n in first]
    if rest := ordered[_PARTS:]:
        parts.append([plural(len(rest), "other value"), sum(count for _, count in rest), ""])
    named = [f"{name}: {count:,}" for name, count, _ in parts]
    said = ", ".join([*named, *([f"none: {missing:,}"] if missing else [])])
    text = plural(len(ordered), "value")
    if parts and len(ordered) <= _FEW and isinstance(ordered[0][0], str):
        # The share comes first, since the end may be cut.
        text = f"{percent(parts[0][1] / every)} {parts[0][0]}"
    elif parts and isinstance(ordered[0][0], int):
        # Shorter than how many there are, in columns that are narrow.
        text = _ends(str(min(counts)), str(max(counts)))
    return _summary(text, said, parts=parts, rows=every)


def spread(numbers: Iterable[int | None], text: Callable[[int], str], *, log: bool) -> JsonObject:
    """The distribution of known numbers; with `log`, the bounds of the bars grow by a constant factor."""
    every = list(numbers)
    known = [number for number in every if number is not None]
    if not known:
        return _summary("", "none is known")
    scaled = [math.log(max(number, 1)) for number in known] if log else known
    low, high = min(scaled), max(scaled)
    bars = [0] * (_BINS if low < high else 1)
    for number in scaled:
        bars[min(int((number - low) / (high - low) * _BINS), _BINS - 1) if low < high else 0] += 1
    ends = _ends(text(min(known)), text(max(known)))
    missing = len(every) - len(known)
    said = f"{len(known):,} from {ends}" + (f", {missing:,} not known" if missing else "")
    return _summary(ends, said, bars=bars)


def _ends(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _summary(text: str, said: str, **drawn: Any) -> JsonObject:
    return {"text": text, "said": said, "parts": [], "bars": [], **drawn}


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
    """The expression for the rows of a frame, given by name, within a span of time."""
    first, last = (pd.Timestamp(moment, tz="UTC").isoformat() for moment in span)
    return f"{frame}['time'].between({first!r}, {last!r})"
