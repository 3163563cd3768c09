"""What all figures share: no background, a theme, room for legend, titles and notes, where time begins, the order of compiles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cachescope.figures.palette import LIGHT, text_on
from cachescope.figures.picture import Picture
from cachescope.figures.texts import wrapped
from cachescope.frames.recorded_rows import RunRow
from cachescope.json_types import JsonObject
from cachescope.wording import duration

FONT: Final = 12
SMALL: Final = 11
_LEGEND: Final = 30
_LEGEND_LINE: Final = 16
_KINDS_ON_ONE_LINE: Final = 4
PANEL_TITLE: Final = 24
NOTE: Final = 18
AXIS: Final = 44
# The first tick of a date axis has the date on a second line.
DATES: Final = 62
NO_LINES: Final[JsonObject] = {"showgrid": False, "zeroline": False, "ticks": ""}
"""Of an axis that has labels alone."""
# In seconds: from a quarter of a minute to a hundred hours.
_TIME_STEPS: Final = (
    15.0, 30.0, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000,
)  # fmt: skip
_TIME_TICKS: Final = 6

# Dragging zooms and a double click resets; more buttons would cover the legend. And nothing is sent anywhere.
_NO_BUTTONS: Final = [
    "select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d", "zoom2d", "pan2d", "sendChartToCloud",
]  # fmt: skip
_NUMBER: Final = re.compile(r"\d{1,9}")


def legend_room(kinds: int) -> int:
    """Pixels above the plot for a legend; room for two lines if it may need them."""
    return _LEGEND + (_LEGEND_LINE if kinds > _KINDS_ON_ONE_LINE else 0)


def canvas(height: int, **layout: Any) -> Picture:
    """An empty figure in the theme, as wide as its place; `layout` is merged over it."""
    base: dict[str, Any] = {
        # An empty template: the figure looks the same whatever plotly.io.templates.default is.
        "template": {},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": LIGHT.text, "size": FONT, "family": "system-ui, sans-serif"},
        "height": height,
        "margin": {"l": 8, "r": 12, "t": 8, "b": AXIS},
        "hoverlabel": {
            "bgcolor": LIGHT.surface,
            "bordercolor": LIGHT.muted,
            "font": {"color": LIGHT.text, "size": FONT},
            "align": "left",
        },
        "legend": {
            "orientation": "h",
            "yref": "container",
            "y": 1,
            "yanchor": "top",
            "xref": "container",
            "x": 0,
            "xanchor": "left",
            "itemsizing": "constant",
            "traceorder": "normal",
        },
        "modebar": {
            "bgcolor": "rgba(0,0,0,0)",
            "color": LIGHT.muted,
            "activecolor": LIGHT.text,
            "remove": _NO_BUTTONS,
        },
        "uniformtext": {"mode": "hide", "minsize": 9},
    }
    figure = Picture(base)
    figure.lay_out(**layout)
    return figure


def rows_canvas(
    labels: Sequence[str],
    top: int,
    pixels: float | None = None,
    *,
    least: int = 44,
    below: int = AXIS,
    rows: JsonObject | None = None,
    **layout: Any,
) -> Picture:
    """A canvas with a row per label, below `top` pixels; `rows` are settings of the axis with the labels."""
    tall = pixels or max(11.0, min(30.0, 600 / len(labels)))
    height = int(top + max(least, tall * len(labels)) + below)
    axis = _row_axis(labels, tall) | (rows or {})
    return canvas(height, margin={"t": top, "b": below}, yaxis=axis, **layout)


def stacked_rows(labels: Sequence[str], top: int, **layout: Any) -> Picture:
    """A canvas for stacked bars, a row per label, below `top` pixels."""
    return rows_canvas(labels, top, barmode="stack", bargap=0.25, **layout)


def bars(figure: Picture, x: list[Any], y: list[Any], colour: Any, hovers: list[str], **trace: Any) -> None:
    """Bars from left to right, each with its hover text."""
    marker = {"color": colour, "line": {"width": 0}}
    bar = {"orientation": "h", "marker": marker, "hovertext": hovers, "hoverinfo": "text", **trace}
    figure.add("bar", x=x, y=y, **bar)


def grid(figure: Picture, codes: list[Any], texts: list[Any], colours: Sequence[str], **trace: Any) -> None:
    """Cells in colours by whole numbers, each with its hover text."""
    count = len(colours)
    steps = [(edge / count, colour) for i, colour in enumerate(colours) for edge in (i, i + 1)]
    look = {"colorscale": steps, "zmin": -0.5, "zmax": count - 0.5, "showscale": False}
    figure.add("heatmap", z=codes, text=texts, hoverinfo="text", hoverongaps=False, **look, **trace)


def empty(reason: str) -> Picture:
    """A figure without marks that states why there are none."""
    hidden = {"visible": False, "range": [0, 1]}
    figure = canvas(140, xaxis=hidden, yaxis=dict(hidden), margin={"l": 8, "r": 8, "t": 8, "b": 8})
    figure.annotate(text=wrapped(reason, 84), x=0.5, y=0.5, font={"color": LIGHT.muted})
    return figure


def axis_title(text: str, standoff: int = 6) -> JsonObject:
    """A small title of an axis."""
    return {"text": text, "font": {"size": SMALL}, "standoff": standoff}


def inside_text(colour: str, anchor: str = "middle") -> JsonObject:
    """The settings of texts within bars of a colour."""
    font = {"color": text_on(colour)}
    return {"textposition": "inside", "insidetextanchor": anchor, "textangle": 0, "textfont": font}


def value_axis(**settings: Any) -> JsonObject:
    """An axis of amounts: thin grid lines, no zero line."""
    base = {"gridcolor": LIGHT.grid, "zeroline": False, "ticks": "", "tickfont": {"size": SMALL}}
    return {**base, **settings}


def time_axis(longest_s: float, **settings: Any) -> JsonObject:
    """An axis of durations in seconds, from 0; from a minute on its ticks say minutes and hours, as texts do."""
    if longest_s < 60:
        return value_axis(rangemode="tozero", ticksuffix=" s", nticks=8, **settings)
    step = next((step for step in _TIME_STEPS if longest_s / step <= _TIME_TICKS), longest_s / _TIME_TICKS)
    at = [step * count for count in range(1 + int(longest_s / step))]
    texts = [f"{at_s:.0f} s" if at_s < 60 else duration(round(at_s * 1e9)) for at_s in at]
    return value_axis(rangemode="tozero", tickvals=at, ticktext=texts, **settings)


def count_axis(largest: int, **settings: Any) -> JsonObject:
    """An axis of whole numbers, from 0."""
    steps = {"dtick": 1} if largest < 6 else {"nticks": 6}
    return value_axis(rangemode="tozero", tickformat=",d", **steps, **settings)


def _row_axis(labels: Sequence[str], pixels: float) -> JsonObject:
    """An axis with one row per label, the first on top; labels are thinned if rows are narrow."""
    step = max(1, -(-14 // max(1, int(pixels))))
    at = list(range(0, len(labels), step))
    return {
        "tickvals": at,
        "ticktext": [labels[i] for i in at],
        "range": [len(labels) - 0.5, -0.5],
        **NO_LINES,
        "tickfont": {"size": SMALL},
        "automargin": True,
        "ticklabelstandoff": 6,
    }


def panel_title(figure: Picture, text: str, axis: str = "x") -> None:
    """A left-aligned title above a panel."""
    place = {
        "xref": f"{axis} domain",
        "x": 0,
        "xanchor": "left",
        "yref": "paper",
        "y": 1,
        "yanchor": "bottom",
    }
    figure.annotate(text=text, **place, align="left")


def note(figure: Picture, *remarks: str, below: int = AXIS) -> None:
    """Remarks below the plot, those that are not empty; makes room for itself."""
    said = [text for text in remarks if text]
    if not said:
        return
    lines = wrapped("; ".join(said), 100)
    figure.annotate(
        text=lines, xref="paper", x=0, xanchor="left", yref="paper", y=0, yanchor="top", yshift=-below + 4,
        align="left", font={"size": SMALL, "color": LIGHT.muted},
    )  # fmt: skip
    room = NOTE * (1 + lines.count("<br>"))
    layout = figure.layout
    figure.lay_out(margin={"b": below + room}, height=layout["height"] + room + below - layout["margin"]["b"])


def key_marks(figure: Picture, colours: dict[str, str]) -> None:
    """A legend for marks without a trace, such as the colours of a heatmap."""
    for name, colour in colours.items():
        figure.add(
            "scatter", x=[None], y=[None], mode="markers", name=name, hoverinfo="skip", showlegend=True,
            marker={"color": colour, "symbol": "square", "size": 11},
        )  # fmt: skip


def origins(
    runs: Iterable[RunRow], spans: Mapping[int, Sequence[tuple[int, int]]], joins: bool = True
) -> tuple[dict[int, int], str]:
    """The moment from which time counts in each run, of which spans are known, and what to call it."""
    start = {run: min(begun for begun, _ in mine) for run, mine in spans.items()}
    for row in runs:
        if row.run in start and row.start_time is not None:
            start[row.run] = min(start[row.run], row.start_time)
    first_end = min(max(ended for _, ended in mine) for mine in spans.values())
    if joins and len(start) > 1 and max(start.values()) < first_end:
        return dict.fromkeys(start, min(start.values())), "since the first run began"
    return start, "since the run began"


def compile_order(compile_id: str) -> tuple[tuple[int, ...], str]:
    """A sort key: ``0/10`` comes after ``0/9``, an id without a number first.

    Examples
    --------
    >>> sorted(["0/10", "0/9", "-"], key=compile_order)
    ['-', '0/9', '0/10']
    """
    return tuple(int(part) for part in _NUMBER.findall(compile_id)[:6]), compile_id
