"""Devices with their datasheets: peak dense rates as bars, the other figures in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cachescope.figures.canvas import AXIS, NO_LINES, SMALL, axis_title, bars, canvas, empty, note, value_axis
from cachescope.figures.palette import LIGHT, SKY
from cachescope.figures.picture import Picture
from cachescope.figures.texts import hover, plain, shown
from cachescope.frames.device_rows import DeviceRow
from cachescope.wording import listed, plural

_MOST: Final = 10
_BAR: Final = 18
_HEAD: Final = 46
_LEFT: Final = 52


def device_rates(devices: Sequence[DeviceRow]) -> Picture:
    """The devices seen, each with the peak dense rates, the bandwidth and the memory of its datasheet.

    Ten devices at most, those with a datasheet first. A device without one shows what is known and no number.

    Parameters
    ----------
    devices : DataFrame or sequence of its rows
        The frame devices; missing columns are not shown.
    """
    if not devices:
        return empty("No device was named in what was read.")
    rows = sorted(devices, key=lambda row: not row.rates)
    top = rows[:_MOST]
    pixels = [_HEAD + _BAR * len(row.rates) for row in top]
    height = sum(pixels)
    figure = canvas(
        height + AXIS,
        margin={"l": _LEFT, "r": 12, "t": 4},
        bargap=0,
        xaxis=value_axis(
            rangemode="tozero",
            nticks=7,
            visible=any(row.rates for row in top),
            title=axis_title("peak dense rate, TFLOPS (int8: TOPS)"),
        ),
        # In pixels from the top: headings and bars have heights of their own.
        yaxis={"range": [height, 0], **NO_LINES, "tickfont": {"size": SMALL}},
    )
    drawn: list[tuple[float, float, str, str, str]] = []
    y = 0
    for row, tall in zip(top, pixels, strict=True):
        said = (f"<b>{shown(row.name, 60)}</b>", shown(", ".join(_facts(row)), 108))
        for text, shift, colour in zip(said, (4, 22), (LIGHT.text, LIGHT.muted), strict=True):
            figure.annotate(
                text=text, xref="paper", x=0, xanchor="left", xshift=8 - _LEFT, y=y, yanchor="top", yshift=-shift,
                align="left", font={"color": colour, "size": 12 if shift == 4 else 11},
            )  # fmt: skip
        seen = f"seen in {listed(row.seen_in, 3)}" if row.seen_in else None
        for i, (dtype, rate, unit) in enumerate(row.rates):
            text_shown = hover(
                f"{row.name}, {dtype}: {rate:,g} {unit}", row.matched_by, row.datasheet_note, row.source, seen
            )
            drawn.append((rate, y + _HEAD - 4 + _BAR * (i + 0.5), dtype, f"{rate:,g}", text_shown))
        y += tall
    rates, at, dtypes, texts, hovers = map(list, zip(*drawn, strict=True)) if drawn else ([], [], [], [], [])
    look = {"textposition": "outside", "textfont": {"size": 11}, "cliponaxis": False, "showlegend": False}
    bars(figure, rates, at, SKY, hovers, width=[_BAR * 0.72] * len(rates), text=texts, **look)
    most = max(rates, default=1.0)
    figure.lay_out(xaxis={"range": [0, most * 1.12]}, yaxis={"tickvals": at, "ticktext": dtypes})
    if more := len(rows) - len(top):
        note(figure, f"{plural(more, 'more device')} not shown")
    return figure


def _facts(row: DeviceRow) -> list[str]:
    """What is known of a device, in the words of its frame."""
    facts, seen = ["no datasheet"], []
    if row.datasheet is not None:
        figures = ((row.datasheet_bandwidth_gbs, "GB/s"), (row.datasheet_memory_gb, "GB"))
        known = (f"{number:,g} {unit}" for number, unit in figures if number is not None)
        facts = [f"datasheet: {plain(row.datasheet, 40)}", *known]
    if row.memory_bytes is not None:
        # In GiB: a board sold with "80 GB" reports about 79 GiB, and 85 GB would look like another one.
        seen.append(f"{row.memory_bytes / 2**30:.1f} GiB")
    if row.sm_count is not None:
        seen.append(plural(row.sm_count, "core" if row.type == "cpu" else "SM"))
    if row.arch is not None:
        seen.append(row.arch[:40])
    return facts + ([f"seen: {seen[0]}", *seen[1:]] if seen else [])
