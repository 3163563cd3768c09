"""When the files of a cache directory were written."""

from __future__ import annotations

from typing import Final

import pandas as pd

from cachescope.figures.canvas import DATES, canvas, count_axis, empty, legend_room, note
from cachescope.figures.palette import GREY, KIND_COLOURS
from cachescope.figures.picture import Picture
from cachescope.figures.sizes import NO_FILES
from cachescope.figures.texts import hover, plain, shown
from cachescope.wording import file_size, plural

_BINS: Final = 40
_FEWEST_STEPS: Final = 12


def entry_ages(entries: pd.DataFrame, *, dark: bool = False) -> Picture:
    """When files were last written: a histogram of 40 steps, stacked by kind.

    Parameters
    ----------
    entries : DataFrame
        The frame entries: cache, modified_time, size_bytes.
    dark : bool
        For a dark background.
    """
    if entries.empty:
        return empty(NO_FILES, dark)
    timed = entries[entries["modified_time"].notna()]
    if timed.empty:
        return empty("No file has a time.", dark)
    moments = timed["modified_time"].astype("int64")
    first = int(moments.min())
    # Whole seconds: a directory filled at once is one bar.
    width = max(10**9, -(-(int(moments.max()) - first + 1) // _BINS))
    bins = (moments - first) // width
    counts = timed.assign(bin=bins).groupby(["cache", "bin"])["size_bytes"].agg(["size", "sum"])
    # A directory filled at once is a bar in the middle, not a wall.
    steps = max(_FEWEST_STEPS, int(bins.max()) + 1)
    left = first - (steps - 1 - int(bins.max())) * width // 2
    largest = int(counts["size"].groupby("bin").sum().max())
    kinds = timed["cache"].value_counts()
    drawn = [kind for kind in KIND_COLOURS if kind in kinds.index]
    others = [kind for kind in kinds.index if kind not in KIND_COLOURS]
    series = [(kind, [kind]) for kind in drawn] + ([("other kinds", others)] if others else [])
    top = legend_room(len(series)) + 8
    figure = canvas(
        dark,
        top + 260 + DATES,
        barmode="stack",
        bargap=0.08,
        margin={"t": top, "l": 48, "b": DATES},
        yaxis=count_axis(dark, largest, title={"text": "files", "font": {"size": 11}}),
        xaxis={
            "type": "date", "range": [_moment(left), _moment(left + steps * width)], "showgrid": False, "zeroline": False, "tickfont": {"size": 11}, "nticks": 7,
            "title": {"text": "last written (UTC)", "font": {"size": 11}, "standoff": 6},
        },
    )  # fmt: skip
    for name, members in series:
        mine = counts[counts.index.get_level_values("cache").isin(members)].groupby("bin").sum()
        at = [int(step) for step in mine.index]
        figure.add(
            "bar",
            x=[_moment(first + step * width + width // 2) for step in at],
            y=[int(n) for n in mine["size"]],
            width=[width / 1e6 * 0.92] * len(at),
            name=shown(name),
            marker={"color": KIND_COLOURS.get(name, GREY), "line": {"width": 0}},
            hovertext=[
                hover(
                    name,
                    f"{plural(int(n), 'file')}, {file_size(int(size))}",
                    f"from {_moment(first + step * width)[:19]} on".replace("T", " "),
                )
                for step, n, size in zip(at, mine["size"], mine["sum"], strict=True)
            ],
            hoverinfo="text",
        )
    remarks = []
    if len(timed) < len(entries):
        remarks.append(f"{plural(len(entries) - len(timed), 'file')} without a time not shown")
    if others:
        remarks.append(f"other kinds: {', '.join(sorted(plain(str(kind), 24) for kind in others))}")
    if remarks:
        note(figure, "; ".join(remarks), dark, below=DATES)
    return figure


def _moment(ns: int) -> str:
    return pd.Timestamp(ns, unit="ns").isoformat(timespec="milliseconds")
