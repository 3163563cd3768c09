"""What counts in a key, as toggles: the isolation schema as a tree; what leaving each out saves, why the rest stays, and what would be unsafe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from cachescope.analysis.what_if.sensitivity import SAFETIES, SafetyOfFields
from cachescope.answers.names import short_fields
from cachescope.answers.read import Read
from cachescope.answers.what_if import WhatIf
from cachescope.frames.replay_rows import SensitivityRow
from cachescope.grouping import by_key
from cachescope.keys.isolation import CONTEXT_FORMS
from cachescope.keys.key_schema import KeySchema, form_fields
from cachescope.report.blocks import Toggle, shortened
from cachescope.report.what_if_forms import NOTHING_ALONE, cause_lines, saves, time_won, warning_lines

_SECTIONS: Final = {"runtime_context": "Runtime context", "compile_context": "Compile context"}
_NUMBERS: Final = re.compile(r"([0-9]+)")
_MOST_IDLE: Final = 8
_REST: Final = "Not in the isolation schema: the graph, its inputs, and the rest of the key"
_TEXT: Final = 300


def toggle_groups(
    fields: Sequence[str], varying: Iterable[str], safety: SafetyOfFields, savings: Mapping[str, str]
) -> list[Toggle]:
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

    def leaf(name: str) -> Toggle:
        note = shortened(known[name].advice, _TEXT) if name in known else ""
        label = shortened(short[name], _TEXT)
        return Toggle(name, label, note, savings.get(name, ""), varies=name in known, idle=name in idle)

    groups, taken = [], set()
    for section, forms in CONTEXT_FORMS.items():
        for form in forms:
            carried = form_fields([form], fields)
            mine = sorted(carried.fields, key=order)
            taken.update(mine)
            note = _form_note(mine, varies, bool(carried.parts))
            leaves = tuple(map(leaf, mine))
            made = Toggle(form, form, note, savings.get(form, ""), is_form=True, fields=leaves)
            groups.append(replace(made, section=_SECTIONS[section]))
    rest = sorted((name for name in fields if name not in taken), key=order)
    return [*groups, Toggle("", "", section=_REST, fields=tuple(map(leaf, rest)))]


def _form_note(fields: Sequence[str], varies: set[str], is_part: bool) -> str:
    if not fields:
        return "part of system_info[version]" if is_part else "no field of these keys carries it"
    count = sum(name in varies for name in fields)
    return f"{count} of {len(fields)} fields vary" if count else ""


def savings_of(scope: Read, ranking: Sequence[SensitivityRow], varying: Sequence[str]) -> dict[str, str]:
    """What leaving out each form with varying fields, and each varying field, saves by itself."""
    texts = dict.fromkeys(varying, NOTHING_ALONE)
    texts |= {row.fields[0]: saves(row) for row in ranking if len(row.fields) == 1}
    fields_of = by_key((form, name) for name, form in forms_of(varying).items())
    for form, fields in fields_of.items():
        before, after = WhatIf.of(scope, KeySchema(without=(form,))).rate_table.rows
        more = after.hits - before.hits
        if more:
            texts[form] = f"{more:,} would hit, {time_won(before, after)}"
        else:
            # A form with one field that varies does what that field does, after a staggered start too.
            texts[form] = texts[fields[0]] if len(fields) == 1 else NOTHING_ALONE
    return texts


def forms_of(fields: Sequence[str]) -> dict[str, str]:
    """The context form that holds each field, of those that are in one."""
    forms = chain.from_iterable(CONTEXT_FORMS.values())
    return {name: form for form in forms for name in form_fields([form], fields).fields}


def told_alone(scope: Read, toggle: Toggle, name: str) -> Toggle:
    """Under another name, with what a replay without this one alone says besides its numbers."""
    found = WhatIf.of(scope, KeySchema(without=(toggle.name,)))
    warnings, causes = (
        tuple(shortened(line.text, _TEXT) for line in lines(found)) for lines in (warning_lines, cause_lines)
    )
    return replace(toggle, name=name, warnings=warnings, causes=causes)
