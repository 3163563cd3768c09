"""What max-autotune measured: the choices of each operator, and by how much the fastest won."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from math import floor, log10, prod
from operator import attrgetter
from typing import Final

from cachescope.figures.canvas import AXIS, axis_title, canvas, empty, legend_room, note, value_axis
from cachescope.figures.palette import GREEN, GREY, LIGHT, VERMILLION
from cachescope.figures.picture import Picture
from cachescope.figures.texts import escaped, hover, plain, shown
from cachescope.frames.directory_rows import TimingRow
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.wording import plural

_MOST_OPERATORS: Final = 20
_MOST_CHOICES: Final = 60
_PITCH: Final = 48
_LABEL: Final = 72
# A failed choice has no time: its mark is to the right of the slowest, by this factor.
_FAILED: Final = 2
# In powers of ten: a factor of five has two ticks.
_NARROWEST: Final = 0.7
_INPUT: Final = re.compile(r"\('(\w{1,20})', 'torch\.(\w{1,20})', (\d{1,20}(?:, ?-?\d{1,20}){0,40})\)")


def autotune_margins(autotune: Sequence[TimingRow]) -> Picture:
    """The measured choices of each operator on a logarithmic scale of time; the fastest stands out, with its margin.

    The 20 operators whose fastest choice takes longest, with 60 choices each.

    Parameters
    ----------
    autotune : DataFrame or sequence of its rows
        The frame autotune: entry, op, inputs, precision, choice, time_ms, is_failed, is_chosen, margin, device_name.
    """
    if not autotune:
        return empty("Nothing was autotuned: no directory with timings of max-autotune was read.")
    operator = attrgetter("entry", "op", "inputs", "precision", "device_name")
    groups = by_key((operator(row), row) for row in autotune)
    ordered = sorted(groups.values(), key=lambda rows: -_fastest(rows))
    top = ordered[:_MOST_OPERATORS]
    figure = canvas(
        legend_room(3) + _PITCH * len(top) + AXIS,
        margin={"t": legend_room(3), "l": 14, "r": 24},
        xaxis=value_axis(type="log", showgrid=True, **_axis(top), title=axis_title("measured time")),
        yaxis={"range": [len(top) - 0.5, -0.5], "visible": False},
    )  # fmt: skip
    slowest = max((row.time_ms or 0 for rows in top for row in rows), default=0) or 1.0
    _add_choices(figure, top, slowest)
    for y, rows in enumerate(top):
        name = plain(rows[0].op, 30)
        # Where there is no room for all of it, the inputs are cut.
        inputs = shown(input_shapes(rows[0].inputs), _LABEL - len(name))
        figure.annotate(
            text=f"<b>{escaped(name)}</b> · {_won(rows)} · <span style='color:{LIGHT.muted}'>{inputs}</span>",
            xref="paper", x=0, xanchor="left", y=y, yanchor="bottom", yshift=0,
        )  # fmt: skip
    if more := len(ordered) - len(top):
        note(figure, f"{plural(more, 'more operator')} with faster choices not shown")
    return figure


def _axis(groups: list[list[TimingRow]]) -> JsonObject:
    """A scale of powers of ten with ticks at 1, 2 and 5; wide enough for two of them where all times are alike."""
    times = [max(row.time_ms, 1e-6) for rows in groups for row in rows if row.time_ms is not None]
    failed = any(row.time_ms is None for rows in groups for row in rows)
    low, high = log10(min(times, default=1.0)), log10(max(times, default=1.0) * (_FAILED if failed else 1))
    aside = max(0.1, (_NARROWEST - (high - low)) / 2)
    low, high = low - aside, high + aside
    steps = (1, 2, 5) if high - low < 2 else (1,)
    at = [step * 10.0**power for power in range(floor(low), floor(high) + 1) for step in steps]
    return {"range": [low, high], "tickvals": at, "ticktext": [f"{ms:g} ms" for ms in at]}


def _add_choices(figure: Picture, groups: list[list[TimingRow]], slowest: float) -> None:
    marks: defaultdict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for y, rows in enumerate(groups):
        by_time = sorted(rows, key=lambda row: (row.time_ms is None, row.time_ms or 0.0))
        for row in by_time[:_MOST_CHOICES]:
            kind = "failed" if row.time_ms is None else ("fastest" if row.is_chosen else "other choice")
            x = slowest * _FAILED if row.time_ms is None else max(row.time_ms, 1e-6)
            time = "failed" if row.time_ms is None else f"{row.time_ms:.4g} ms"
            said = (row.choice, time, row.op, row.inputs, f"precision {row.precision}", row.device_name)
            marks[kind].append((x, y + 0.2, hover(*said)))
    looks = {
        "fastest": {"color": GREEN, "size": 13, "symbol": "diamond"},
        "other choice": {"color": GREY, "size": 9, "symbol": "circle"},
        "failed": {"color": VERMILLION, "size": 9, "symbol": "square"},
    }
    for kind, look in looks.items():
        if points := marks[kind]:
            x_of, y_of, hovers = map(list, zip(*points, strict=True))
            figure.add(
                "scatter", x=x_of, y=y_of, mode="markers", name=kind, marker=look, hovertext=hovers, hoverinfo="text",
                cliponaxis=False,
            )  # fmt: skip


def _fastest(rows: list[TimingRow]) -> float:
    return min((row.time_ms for row in rows if row.time_ms is not None), default=0.0)


def _won(rows: list[TimingRow]) -> str:
    margin = next((row.margin for row in rows if row.margin is not None), None)
    if margin is None:
        return "the only choice"
    return f"{f'{margin:.2f}' if margin < 10 else f'{margin:,.0f}'}× faster than the next"


def input_shapes(inputs: str) -> str:
    """The inputs of an autotuned operator as people write them; unchanged if they have another form.

    Mirrors ``AlgorithmSelectorCache.key_of`` (torch/_inductor/select_algorithm.py, 2.6 to 2.15): device, dtype, sizes,
    strides and offset of each; 2.15 adds how they were measured. Strides are shown only if they are not those of a contiguous tensor.

    Examples
    --------
    >>> input_shapes("[('cuda', 'torch.float16', 32, 64, 64, 1, 0), ('cuda', 'torch.float16', 64, 8, 1, 64, 0)]")
    '32×64, 64×8 strides 1×64 of float16 on cuda'
    >>> input_shapes("[('cpu', 'torch.float32', 96, 64, 64, 1, 0)]:benchmark_policy=eager")
    '96×64 of float32 on cpu, benchmark_policy=eager'
    """
    tensors, _, measured = inputs.partition("]:")
    found = _INPUT.findall(tensors)
    if not found or _INPUT.sub("", tensors).strip("[](), "):
        return inputs
    kinds = {f"{dtype} on {device}" for device, dtype, _ in found}
    shapes = []
    for device, dtype, numbers in found:
        *sides, offset = map(int, numbers.split(","))
        if len(sides) % 2:
            return inputs
        own = "" if len(kinds) == 1 else f" of {dtype} on {device}"
        shapes.append(_shape(sides[: len(sides) // 2], sides[len(sides) // 2 :], offset) + own)
    of = f" of {kinds.pop()}" if len(kinds) == 1 else ""
    return ", ".join(shapes) + of + (f", {measured}" if measured else "")


def _shape(sizes: list[int], strides: list[int], offset: int) -> str:
    text = "×".join(map(str, sizes)) or "a number"
    contiguous = [prod(sizes[at + 1 :]) for at in range(len(sizes))]
    if strides != contiguous:
        text += f" strides {'×'.join(map(str, strides))}"
    return f"{text} from {offset}" if offset else text
