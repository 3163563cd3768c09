"""Which contexts share an isolation key under which schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from string import ascii_uppercase
from typing import Final

from cachescope.figures.canvas import (
    NO_LINES,
    axis_title,
    empty,
    grid,
    key_marks,
    legend_room,
    note,
    rows_canvas,
)
from cachescope.figures.palette import CYCLE, LIGHT, text_on
from cachescope.figures.picture import Picture
from cachescope.figures.texts import hover, shown
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.sharing_rows import GroupRow
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.wording import listed, plural, short_names

_MOST_SCHEMAS: Final = 30
_MOST_CONTEXTS: Final = 120
_AXIS: Final = 46
# How many letters are as wide as the figure, and of each name at least.
_LINE: Final = 96
_NAME: Final = 8
# Next to long names of schemas the legend takes two lines.
_TOP: Final = legend_room(5)
_ALONE, _UNDECIDED = 0, 1


def context_sharing(context_groups: Sequence[GroupRow], contexts: Sequence[ContextRow]) -> Picture:
    """Which contexts share a key: a row per schema, a column per context, equal colour and letter for an equal key.

    A context that shares its key with no other is faint; one for which that is unknown has a question mark.

    Parameters
    ----------
    context_groups : DataFrame or sequence of its rows
        The frame context_groups: schema, without, group, contexts, isolation_key.
    contexts : DataFrame or sequence of its rows
        The frame contexts: context, source, run, known_from, torch_version, host.
    """
    if not context_groups:
        return empty("There are no contexts: none was captured, and no run with hash details was read.")
    schemas = by_key((row.schema, row) for row in context_groups)
    numbers = sorted({c for groups in schemas.values() for row in groups for c in row.contexts})
    columns = {number: i for i, number in enumerate(numbers[:_MOST_CONTEXTS])}
    shown_schemas = list(schemas.values())[:_MOST_SCHEMAS]
    named = _context_hovers(contexts)
    labels = _schema_labels([groups[0].without for groups in shown_schemas])
    palette = [LIGHT.faint, LIGHT.unknown, *CYCLE]
    on_faint = {_ALONE: LIGHT.text, _UNDECIDED: "#1a1a1a"}
    axis = _context_axis(list(columns), _context_names(contexts))
    figure = rows_canvas(labels, _TOP, 30, below=_AXIS, xaxis=axis)
    marks = {"same letter: same key": CYCLE[0], "shares with none": LIGHT.faint, "? not known": LIGHT.unknown}
    key_marks(figure, marks)
    z: list[list[int | None]] = [[None] * len(columns) for _ in shown_schemas]
    texts = [[""] * len(columns) for _ in shown_schemas]
    for y, groups in enumerate(shown_schemas):
        for row in groups:
            code, letter = _mark(row)
            for context in row.contexts:
                if context not in columns:
                    continue
                x = columns[context]
                z[y][x] = code
                texts[y][x] = hover(named.get(context, f"context {context}"), *_group_lines(row))
                if letter and len(columns) <= 40:
                    colour = on_faint.get(code) or text_on(palette[code])
                    figure.annotate(text=letter, x=x, y=y, font={"size": 12, "color": colour})
    grid(figure, z, texts, palette, xgap=2, ygap=3)
    left = {"more schema": len(schemas) - len(shown_schemas), "more context": len(numbers) - len(columns)}
    if more := " and ".join(plural(count, what) for what, count in left.items() if count):
        note(figure, f"not shown: {more}", below=_AXIS)
    return figure


def _mark(row: GroupRow) -> tuple[int, str]:
    if row.group is None:
        return _UNDECIDED, "?"
    if len(row.contexts) < 2:
        return _ALONE, ""
    group = row.group
    letter = ascii_uppercase[group] if group < len(ascii_uppercase) else str(group)
    # Beyond the palette only the letter distinguishes groups: a repeated colour would join two of them.
    return (2 + group if group < len(CYCLE) else _ALONE), letter


def _group_lines(row: GroupRow) -> list[str | None]:
    without = f"without {', '.join(row.without)}" if row.without else "all forms count"
    if row.group is None:
        return [without, "not decided: a form that counts is not known"]
    count = len(row.contexts)
    share = f"shared by contexts {listed(row.contexts, 12)}" if count > 1 else "shared with no other context"
    key = row.isolation_key
    return [without, share, f"isolation key {key}" if key else "equal by hashes; the key itself is not known"]


def _schema_labels(schemas: Sequence[tuple[str, ...]]) -> list[str]:
    """The forms left out, those first that few schemas leave out, and as many as make every label another."""
    often = Counter(form for without in schemas for form in without)
    ordered = [sorted(without, key=often.__getitem__) for without in schemas]
    labels: list[str] = []
    for count in range(1, max(map(len, ordered), default=0) + 1):
        labels = [_schema_label(without, count) for without in ordered]
        if len(set(labels)) == len(labels):
            break
    return labels or ["all forms" for _ in ordered]


def _schema_label(without: Sequence[str], count: int) -> str:
    if not without:
        return "all forms"
    more = f" and {len(without) - count} more" if len(without) > count else ""
    return shown(f"without {', '.join(without[:count])}", 36 * count) + more


def _context_axis(numbers: list[int], names: dict[int, str]) -> JsonObject:
    longest = max((len(str(names.get(number, number))) for number in numbers), default=0)
    most = _LINE // (min(longest, _NAME) + 1)
    at = list(range(0, len(numbers), -(-len(numbers) // most))) if numbers else []
    return {
        "tickvals": at,
        "ticktext": [shown(names.get(numbers[i], numbers[i]), _LINE // len(at)) for i in at],
        "range": [-0.5, len(numbers) - 0.5],
        **NO_LINES,
        "title": axis_title("context", 4),
    }


def _context_names(contexts: Sequence[ContextRow]) -> dict[int, str]:
    """The run of each context, or the file that it was captured in."""
    files = short_names(row.source for row in contexts if row.run is None and row.source)
    named = {row.context: files.get(row.source or "", str(row.context)) for row in contexts}
    return named | {row.context: f"run {row.run}" for row in contexts if row.run is not None}


def _context_hovers(contexts: Sequence[ContextRow]) -> dict[int, str]:
    made = {}
    for row in contexts:
        facts = {"context": row.context, "run": row.run, "torch": row.torch_version, "host": row.host}
        parts = [f"{name} {value}" for name, value in facts.items() if value is not None]
        made[row.context] = ", ".join(filter(None, [*parts, PurePath(row.source or "").name]))
    return made
