"""What counts in a key, as check boxes: the isolation schema as a tree, and the fields that would help most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final

import traitlets

from cachescope.answers.names import short_fields
from cachescope.frames.replay_rows import SensitivityRow
from cachescope.json_types import JsonObject
from cachescope.report.blocks import Toggle
from cachescope.report.what_if_forms import NO_FIELD, SAFETY, field_note, saves
from cachescope.views.widget_base import STYLE, Control, script
from cachescope.wording import and_more, harmless, listed

_MOST: Final = 20
_NAMED: Final = 6


class Tree(Control):
    """Check boxes for what counts; what does not count is in `off`."""

    _esm = script("make.js", "tree.js", "tree_widget.js")
    _css = STYLE

    groups: Any = traitlets.List().tag(sync=True)
    off: Any = traitlets.List().tag(sync=True)
    empty = traitlets.Unicode("No hash details were recorded, so no field is known.").tag(sync=True)

    def __init__(self, groups: list[Toggle]) -> None:
        super().__init__(groups=list(map(asdict, groups)))

    def __repr__(self) -> str:
        return f"Tree({len(self.off)} off)"


class Ranking(Control):
    """Sets of fields that would help if they did not count; what does not count is in `off`."""

    _esm = script("make.js", "ranking.js")
    _css = STYLE

    label = traitlets.Unicode("what would help most").tag(sync=True)
    groups: Any = traitlets.List().tag(sync=True)
    notes: Any = traitlets.List().tag(sync=True)
    off: Any = traitlets.List().tag(sync=True)

    def __init__(self, rows: Sequence[SensitivityRow], form_of: Mapping[str, str]) -> None:
        notes = [] if rows else [f"{NO_FIELD[0].upper()}{NO_FIELD[1:]}."]
        if len(rows) > _MOST:
            notes.append(and_more(len(rows) - _MOST, where="scope.sensitivity() has all"))
        names = short_fields(field for row in rows for field in row.fields)
        super().__init__(groups=_groups(rows[:_MOST], form_of, names), notes=notes)

    def __repr__(self) -> str:
        return f"Ranking({sum(len(group['rows']) for group in self.groups)} sets of fields)"


def _groups(
    rows: Sequence[SensitivityRow], form_of: Mapping[str, str], names: Mapping[str, str]
) -> list[JsonObject]:
    most = max((_cost(row) for row in rows), default=0) or 1
    return [
        {"title": SAFETY[safety], "rows": [_plain(row, form_of, names, most) for row in group]}
        for safety, group in groupby(rows, key=lambda row: row.safety)
    ]


def _plain(
    row: SensitivityRow, form_of: Mapping[str, str], names: Mapping[str, str], most: int
) -> JsonObject:
    return {
        "fields": list(row.fields),
        "forms": [form_of.get(name, "") for name in row.fields],
        "label": harmless(listed([names[field] for field in row.fields], _NAMED)),
        "saves": saves(row),
        "share": _cost(row) / most,
        "later": not row.misses_alone,
        "note": harmless(field_note(row)),
    }


def _cost(row: SensitivityRow) -> int:
    """What the fields would save, by themselves or at least with a staggered start."""
    return (row.time_alone_ns if row.misses_alone else row.staggered_time_ns) or 0
