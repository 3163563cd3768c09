"""What max-autotune measured: the choices of each operator, and by how much the fastest won."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import Final

import pandas as pd
import plotly.graph_objects as go

from cachescope.columns import rows_of
from cachescope.figures.canvas import AXIS, canvas, empty, legend_room, note, value_axis
from cachescope.figures.palette import GREEN, GREY, VERMILLION, theme
from cachescope.figures.texts import escaped, hover, plain, shown
from cachescope.json_types import JsonObject
from cachescope.wording import plural

_MOST_OPERATORS: Final = 20
_MOST_CHOICES: Final = 60
_PITCH: Final = 48
_LABEL: Final = 72


@dataclass(frozen=True, slots=True)
class _Choice:
    """A measured choice of an operator."""

    entry: int
    op: str
    inputs: str
    precision: str
    choice: str
    time_ms: float | None
    is_chosen: bool
    margin: float | None
    device_name: str | None


def autotune_margins(autotune: pd.DataFrame, *, dark: bool = False) -> go.Figure:
    """The measured choices of each operator on a logarithmic scale of time; the fastest stands out, with its margin.

    The 20 operators whose fastest choice takes longest, with 60 choices each.

    Parameters
    ----------
    autotune : DataFrame
        The frame autotune: entry, op, inputs, precision, choice, time_ms, is_failed, is_chosen, margin, device_name.
    dark : bool
        For a dark background.
    """
    if autotune.empty:
        return empty("Nothing was autotuned: no directory with timings of max-autotune was read.", dark)
    groups: dict[tuple[object, ...], list[_Choice]] = {}
    for row in rows_of(autotune, _Choice):
        place = (row.entry, row.op, row.inputs, row.precision, row.device_name)
        groups.setdefault(place, []).append(row)
    ordered = sorted(groups.values(), key=lambda rows: -_fastest(rows))
    top = ordered[:_MOST_OPERATORS]
    figure = canvas(
        dark,
        legend_room(3) + _PITCH * len(top) + AXIS,
        margin={"t": legend_room(3), "l": 14, "r": 24},
        xaxis=value_axis(
            dark, type="log", showgrid=True, **_ticks(top),
            title={"text": "measured time", "font": {"size": 11}, "standoff": 6},
        ),
        yaxis={"range": [len(top) - 0.5, -0.5], "visible": False},
    )  # fmt: skip
    slowest = max((row.time_ms or 0 for rows in top for row in rows), default=0) or 1.0
    _add_choices(figure, top, slowest)
    for y, rows in enumerate(top):
        margin = next((row.margin for row in rows if row.margin is not None), None)
        won = f"<b>{_times(margin)}</b> faster than the next" if margin is not None else "the only choice"
        figure.add_annotation(
            text=_operator(rows[0]), xref="paper", x=0, xanchor="left", y=y, yanchor="bottom", yshift=0,
            showarrow=False,
        )  # fmt: skip
        figure.add_annotation(
            text=won, xref="paper", x=1, xanchor="right", y=y, yanchor="bottom", showarrow=False,
            font={"size": 11, "color": theme(dark).muted},
        )  # fmt: skip
    if len(ordered) > len(top):
        note(
            figure, f"{plural(len(ordered) - len(top), 'more operator')} with faster choices not shown", dark
        )
    return figure


def _ticks(groups: list[list[_Choice]]) -> JsonObject:
    """Powers of ten, with 2 and 5 between them if there is room: plotly's own ticks between them lack a unit."""
    times = [max(row.time_ms, 1e-6) for rows in groups for row in rows if row.time_ms is not None]
    first, last = (floor(log10(edge)) for edge in (min(times, default=1.0), max(times, default=1.0)))
    steps = (1, 2, 5) if last - first < 2 else (1,)
    at = [step * 10.0**power for power in range(first - 1, last + 2) for step in steps]
    return {"tickvals": at, "ticktext": [f"{value:g} ms" for value in at]}


def _add_choices(figure: go.Figure, groups: list[list[_Choice]], slowest: float) -> None:
    marks: dict[str, list[tuple[float, float, str]]] = {"fastest": [], "other choice": [], "failed": []}
    for y, rows in enumerate(groups):
        by_time = sorted(rows, key=lambda row: (row.time_ms is None, row.time_ms or 0.0))
        for row in by_time[:_MOST_CHOICES]:
            kind = "failed" if row.time_ms is None else ("fastest" if row.is_chosen else "other choice")
            # A failed choice has no time: it is placed to the right of all others.
            x = slowest * 2 if row.time_ms is None else max(row.time_ms, 1e-6)
            time = "failed" if row.time_ms is None else f"{row.time_ms:.4g} ms"
            said = hover(
                row.choice,
                time,
                row.op,
                row.inputs,
                f"precision {row.precision}",
                row.device_name,
            )
            marks[kind].append((x, y + 0.2, said))
    looks = {
        "fastest": {"color": GREEN, "size": 13, "symbol": "diamond"},
        "other choice": {"color": GREY, "size": 9, "symbol": "circle"},
        "failed": {"color": VERMILLION, "size": 9, "symbol": "x"},
    }
    for kind, points in marks.items():
        if points:
            figure.add_scatter(
                x=[x for x, _, _ in points], y=[y for _, y, _ in points], mode="markers", name=kind,
                marker=looks[kind], hovertext=[said for _, _, said in points], hoverinfo="text", cliponaxis=False,
            )  # fmt: skip


def _fastest(rows: list[_Choice]) -> float:
    return min((row.time_ms for row in rows if row.time_ms is not None), default=0.0)


def _operator(row: _Choice) -> str:
    op = plain(row.op, 30)
    return f"<b>{escaped(op)}</b>  {shown(row.inputs, _LABEL - len(op))}"


def _times(margin: float) -> str:
    return f"{margin:.2f}×" if margin < 10 else f"{margin:,.0f}×"
