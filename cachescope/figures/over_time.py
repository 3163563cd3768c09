"""Lookups over the compile: when each was made, and how long torch compiled after a miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, Literal

from cachescope.figures.canvas import (
    AXIS,
    DATES,
    axis_title,
    bars,
    compile_order,
    empty,
    legend_room,
    note,
    origins,
    rows_canvas,
    value_axis,
)
from cachescope.figures.folding import MOST_ROWS, folded_runs
from cachescope.figures.palette import OUTCOME_COLOURS
from cachescope.figures.picture import Picture
from cachescope.figures.texts import hover, place_labels, shown
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key
from cachescope.terms import AOTAUTOGRAD
from cachescope.wording import clock as time_of_day
from cachescope.wording import duration, plural

_MOST_MARKS: Final = 2500
# So that marks of several outcomes have room beside each other.
_MOST_BINS: Final = 40
_LANE: Final = 0.19
_EDGE: Final = "#1a1a1a"

Clock = Literal["first", "wall", "run"]
"""Where time begins."""


def timeline(lookups: Sequence[LookupRow], runs: Sequence[RunRow], *, clock: Clock = "first") -> Picture:
    """Lookups over time: a mark for each, and a bar for the compile that followed if it did not hit.

    One row per run (for a single run: per compile id and function), AOTAutograd above FX in each. If there are very many
    lookups, neighbours of one kind share a mark, which stands beside those of other kinds, near its time. Marks are clickable: ``customdata`` holds the (first) lookup. A bar with a
    dark edge is a compile while another run compiled the same key.

    Parameters
    ----------
    lookups : DataFrame or sequence of its rows
        Columns lookup, run, time, end_time, cache, cache_key, outcome, compile_id, function, file, line, time_taken_ns.
    runs : DataFrame or sequence of its rows
        Columns run, rank, start_time, end_time.
    clock : {"first", "wall", "run"}
        The time of day, in UTC; the seconds since each run began; or these seconds, but since the first run began if all
        ran at once.
    """
    if not lookups:
        return empty("No lookup is recorded.")
    timed = [row for row in lookups if row.time is not None]
    if not timed:
        return empty("The logs have no times: TORCH_LOGS_FORMAT=short leaves them out. A trace has them.")
    marks, since = _placed(timed, runs, clock)
    labels, by = _rows(marks, runs)
    many = len(marks) > _MOST_MARKS
    if many:
        marks = _shared(marks, len(labels))
    pixels = max(12.0, min(40.0, 640 / len(labels)))
    top = legend_room(len({mark.of.outcome for mark in marks}))
    below = DATES if clock == "wall" else AXIS
    unit = {"type": "date"} if clock == "wall" else {"ticksuffix": " s"}
    figure = rows_canvas(
        labels,
        top,
        pixels,
        least=60,
        below=below,
        rows={"showgrid": len(labels) <= 24, "gridcolor": "rgba(128,128,128,0.12)"},
        barmode="overlay",
        xaxis=value_axis(nticks=8, title=axis_title(since), **unit),
    )
    _draw(figure, marks, 8 if pixels > 20 and not many else 5, is_wall=clock == "wall")
    remarks = ["◆ AOTAutograd, ● FX graph; a bar is the compile that followed"]
    if any(mark.at_once for mark in marks):
        remarks.append("a dark edge: another run compiled the same key at the same time")
    remarks.append(by)
    if many:
        shared = f"{plural(len(timed), 'lookup')} in {plural(len(marks), 'mark')}"
        remarks.append(f"{shared}, those of one time beside each other")
    if len(timed) < len(lookups):
        remarks.append(f"{plural(len(lookups) - len(timed), 'lookup')} without a time not shown")
    note(figure, *remarks, below=below)
    return figure


@dataclass(slots=True)
class _Mark:
    """A mark on the lane of a run: one lookup, or several at one place; seconds."""

    of: LookupRow
    place: str | None
    x: float
    span: float  # until its compile ended
    count: int = 1
    row: int = 0
    at_once: bool = False
    drawn: float | None = None  # where its mark is, if that is not at x

    @property
    def y(self) -> float:
        """The middle of its lane."""
        return self.row + (self.of.cache != AOTAUTOGRAD) * 2 * _LANE - _LANE

    @property
    def begun(self) -> float:
        """When it was made, in seconds since the epoch."""
        return (self.of.time or 0) / 1e9


def _placed(timed: Sequence[LookupRow], runs: Sequence[RunRow], clock: Clock) -> tuple[list[_Mark], str]:
    """Each lookup as a mark, and from when its seconds count."""
    times = [row.time or 0 for row in timed]
    spans = by_key((row.run, (time, row.end_time or time)) for row, time in zip(timed, times, strict=True))
    start, since = origins(runs, spans, joins=clock == "first")
    if clock == "wall":
        start, since = dict.fromkeys(start, 0), "time of day (UTC)"
    marks = [
        _Mark(row, place, x=(time - start[row.run]) / 1e9, span=_span(row, time) / 1e9)
        for row, time, place in zip(timed, times, place_labels(timed), strict=True)
    ]
    _find_at_once(marks)
    return marks, since


def _span(row: LookupRow, time: int) -> int:
    """How long torch compiled after it, in nanoseconds."""
    if row.outcome in ("hit", "would_hit", "unknown", "not_known"):
        return 0
    until_end = 0 if row.end_time is None else row.end_time - time
    return until_end if until_end > 0 else row.time_taken_ns or 0


def _find_at_once(marks: Sequence[_Mark]) -> None:
    """Mark those during which another run compiled the same key."""
    compiled = [mark for mark in marks if mark.span > 0 and mark.of.cache_key is not None]
    compiled.sort(key=lambda mark: mark.begun)
    for same in by_key(((mark.of.cache, mark.of.cache_key), mark) for mark in compiled).values():
        if len({mark.of.run for mark in same}) > 1:
            latest = -inf
            for at, mark in enumerate(same):
                # By their beginnings: one overlaps an earlier one, or a later one overlaps it.
                if mark.begun < latest:
                    mark.at_once = same[at - 1].at_once = True
                latest = max(latest, mark.begun + mark.span)


def _rows(marks: Sequence[_Mark], runs: Sequence[RunRow]) -> tuple[list[str], str]:
    """Give each mark its row; return the labels of the rows, and a remark on them."""
    folded = folded_runs(((mark.of.run, (mark.of.cache, mark.of.outcome)) for mark in marks), runs)
    if folded.sizes == [1]:
        graphs = by_key(((mark.of.compile_id or "-", mark.of.function or ""), mark) for mark in marks)
        if 1 < len(graphs) <= MOST_ROWS:
            ordered = sorted(graphs, key=lambda one: compile_order(one[0]))
            for i, graph in enumerate(ordered):
                for mark in graphs[graph]:
                    mark.row = i
            labels = [shown(f"{compile_id} {function}".strip(), 20) for compile_id, function in ordered]
            return labels, f"a row per compile id of {folded.labels[0]}"
    for mark in marks:
        mark.row = folded.row_of[mark.of.run]
    return folded.labels, folded.remark


def _shared(marks: Sequence[_Mark], rows: int) -> list[_Mark]:
    """Merge neighbours of one row, cache and outcome into one mark; those of several outcomes are drawn beside each other."""
    bins = min(max(10, _MOST_MARKS // (4 * rows)), _MOST_BINS)
    first = min(mark.x for mark in marks)
    step = (max(mark.x for mark in marks) - first or 1.0) / bins
    places = by_key(((mark.row, mark.of.cache, int((mark.x - first) / step)), mark) for mark in marks)
    merged = []
    for _, members in sorted(places.items()):
        low, high = min(mark.x for mark in members), max(mark.x for mark in members)
        outcomes = sorted(by_key((mark.of.outcome, mark) for mark in members).items())
        for at, (_, same) in enumerate(outcomes):
            x, end = min(mark.x for mark in same), max(mark.x + mark.span for mark in same)
            span = end - x if any(mark.span > 0 for mark in same) else 0.0
            place = next((mark.place for mark in same if mark.place is not None), None)
            at_once = any(mark.at_once for mark in same)
            one = replace(same[0], place=place, x=x, span=span, count=len(same), at_once=at_once)
            if len(outcomes) > 1:
                one.drawn = low + (high - low) * ((at + 0.5) / len(outcomes))
            merged.append(one)
    return merged


def _draw(figure: Picture, marks: Sequence[_Mark], size: int, is_wall: bool) -> None:
    # On an axis of dates plotly counts in milliseconds.
    unit = 1000 if is_wall else 1
    of_outcome = by_key((mark.of.outcome, mark) for mark in marks)
    for outcome, colour in OUTCOME_COLOURS.items():
        mine = of_outcome.get(outcome)
        if not mine:
            continue
        if spans := [mark for mark in mine if mark.span > 0]:
            edge = {"color": [_EDGE if one.at_once else colour for one in spans], "width": 1}
            bars(
                figure,
                [mark.span * unit for mark in spans],
                [mark.y for mark in spans],
                colour,
                [_hover(mark, is_wall) for mark in spans],
                base=[mark.x * unit for mark in spans],
                width=[1.5 * _LANE] * len(spans),
                name=outcome,
                showlegend=False,
                legendgroup=outcome,
                marker={"color": colour, "opacity": 0.45, "line": edge},
                customdata=[mark.of.lookup for mark in spans],
            )
        symbols = ["diamond" if mark.of.cache == AOTAUTOGRAD else "circle" for mark in mine]
        figure.add(
            "scatter",
            x=[(mark.x if mark.drawn is None else mark.drawn) * unit for mark in mine],
            y=[mark.y for mark in mine],
            mode="markers",
            name=outcome,
            legendgroup=outcome,
            marker={"color": colour, "size": size, "symbol": symbols},
            hovertext=[_hover(mark, is_wall) for mark in mine],
            hoverinfo="text",
            customdata=[mark.of.lookup for mark in mine],
        )


def _hover(mark: _Mark, is_wall: bool) -> str:
    at = time_of_day(int(mark.x * 1e9)) if is_wall else f"{mark.x:.3f} s"
    span = f", then {duration(int(mark.span * 1e9))}" if mark.span else ""
    row = mark.of
    what = f"lookup {row.lookup}: {row.cache}, {row.outcome}"
    if mark.count > 1:
        what = f"{mark.count} lookups, {row.cache}, {row.outcome}; the first is {row.lookup}"
    where = f"run {row.run}, compile {(row.compile_id or '-')[:40]}, key {(row.cache_key or 'no key')[:14]}"
    beside = "another run compiled the same key at the same time" if mark.at_once and mark.span else None
    return hover(what, where, mark.place, f"at {at}{span}", beside)
