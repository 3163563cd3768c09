"""Where the time of compiling went: the phases of each run, side by side."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from cachescope.figures.canvas import empty, legend_room, note, stacked_rows, time_axis
from cachescope.figures.folding import Folded, folded_runs
from cachescope.figures.palette import CYCLE, GREY, text_on
from cachescope.figures.picture import Picture
from cachescope.figures.texts import hover, shown
from cachescope.wording import duration, percent, plural

_OTHERS: Final = "other phases"
_LEAST_SHARE_WITH_TEXT: Final = 0.06


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
    named = [str(name) for name in ordered.index[: len(CYCLE)]]
    colours = dict(zip(named, CYCLE, strict=False))
    if len(ordered) > len(named):
        colours[_OTHERS] = GREY
    part = phases["phase"].where(phases["phase"].isin(named), _OTHERS)
    times = (
        phases.assign(row=phases["run"].map(rows.row_of), part=part)
        .groupby(["row", "part"])["self_time_ns"]
        .sum()
    )
    totals = times.groupby("row").sum()
    seconds = time_axis(dark, totals.max() / 1e9)
    figure = stacked_rows(rows.labels, legend_room(len(colours)), dark, xaxis=seconds)
    for name, colour in colours.items():
        _add_phase(figure, name, colour, times, totals, rows)
    if rows.folded:
        note(figure, f"{plural(rows.members, 'run')} in {len(rows.labels)} rows: neighbours share one", dark)
    return figure


def _add_phase(
    figure: Picture, name: str, colour: str, times: pd.Series[Any], totals: pd.Series[Any], rows: Folded
) -> None:
    mine = times[times.index.get_level_values("part") == name].droplevel("part")
    of_row = {int(row): int(ns) for row, ns in zip(mine.index.tolist(), mine.tolist(), strict=True)}
    shares = {row: ns / int(totals[row]) if totals[row] else 0.0 for row, ns in of_row.items()}
    figure.add(
        "bar",
        x=[ns / 1e9 for ns in of_row.values()],
        y=list(of_row),
        orientation="h",
        name=shown(name),
        marker={"color": colour, "line": {"width": 0}},
        text=[duration(ns) if shares[row] >= _LEAST_SHARE_WITH_TEXT else "" for row, ns in of_row.items()],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"color": text_on(colour)},
        hovertext=[
            hover(
                rows.labels[row],
                f"{name}: {duration(ns)}, {percent(shares[row])} of {duration(int(totals[row]))}",
            )
            for row, ns in of_row.items()
        ],
        hoverinfo="text",
        customdata=[[rows.first[row]] for row in of_row],
    )
