"""Toggles for what counts in a key, with what leaving each out saves; and the lookups as codes, which the page replays in the browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain, groupby, pairwise
from typing import Final

from cachescope.analysis.what_if.browser_replay import MissCodes, ReplayCodes
from cachescope.analysis.what_if.sensitivity import SAFETIES, SafetyOfFields
from cachescope.answers.cards import cause_titles
from cachescope.answers.chosen import Chosen
from cachescope.answers.names import short_fields
from cachescope.answers.read import Read
from cachescope.answers.what_if import WhatIf
from cachescope.frames.answer_rows import RateRow
from cachescope.json_types import JsonObject
from cachescope.keys.isolation import CONTEXT_FORMS
from cachescope.keys.key_schema import KeySchema, form_fields
from cachescope.report.blocks import Block, Group, Replayable, Toggle, shortened
from cachescope.report.html import json_html
from cachescope.report.json_text import values_of
from cachescope.report.layout import Line
from cachescope.report.what_if_forms import NOTHING_ALONE, cause_lines, saves, time_won, warning_lines
from cachescope.wording import file_size, plural

Packed = list[int | list[int]]
MOST_BYTES: Final = 400_000
_SECTIONS: Final = {"runtime_context": "Runtime context", "compile_context": "Compile context"}
_NUMBERS: Final = re.compile(r"([0-9]+)")
_MOST_IDLE: Final = 8
_REST: Final = "Not in the isolation schema: the graph, its inputs, and the rest of the key"
_TEXT: Final = 300
_IN_PYTHON: Final = "scope.what_if(without=…), and the pane What-if of scope.explore()"

_WHAT: Final = "Untick what should not count in a key: all lookups are replayed here at once. Each shows what leaving it out saves, and what is known about leaving it out."


def toggle_groups(
    fields: Sequence[str], varying: Iterable[str], safety: SafetyOfFields, savings: Mapping[str, str]
) -> list[Toggle]:
    """The forms with the fields that carry them, and the fields that no form carries; varying fields first, by safety."""
    if not fields:
        return []
    known = {name: safety.on([name]) for name in varying}
    varies, short = set(known), short_fields(fields)
    alone = [name for name in known if savings.get(name, NOTHING_ALONE) == NOTHING_ALONE]
    # Two versions of torch differ in two hundred fields. Those that save nothing by themselves are folded away.
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
            groups.append(made._replace(section=_SECTIONS[section]))
    rest = sorted((name for name in fields if name not in taken), key=order)
    return [*groups, Toggle("", "", section=_REST, fields=tuple(map(leaf, rest)))]


def _form_note(fields: Sequence[str], varies: set[str], is_part: bool) -> str:
    if not fields:
        return "part of system_info[version]" if is_part else "no field of these keys carries it"
    count = sum(name in varies for name in fields)
    return f"{count} of {len(fields)} fields vary" if count else ""


def savings_of(scope: Read, varying: Sequence[str]) -> dict[str, str]:
    """What it saves to leave out each varying field, and each form with varying fields, by itself."""
    texts = dict.fromkeys(varying, NOTHING_ALONE)
    texts |= {row.fields[0]: saves(row) for row in scope.sensitivity_rows() if len(row.fields) == 1}
    for form in chain(*CONTEXT_FORMS.values()):
        if not (fields := form_fields([form], varying).fields):
            continue
        before, after = WhatIf.of(scope, KeySchema(without=(form,))).rate_table.rows
        more = after.hits - before.hits
        if more:
            texts[form] = f"{more:,} would hit, {time_won(before, after)}"
        else:
            # A form with a single varying field saves what that field does, also after a staggered start.
            first, *others = fields
            texts[form] = NOTHING_ALONE if others else texts[first]
    return texts


def _told_alone(scope: Read, toggle: Toggle, name: str, titles: Mapping[int, str]) -> Toggle:
    """The toggle under another name, with what a replay without it alone says besides the numbers."""
    found = WhatIf.of(scope, KeySchema(without=(toggle.name,)))
    told = (warning_lines(found), cause_lines(found, titles))
    warnings, causes = (tuple(shortened(line.text, _TEXT) for line in lines) for lines in told)
    return toggle._replace(name=name, warnings=warnings, causes=causes)


def replay_parts(scope: Read, most: int = MOST_BYTES) -> tuple[Block, ...]:
    """Check boxes for the fields that vary; nothing if none does."""
    if not scope.facts.misses:
        return ()
    codes = ReplayCodes.of(scope.replay)
    if not codes.fields:
        return ()
    numbers = codes_object(codes, scope.replay.before)
    size = len(json.dumps(numbers, separators=(",", ":")))
    if size > most:
        lookups = plural(len(scope.facts.lookups), "lookup")
        text = f"No field can be left out in this page: to replay these {lookups}, it would need {file_size(size)} more"
        part: Block = Line(f"{text}. In Python: {_IN_PYTHON}.", style="dim")
    else:
        part = Replayable(tuple(_groups(scope, codes)), numbers)
    return (Group("replay", "Leave fields out, and see", (part,)),)


def _groups(scope: Read, codes: ReplayCodes) -> Iterator[Toggle]:
    """What can be left out, each by its position among the codes."""
    fields, forms = codes.fields, [form.name for form in codes.forms]
    savings, titles = savings_of(scope, fields), cause_titles(Chosen(scope), scope.explained.rows)
    for group in toggle_groups(fields, fields, scope.field_safety, savings):
        named = ((leaf, f"field {fields.index(leaf.name)}") for leaf in group.fields)
        mine = tuple(_told_alone(scope, leaf, name, titles) for leaf, name in named)
        if group.name in forms:
            yield _told_alone(scope, group._replace(fields=mine), f"form {forms.index(group.name)}", titles)
        elif mine and not group.is_form:
            yield group._replace(fields=mine)


def codes_object(codes: ReplayCodes, before: RateRow) -> JsonObject:
    """The codes as `replay.js` reads them, and the rates as they were recorded."""
    parted = codes.parted
    apart = parted and {bits: packed(values) for bits, values in parted.values.items()}
    return {
        "before": asdict(before),
        "misses": _misses(codes.misses),
        "cells": {name: packed(column) for name, column in asdict(codes.cells).items()},
        "events": {name: packed(_growth(column)) for name, column in asdict(codes.events).items()},
        "values": list(map(packed, codes.values)),
        "forms": [values_of(form, "fields", "part") for form in codes.forms],
        "parted": None if parted is None else {"field": parted.field, "values": apart},
    }


def packed(numbers: Iterable[int]) -> Packed:
    """The numbers, with a run of equal ones as the number and its count.

    Examples
    --------
    >>> packed([7, 0, 0, 0, 1])
    [7, [0, 3], 1]
    """
    runs = ((int(number), len(list(equal))) for number, equal in groupby(numbers))
    return [number if count == 1 else [number, count] for number, count in runs]


def _misses(misses: MissCodes) -> JsonObject:
    """The misses. Positions and places mostly increase by one, so their differences are written."""
    return {
        "at": packed(_growth(misses.at)),
        "cell": packed(_growth(misses.cell)),
        "aot": packed(number - aot if aot >= 0 else 0 for number, aot in enumerate(misses.aot)),
        "is_open": packed(misses.is_open),
        "taken": packed(misses.taken),
    }


def _growth(numbers: list[int]) -> list[int]:
    return [number - before for before, number in pairwise([0, *numbers])]


def replay_html(part: Replayable) -> str:
    """Places for the toggles and the numbers, with their data."""
    return (
        "<noscript><p class='cs-faint'>This needs JavaScript.</p></noscript>"
        f"<div class='replay cs' hidden><p>{_WHAT}</p><div role='status'><dl class='cs-numbers'></dl><p class='cs-faint'></p></div>"
        "<p class='buttons'><button type='button'>Undo</button> <button type='button'>Reset</button></p>"
        f"<script type='application/json'>{json_html({'groups': [group.as_json() for group in part.groups], 'codes': part.codes})}</script></div>"
    )
