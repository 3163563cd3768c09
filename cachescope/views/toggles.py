"""What counts in a key, as check boxes: the isolation schema as a tree, and the fields that would help most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import traitlets

from cachescope.analysis.what_if.sensitivity import SAFETIES, SafetyOfFields
from cachescope.answers.names import short_fields
from cachescope.frames.replay_rows import SensitivityRow
from cachescope.json_types import JsonObject
from cachescope.keys.isolation import CONTEXT_FORMS
from cachescope.keys.key_fields import form_fields
from cachescope.report.what_if_forms import NO_FIELD, NOTHING_ALONE, SAFETY, field_note, saves
from cachescope.views.widget_base import STYLE, Control, script
from cachescope.wording import and_more, harmless, listed

_SECTIONS: Final = {"runtime_context": "Runtime context", "compile_context": "Compile context"}
_NUMBERS: Final = re.compile(r"([0-9]+)")
_MOST_IDLE: Final = 8
_REST: Final = "Not in the isolation schema: the graph, its inputs, and the rest of the key"

_MOST: Final = 20
_NAMED: Final = 6


class Tree(Control):
    """Check boxes for what counts; what does not count is in `off`."""

    _esm = script("make.js", "tree.js")
    _css = STYLE

    groups: Any = traitlets.List().tag(sync=True)
    off: Any = traitlets.List().tag(sync=True)
    empty = traitlets.Unicode("No hash details were recorded, so no field is known.").tag(sync=True)

    def __init__(self, groups: list[JsonObject]) -> None:
        super().__init__(groups=groups)

    def __repr__(self) -> str:
        return f"Tree({len(self.off)} off)"


def tree_groups(
    fields: Sequence[str], varying: Iterable[str], safety: SafetyOfFields, savings: Mapping[str, str]
) -> list[JsonObject]:
    """The forms with the fields that carry them, and the fields that no form carries; varying fields first, by safety."""
    if not fields:
        return []
    known = {name: safety.on([name]) for name in varying}
    varies, short = set(known), short_fields(fields)
    alone = [name for name in known if savings.get(name, NOTHING_ALONE) == NOTHING_ALONE]
    # Two versions of torch differ in two hundred fields: those that save nothing by themselves are then behind a line.
    idle = {name for name in alone if len(alone) > _MOST_IDLE or known[name].safety == "program"}

    def order(name: str) -> tuple[object, ...]:
        rank = SAFETIES.index(known[name].safety) if name in known else len(SAFETIES)
        # example_inputs[2] before example_inputs[10].
        return rank, [int(part) if part.isdecimal() else part for part in _NUMBERS.split(name)]

    def leaf(name: str) -> JsonObject:
        note = harmless(known[name].advice) if name in known else ""
        return {
            "name": name,
            "label": harmless(short[name]),
            "varies": name in known,
            "idle": name in idle,
            "note": note,
            "saves": savings.get(name, ""),
        }

    groups, taken = [], set()
    for section, forms in CONTEXT_FORMS.items():
        for form in forms:
            carried = form_fields([form], fields)
            mine = sorted(carried.fields, key=order)
            taken.update(mine)
            groups.append(
                {
                    "name": form,
                    "label": form,
                    "section": _SECTIONS[section],
                    "is_form": True,
                    "note": _form_note(mine, varies, bool(carried.parts)),
                    "saves": savings.get(form, ""),
                    "fields": [leaf(name) for name in mine],
                }
            )
    rest = sorted((name for name in fields if name not in taken), key=order)
    whole = {"name": "", "label": "", "section": _REST, "is_form": False, "note": "", "saves": ""}
    groups.append(whole | {"fields": [leaf(name) for name in rest]})
    return groups


def _form_note(fields: Sequence[str], varies: set[str], is_part: bool) -> str:
    if not fields:
        return "part of system_info[version]" if is_part else "no field of these keys carries it"
    count = sum(name in varies for name in fields)
    return f"{count} of {len(fields)} fields vary" if count else ""


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
