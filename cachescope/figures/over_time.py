"""Lookups over the compile: when each was made, and how long torch compiled after a miss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import pandas as pd

from cachescope.columns import rows_of
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
from cachescope.figures.texts import hover, place_labels, run_labels, shown
from cachescope.terms import AOTAUTOGRAD
from cachescope.wording import clock as time_of_day
from cachescope.wording import duration, plural

_MOST_MARKS: Final = 2500
# So that marks of several outcomes have room beside each other.
_MOST_BINS: Final = 40
_LANE: Final = 0.19
_NO_KEY: Final = "no key"
_EDGE: Final = "#1a1a1a"

Clock = Literal["first", "wall", "run"]
"""Where time begins."""


def timeline(
    lookups: pd.DataFrame, runs: pd.DataFrame, *, clock: Clock = "first", dark: bool = False
) -> Picture:
    """Lookups over time: a mark for each, and a bar for the compile that followed if it did not hit.

    One row per run (for a single run: per compile id and function), AOTAutograd above FX in each. If there are very many
    lookups, neighbours of one kind share a mark, which stands beside those of other kinds, near its time. Marks are clickable: ``customdata`` holds the (first) lookup. A bar with a
    dark edge is a compile while another run compiled the same key.

    Parameters
    ----------
    lookups : DataFrame
        Columns lookup, run, time, end_time, cache, cache_key, outcome, compile_id, function, file, line, time_taken_ns.
    runs : DataFrame
        Columns run, rank, start_time, end_time.
    clock : {"first", "wall", "run"}
        The time of day, in UTC; the seconds since each run began; or these seconds, but since the first run began if all
        ran at once.
    dark : bool
        For a dark background.
    """
    if lookups.empty:
        return empty("No lookup is recorded.", dark)
    timed = lookups[lookups["time"].notna()]
    if timed.empty:
        nothing = "The logs have no times: TORCH_LOGS_FORMAT=short leaves them out. A trace has them."
        return empty(nothing, dark)
    marks, since = _placed(timed, runs, clock)
    labels, by = _rows(marks, runs)
    many = len(marks) > _MOST_MARKS
    if many:
        marks = _shared(marks, len(labels))
    pixels = max(12.0, min(40.0, 640 / len(labels)))
    top = legend_room(marks["outcome"].nunique())
    below = DATES if clock == "wall" else AXIS
    unit = {"type": "date"} if clock == "wall" else {"ticksuffix": " s"}
    figure = rows_canvas(
        labels,
        top,
        dark,
        pixels,
        least=60,
        below=below,
        rows={"showgrid": len(labels) <= 24, "gridcolor": "rgba(128,128,128,0.12)"},
        barmode="overlay",
        xaxis=value_axis(dark, nticks=8, title=axis_title(since), **unit),
    )
    _draw(figure, marks, 8 if pixels > 20 and not many else 5, is_wall=clock == "wall")
    remarks = ["◆ AOTAutograd, ● FX graph; a bar is the compile that followed"]
    if marks["at_once"].any():
        remarks.append("a dark edge: another run compiled the same key at the same time")
    remarks.append(by)
    if many:
        remarks.append(
            f"{plural(len(timed), 'lookup')} in {plural(len(marks), 'mark')}, those of one time beside each other"
        )
    if len(timed) < len(lookups):
        remarks.append(f"{plural(len(lookups) - len(timed), 'lookup')} without a time not shown")
    note(figure, dark, *remarks, below=below)
    return figure


def _placed(timed: pd.DataFrame, runs: pd.DataFrame, clock: Clock) -> tuple[pd.DataFrame, str]:
    """Each lookup with its second (x), the seconds until its compile ended (span), and how many lookups it represents."""
    begun = timed.groupby("run")["time"].min()
    ended = timed["end_time"].fillna(timed["time"]).groupby(timed["run"]).max()
    start, since = origins(runs, begun, ended, joins=clock == "first")
    origin = timed["run"].map(start)
    if clock == "wall":
        origin, since = pd.Series(pd.Timestamp(0, tz="UTC"), index=timed.index), "time of day (UTC)"
    missed = ~timed["outcome"].isin(("hit", "would_hit", "unknown", "not_known"))
    span = (timed["end_time"] - timed["time"]).dt.total_seconds()
    taken = timed["time_taken_ns"].astype("Float64").astype(float) / 1e9
    marks = pd.DataFrame(
        {
            "lookup": timed["lookup"].astype(int),
            "run": timed["run"].astype(int),
            "x": (timed["time"] - origin).dt.total_seconds().astype(float),
            "span": span.astype(float).where(span > 0, taken).where(missed).fillna(0.0),
            "cache": timed["cache"],
            "outcome": timed["outcome"],
            "compile_id": timed["compile_id"].fillna("-"),
            "function": timed["function"].fillna(""),
            "place": place_labels(timed),
            "key": timed["cache_key"].fillna(_NO_KEY),
            "count": 1,
        }
    )
    return marks.assign(at_once=_at_once(marks, timed["time"])), since


def _at_once(marks: pd.DataFrame, time: pd.Series[Any]) -> pd.Series[bool]:
    """Whether another run compiled the same key at the same time."""
    begun = time.astype("int64") / 1e9
    spans = marks[["run", "cache", "key"]].assign(begun=begun, ended=begun + marks["span"])
    spans = spans[(marks["span"] > 0) & (marks["key"] != _NO_KEY)].sort_values("begun", kind="stable")
    same = spans.groupby(["cache", "key"], sort=False)
    # Sorted by their beginnings: one overlaps an earlier one, or a later one overlaps it.
    latest = same["ended"].cummax().groupby(same.ngroup()).shift()
    after = spans["begun"] < latest
    overlaps = after | after.groupby(same.ngroup()).shift(-1, fill_value=False)
    found = pd.Series(False, index=marks.index)
    found[spans.index] = overlaps & (same["run"].transform("nunique") > 1)
    return found


def _rows(marks: pd.DataFrame, runs: pd.DataFrame) -> tuple[list[str], str]:
    """Give each mark its row; return the labels of the rows, and a remark on them."""
    if marks["run"].nunique() == 1:
        compiles = list(zip(marks["compile_id"], marks["function"], strict=True))
        graphs = sorted(dict.fromkeys(compiles), key=lambda one: compile_order(one[0]))
        if 1 < len(graphs) <= MOST_ROWS:
            row_of = {graph: i for i, graph in enumerate(graphs)}
            marks["row"] = [row_of[graph] for graph in compiles]
            only = int(marks["run"].iloc[0])
            labels = [shown(f"{compile_id} {function}".strip(), 20) for compile_id, function in graphs]
            return labels, f"a row per compile id of {run_labels(runs).get(only, f'run {only}')}"
    folded = folded_runs(marks["run"], runs)
    marks["row"] = marks["run"].map(folded.row_of)
    return folded.labels, f"{folded.members:,} runs, neighbours share a row" if folded.folded else ""


def _shared(marks: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Merge neighbours of one row, cache and outcome into one mark; those of several outcomes are drawn beside each other."""
    bins = min(max(10, _MOST_MARKS // (4 * rows)), _MOST_BINS)
    step = (marks["x"].max() - marks["x"].min() or 1.0) / bins
    bin_of = ((marks["x"] - marks["x"].min()) / step).astype(int)
    marks = marks.assign(bin=bin_of, end=marks["x"] + marks["span"])
    place = ["row", "cache", "bin"]
    within = marks.groupby(place)["x"]
    marks = marks.assign(low=within.transform("min"), high=within.transform("max"))
    grouped = marks.groupby([*place, "outcome"], as_index=False, sort=True)
    folded = grouped.agg(
        lookup=("lookup", "first"), run=("run", "first"), x=("x", "min"), end=("end", "max"),
        compile_id=("compile_id", "first"), place=("place", "first"), key=("key", "first"), count=("count", "sum"), longest=("span", "max"),
        at_once=("at_once", "any"), low=("low", "first"), high=("high", "first"),
    )  # fmt: skip
    beside = folded.groupby(place)["outcome"]
    share = (beside.cumcount() + 0.5) / beside.transform("size")
    drawn = folded["low"] + (folded["high"] - folded["low"]) * share
    return folded.assign(
        span=(folded["end"] - folded["x"]).where(folded["longest"] > 0, 0.0),
        drawn=drawn.where(beside.transform("size") > 1, folded["x"]),
    )


def _draw(figure: Picture, marks: pd.DataFrame, size: int, is_wall: bool) -> None:
    # On an axis of dates plotly counts in milliseconds.
    unit = 1000 if is_wall else 1
    lanes = marks["row"] + (marks["cache"] != AOTAUTOGRAD) * 2 * _LANE - _LANE
    marks = marks.assign(y=lanes)
    if "drawn" not in marks:
        marks["drawn"] = marks["x"]
    for outcome, colour in OUTCOME_COLOURS.items():
        mine = marks[marks["outcome"] == outcome]
        if mine.empty:
            continue
        spans = mine[mine["span"] > 0]
        if len(spans):
            bars(
                figure,
                (spans["span"] * unit).tolist(),
                spans["y"].tolist(),
                colour,
                _hovers(spans, is_wall),
                base=(spans["x"] * unit).tolist(),
                width=[1.5 * _LANE] * len(spans),
                name=outcome,
                showlegend=False,
                legendgroup=outcome,
                marker={
                    "color": colour,
                    "opacity": 0.45,
                    "line": {"color": [_EDGE if one else colour for one in spans["at_once"]], "width": 1},
                },
                customdata=spans["lookup"].tolist(),
            )
        figure.add(
            "scatter",
            x=(mine["drawn"] * unit).tolist(),
            y=mine["y"].tolist(),
            mode="markers",
            name=outcome,
            legendgroup=outcome,
            marker={
                "color": colour,
                "size": size,
                "symbol": ["diamond" if cache == AOTAUTOGRAD else "circle" for cache in mine["cache"]],
            },
            hovertext=_hovers(mine, is_wall),
            hoverinfo="text",
            customdata=mine["lookup"].tolist(),
        )


@dataclass(frozen=True, slots=True)
class _Mark:
    """A mark on the lane of a run: one lookup, or several at one place."""

    lookup: int
    run: int
    cache: str
    outcome: str
    compile_id: str
    place: str | None
    key: str
    count: int
    x: float
    span: float | None
    at_once: bool


def _hovers(marks: pd.DataFrame, is_wall: bool) -> list[str]:
    made = []
    for row in rows_of(marks, _Mark):
        at = time_of_day(int(row.x * 1e9)) if is_wall else f"{row.x:.3f} s"
        span = f", then {duration(int(row.span * 1e9))}" if row.span else ""
        what = f"lookup {row.lookup}: {row.cache}, {row.outcome}"
        if row.count > 1:
            what = f"{row.count} lookups, {row.cache}, {row.outcome}; the first is {row.lookup}"
        where = f"run {row.run}, compile {row.compile_id[:40]}, key {row.key[:14]}"
        beside = "another run compiled the same key at the same time" if row.at_once and row.span else None
        made.append(hover(what, where, row.place, f"at {at}{span}", beside))
    return made
