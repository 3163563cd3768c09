"""All fields of a key as a strip of cells in groups: how much is equal, and what is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cachescope.analysis.differences import FieldChange
from cachescope.components import Detail
from cachescope.figures.canvas import NO_LINES, NOTE, SMALL, canvas, empty, grid, key_marks, legend_room
from cachescope.figures.palette import LIGHT, ORANGE, SKY, VERMILLION, text_on
from cachescope.figures.picture import Picture
from cachescope.figures.texts import hover, plain, shown
from cachescope.frames.answer_rows import ChangeRow
from cachescope.wording import and_more

_PER_LINE: Final = 60
_PITCH: Final = 14
_MOST_CELLS: Final = 900
_NAMED: Final = 12
_LEFT: Final = 130
# In the order of torch's own list; the first pattern that matches counts.
_GROUPS: Final = (
    ("gm", re.compile(r"gm")),
    ("inputs", re.compile(r"(example_inputs|inputs_to_check)\b.*")),
    ("fx_kwargs", re.compile(r"fx_kwargs\b.*")),
    ("autograd", re.compile(r"aot_config|grad_enabled|autograd_config|disable_amp|autocast_state|saved_tensors.*")),
    ("inductor_config", re.compile(r"inductor_config\[.*")),
    ("config, comms", re.compile(r"inductor_config_comms\b.*")),
    ("passes", re.compile(r".*(custom|pass|fusion|partitioner).*")),
    ("system", re.compile(r"(system_info|torch_version|cpp_runtime|default_|cuda_|deterministic|provenance).*")),
)  # fmt: skip
_OTHER: Final = "other"
_EQUAL, _CHANGED, _NEW, _GONE = range(4)


@dataclass(frozen=True, slots=True)
class _Cell:
    field: str
    code: int
    hover: str


def key_difference(changes: Sequence[ChangeRow | FieldChange], fields: Sequence[Detail | str]) -> Picture:
    """All fields of a key as cells in groups, the changed ones in colour, numbered, and named below.

    A group shows 900 cells at most, the changed ones among them.

    Parameters
    ----------
    changes : DataFrame or sequence of its rows
        The frame changes: field, kind, summary.
    fields : DataFrame, or sequence of its rows or of names
        The frame hash_details of the key: field, value_text; or the names of its fields alone.
    """
    texts = dict((one, "") if isinstance(one, str) else (one.field, one.value_text or "") for one in fields)
    if not texts and not changes:
        return empty("No source recorded the hash details of this key, so its fields cannot be shown.")
    changed = {row.field: row for row in changes}
    groups = _groups(changed, texts)
    lines = [(name, cells[at : at + _PER_LINE], at == 0, total)
             for name, cells, total in groups for at in range(0, len(cells), _PER_LINE)]  # fmt: skip
    numbers = {field: n for n, field in enumerate(list(changed)[:_NAMED], 1)}
    listed = max(1, len(numbers) + (len(changed) > _NAMED))
    below = 12 + NOTE * listed
    figure = canvas(
        legend_room(4) + _PITCH * len(lines) + below,
        margin={"l": _LEFT, "t": legend_room(4), "b": below},
        xaxis={"visible": False, "range": [-0.5, _PER_LINE - 0.5]},
        yaxis={
            "range": [len(lines) - 0.5, -0.5],
            "tickvals": [i for i, line in enumerate(lines) if line[2]],
            "ticktext": [f"{name}  <b>{total}</b>" for name, _, first, total in lines if first],
            **NO_LINES,
            "tickfont": {"size": SMALL},
        },
    )
    colours = {"equal": LIGHT.faint, "changed": VERMILLION, "new": SKY, "gone": ORANGE}
    codes = {cell.code for _, cells, _ in groups for cell in cells}
    key_marks(figure, {name: c for i, (name, c) in enumerate(colours.items()) if i in codes})
    pad = [[None] * (_PER_LINE - len(cells)) for _, cells, _, _ in lines]
    z = [[cell.code for cell in line[1]] + rest for line, rest in zip(lines, pad, strict=True)]
    hovers = [[cell.hover for cell in line[1]] + rest for line, rest in zip(lines, pad, strict=True)]
    grid(figure, z, hovers, list(colours.values()), xgap=1, ygap=2)
    for y, line in enumerate(lines):
        for x, cell in enumerate(line[1]):
            if cell.field in numbers:
                font = {"size": 9, "color": text_on(VERMILLION)}
                figure.annotate(text=f"<b>{numbers[cell.field]}</b>", x=x, y=y, font=font)
    _names(figure, changed, numbers)
    return figure


def _names(figure: Picture, changed: dict[str, ChangeRow | FieldChange], numbers: dict[str, int]) -> None:
    lines = [] if numbers else ["no recorded field differs"]
    for field, n in numbers.items():
        # A summary may begin with the field's own name.
        summary = plain(changed[field].summary or "", 200).removeprefix(f"{field}: ")
        said = shown(summary, max(24, 92 - min(len(field), 50)))
        lines.append(f"<b>{n}</b>  {shown(field, 50)}  <span style='color:{LIGHT.muted}'>{said}</span>")
    if len(changed) > len(numbers):
        lines.append(and_more(len(changed) - len(numbers), "field"))
    for i, line in enumerate(lines):
        figure.annotate(
            text=line, xref="paper", x=0, xanchor="left", xshift=-_LEFT + 8, yref="paper", y=0, yanchor="top",
            yshift=-6 - NOTE * i, align="left",
        )  # fmt: skip


def _groups(
    changed: dict[str, ChangeRow | FieldChange], texts: dict[str, str]
) -> list[tuple[str, list[_Cell], int]]:
    """The groups that have fields, each with its cells and its number of fields."""
    found: dict[str, list[_Cell]] = {name: [] for name in (*(name for name, _ in _GROUPS), _OTHER)}
    for field, value in texts.items():
        change = changed.get(field)
        code = _EQUAL if change is None else (_NEW if change.kind == "new" else _CHANGED)
        hover_text = hover(field, change.summary if change else value[:120])
        found[_group(field)].append(_Cell(field, code, hover_text))
    for field, change in changed.items():
        if field not in texts:
            code = _GONE if change.kind == "gone" else _CHANGED
            found[_group(field)].append(_Cell(field, code, hover(field, change.summary)))
    return [(name, _within_bounds(cells), len(cells)) for name, cells in found.items() if cells]


def _within_bounds(cells: list[_Cell]) -> list[_Cell]:
    if len(cells) <= _MOST_CELLS:
        return cells
    # Stable: changed fields go first, and are never among those left out.
    return sorted(cells, key=lambda cell: cell.code == _EQUAL)[:_MOST_CELLS]


def _group(field: str) -> str:
    return next((name for name, pattern in _GROUPS if pattern.fullmatch(field[:300])), _OTHER)
