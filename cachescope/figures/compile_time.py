"""Where the time of compiling went: compiles as bars over time, and the phases of each run side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from cachescope.columns import rows_of
from cachescope.figures.canvas import (
    axis_title,
    bars,
    empty,
    inside_text,
    legend_room,
    note,
    origins,
    rows_canvas,
    stacked_rows,
    time_axis,
    value_axis,
)
from cachescope.figures.folding import by_row, folded_runs
from cachescope.figures.palette import COMPILE_COLOURS, GREY, PHASE_COLOURS
from cachescope.figures.picture import Picture
from cachescope.figures.texts import hover, place_labels, shown
from cachescope.wording import duration, percent, plural

_MOST_BARS: Final = 2500
_MOST_LANES: Final = 4
_FILLED: Final = 0.84
_LEAST_COMPILE_WITH_TEXT: Final = 0.08
_LEAST_SHARE_WITH_EDGE: Final = 0.005
_EDGE: Final = "rgba(0,0,0,0.45)"

_OTHERS: Final = "other phases"
_PHASES: Final = 8
_LEAST_PHASE_WITH_TEXT: Final = 0.06


def compiles(compiles: pd.DataFrame, runs: pd.DataFrame, *, dark: bool = False) -> Picture:
    """Compiles over time: a bar for each, as long as it took, coloured by why it was compiled.

    One row per run; a compile within another is a bar below it. Time counts from the start of the run, or of the
    first run if all ran at once. If there are very many compiles, neighbours of one kind share a bar. Bars are clickable:
    ``customdata`` holds the run and the (first) compile id.

    Parameters
    ----------
    compiles : DataFrame
        Columns run, compile_id, kind, function, file, line, start_time, time_taken_ns, recompile_reasons, error.
    runs : DataFrame
        Columns run, rank, start_time.
    dark : bool
        For a dark background.
    """
    if compiles.empty:
        return empty("No compile was read: they are in the files that TORCH_TRACE writes.", dark)
    timed = compiles[compiles["start_time"].notna() & compiles["time_taken_ns"].notna()]
    if timed.empty:
        return empty("No compile has an end in its log: the processes ended in them, or still run.", dark)
    placed, since = _placed(timed, runs)
    folded = folded_runs(placed["run"], runs)
    placed["row"] = placed["run"].map(folded.row_of)
    is_shared = len(placed) > _MOST_BARS
    if is_shared:
        placed = _shared(placed, len(folded.labels))
    lanes = int(placed["lane"].max()) + 1
    pixels = max(12.0, min(20.0 + 14 * lanes, 640 / len(folded.labels)))
    top = legend_room(placed["kind"].nunique())
    seconds = value_axis(dark, rangemode="tozero", ticksuffix=" s", nticks=8, title=axis_title(since))
    figure = rows_canvas(folded.labels, top, dark, pixels, least=60, barmode="overlay", xaxis=seconds)
    _draw(figure, placed, lanes, is_named=not folded.folded)
    note(figure, dark, *_remarks(compiles, timed, len(placed) if is_shared else 0, folded.folded))
    return figure


def _placed(timed: pd.DataFrame, runs: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Each compile with its first second (x), the seconds that it took, and its lane: how many others it is within."""
    span = timed["time_taken_ns"].astype("int64").clip(lower=0)
    end = timed["start_time"] + pd.to_timedelta(span, unit="ns")
    of_run = timed["run"]
    start, since = origins(runs, timed.groupby("run")["start_time"].min(), end.groupby(of_run).max())
    bars = pd.DataFrame(
        {
            "run": of_run.astype(int),
            "x": (timed["start_time"] - of_run.map(start)).dt.total_seconds().astype(float),
            "span": span / 1e9,
            "kind": timed["kind"],
            "compile_id": timed["compile_id"],
            "place": place_labels(timed).fillna("?"),
            "reason": [reasons[0] if len(reasons) else None for reasons in timed["recompile_reasons"]],
            "error": timed["error"],
            "count": 1,
        }
    )
    bars = bars.sort_values(["run", "x", "span"], ascending=[True, True, False], kind="stable")
    lanes = list(_lanes(bars["run"].to_numpy(), bars["x"].to_numpy(), bars["span"].to_numpy()))
    return bars.assign(lane=lanes).reset_index(drop=True), since


def _lanes(
    runs: np.ndarray[Any, Any], starts: np.ndarray[Any, Any], spans: np.ndarray[Any, Any]
) -> Iterator[int]:
    """How many open bars of its run each begins in; no more than there are lanes."""
    ends: list[float] = []
    before = None
    for run, start, span in zip(runs.tolist(), starts.tolist(), spans.tolist(), strict=True):
        ends = ends if run == before else []
        before = run
        while ends and ends[-1] <= start:
            ends.pop()
        yield min(len(ends), _MOST_LANES - 1)
        ends.append(start + span)


def _shared(bars: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Merge neighbours of one row, lane and kind into one bar."""
    bins = max(4, _MOST_BARS // (rows * int(bars["lane"].max() + 1) * bars["kind"].nunique()))
    step = (bars["x"].max() - bars["x"].min() or 1.0) / bins
    bars = bars.assign(bin=((bars["x"] - bars["x"].min()) / step).astype(int), end=bars["x"] + bars["span"])
    merged = bars.groupby(["row", "lane", "kind", "bin"], as_index=False, sort=True).agg(
        run=("run", "first"), x=("x", "min"), end=("end", "max"), count=("count", "sum"),
        compile_id=("compile_id", "first"), place=("place", "first"), reason=("reason", "first"), error=("error", "first"),
    )  # fmt: skip
    return merged.assign(span=merged["end"] - merged["x"])


def _remarks(compiles: pd.DataFrame, timed: pd.DataFrame, shared: int, is_folded: bool) -> Iterator[str]:
    if is_folded:
        yield f"{compiles['run'].nunique()} runs, neighbours share a row"
    if shared:
        yield f"{plural(len(timed), 'compile')} in {plural(shared, 'bar')}"
    if more := len(compiles) - len(timed):
        yield f"{plural(more, 'compile')} without an end in the log not shown"


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar: one compile, or several at one place."""

    run: int
    compile_id: str
    kind: str
    place: str
    reason: str | None
    error: str | None
    count: int
    x: float
    span: float


def _draw(figure: Picture, placed: pd.DataFrame, lanes: int, *, is_named: bool) -> None:
    height = _FILLED / lanes
    whole = float((placed["x"] + placed["span"]).max() - min(0.0, placed["x"].min())) or 1.0
    # Kinds of the palette first: a legend in one order, whatever was compiled first.
    for kind in sorted(placed["kind"].unique(), key=[*COMPILE_COLOURS].index):
        mine = placed[placed["kind"] == kind]
        rows = rows_of(mine, _Bar)
        colour = COMPILE_COLOURS[kind]
        # Bars of runs that share a row lie over each other, and so would their names.
        is_wide = [
            is_named and row.span / whole >= _LEAST_COMPILE_WITH_TEXT and row.count == 1 for row in rows
        ]
        bars(
            figure,
            [row.span for row in rows],
            (mine["row"] - _FILLED / 2 + (mine["lane"] + 0.5) * height).tolist(),
            colour,
            [_hover(row) for row in rows],
            base=[row.x for row in rows],
            width=[height * 0.92] * len(rows),
            name=kind,
            marker={
                "color": colour,
                # Divides neighbours; and without a border of its colour, what takes a millisecond of an hour is not seen.
                "line": {
                    "width": 1,
                    "color": [_EDGE if row.span / whole > _LEAST_SHARE_WITH_EDGE else colour for row in rows],
                },
            },
            showlegend=True,
            text=[shown(f"{row.place} [{row.compile_id}]", 60) if wide else "" for row, wide in zip(rows, is_wide, strict=True)],
            **inside_text(colour, "start"),
            customdata=[[row.run, row.compile_id[:40]] for row in rows],
        )  # fmt: skip


def _hover(row: _Bar) -> str:
    if row.count > 1:
        return hover(
            f"{row.count} compiles, {row.kind}; the first is {row.compile_id[:40]}: {row.place}",
            f"run {row.run}, from {row.x:.3f} s to {row.x + row.span:.3f} s",
        )
    return hover(
        row.place,
        f"run {row.run}, compile {row.compile_id[:40]}, {row.kind}",
        f"at {row.x:.3f} s, {duration(int(row.span * 1e9))}",
        None if row.reason is None else f"guard of {row.reason}",
        None if row.error is None else f"failed: {row.error}",
    )


def phases(phases: pd.DataFrame, runs: pd.DataFrame, *, dark: bool = False) -> Picture:
    """Self time of each phase per run: stacked bars, a row per run, the longest phases first.

    Beyond 64 runs, neighbours share a row.

    Parameters
    ----------
    phases : DataFrame
        Columns run, phase, self_time_ns.
    runs : DataFrame
        Columns run, rank, start_time.
    dark : bool
        For a dark background.
    """
    if phases.empty:
        return empty("No trace with events was read: they are in the files that TORCH_TRACE writes.", dark)
    rows = folded_runs(phases["run"], runs)
    ordered = phases.groupby("phase")["self_time_ns"].sum().sort_values(ascending=False, kind="stable")
    coloured = [str(name) for name in ordered.index if name in PHASE_COLOURS]
    named = coloured[:_PHASES]
    colours = {name: PHASE_COLOURS[name] for name in named}
    if len(ordered) > len(named):
        colours[_OTHERS] = GREY
    part = phases["phase"].where(phases["phase"].isin(named), _OTHERS)
    placed = phases.assign(row=phases["run"].map(rows.row_of), part=part)
    times = placed.groupby(["row", "part"])["self_time_ns"].sum()
    totals = times.groupby("row").sum()
    seconds = time_axis(dark, totals.max() / 1e9)
    figure = stacked_rows(rows.labels, legend_room(len(colours)), dark, xaxis=seconds)
    for name, colour in colours.items():
        of_row = by_row(times, "part", name)
        shares = {row: ns / int(totals[row]) if totals[row] else 0.0 for row, ns in of_row.items()}
        of_all = {row: f"{percent(shares[row])} of {duration(int(totals[row]))}" for row in of_row}
        bars(
            figure,
            [ns / 1e9 for ns in of_row.values()],
            list(of_row),
            colour,
            [hover(rows.labels[row], f"{name}: {duration(ns)}, {of_all[row]}") for row, ns in of_row.items()],
            name=shown(name),
            text=[
                duration(ns) if shares[row] >= _LEAST_PHASE_WITH_TEXT else "" for row, ns in of_row.items()
            ],
            **inside_text(colour),
            customdata=[[rows.first[row]] for row in of_row],
        )
    note(figure, dark, rows.remark)
    return figure
