"""The lookups as codes that the page replays in the browser, and check boxes for what can be left out of the keys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from itertools import groupby, pairwise
from typing import Final

from cachescope.analysis.what_if.browser_replay import MissCodes, ReplayCodes
from cachescope.answers.read import Read
from cachescope.frames.answer_rows import RateRow
from cachescope.json_types import JsonObject
from cachescope.report.blocks import Block, Group, Replayable, Toggle
from cachescope.report.html import json_html
from cachescope.report.json_text import values_of
from cachescope.report.layout import Line
from cachescope.report.page.toggles import savings_of, toggle_groups, told_alone
from cachescope.wording import file_size, plural

Packed = list[int | list[int]]
MOST_BYTES: Final = 400_000

_WHAT: Final = (
    "Untick what should not count in a key: all lookups are replayed here at once. Each shows what leaving it out saves, and what"
    " is known about leaving it out."
)


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
        part: Block = Line(
            f"No field can be left out in this page: to replay these {plural(len(scope.facts.lookups), 'lookup')}, it would"
            f" need {file_size(size)} more. In Python: scope.what_if(without=…), and the pane What-if of scope.explore().",
            style="dim",
        )
    else:
        part = Replayable(tuple(_groups(scope, codes)), numbers)
    return (Group("replay", "Leave fields out, and see", (part,)),)


def _groups(scope: Read, codes: ReplayCodes) -> Iterator[Toggle]:
    """What can be left out, each by its place among the codes."""
    fields, forms = codes.fields, [form.name for form in codes.forms]
    savings = savings_of(scope, scope.sensitivity_rows(), fields)
    for group in toggle_groups(fields, fields, scope.field_safety, savings):
        mine = tuple(told_alone(scope, leaf, f"field {fields.index(leaf.name)}") for leaf in group.fields)
        if group.name in forms:
            yield told_alone(scope, replace(group, fields=mine), f"form {forms.index(group.name)}")
        elif mine and not group.is_form:
            yield replace(group, fields=mine)


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
    """Each number; of two or more equal ones in a row, the number and how many there are.

    Examples
    --------
    >>> packed([7, 0, 0, 0, 1])
    [7, [0, 3], 1]
    """
    runs = ((int(number), len(list(equal))) for number, equal in groupby(numbers))
    return [number if count == 1 else [number, count] for number, count in runs]


def _misses(misses: MissCodes) -> JsonObject:
    """Positions and places mostly follow one another: what is written is by how much they grow."""
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
    """A place for the toggles and for the numbers, and what they are made of."""
    return (
        "<noscript><p class='cs-faint'>This needs JavaScript.</p></noscript>"
        f"<div class='replay cs' hidden><p>{_WHAT}</p><div role='status'><dl class='cs-numbers'></dl><p class='cs-faint'></p></div>"
        "<p class='buttons'><button type='button'>Undo</button> <button type='button'>Reset</button></p>"
        f"<script type='application/json'>{json_html({'groups': list(map(asdict, part.groups)), 'codes': part.codes})}</script></div>"
    )
