"""The lookups as codes that the page replays in the browser, and check boxes for what can be left out of the keys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import groupby, pairwise
from typing import Final

from cachescope.analysis.what_if.browser_replay import MissCodes, ReplayCodes
from cachescope.analysis.what_if.cells import NEVER
from cachescope.answers.read import Read
from cachescope.frames.answer_rows import RateRow
from cachescope.json_types import JsonObject
from cachescope.keys.key_fields import VERSION_FIELD
from cachescope.report.blocks import Block, Group, Replayable, Toggle, shortened
from cachescope.report.html import safe
from cachescope.report.json_text import values_of
from cachescope.report.layout import Line
from cachescope.report.page.toggle_texts import savings_of, told_alone
from cachescope.wording import file_size, plural

Packed = list[int | list[int]]
MOST_BYTES: Final = 400_000
_REST: Final = "In no context form: the graph, its inputs, and the rest of the key"

_TEXT: Final = 300
_MANY: Final = 10
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
        part = Replayable(tuple(_toggles(scope, codes)), numbers)
    return (Group("replay", "Leave fields out, and see", (part,)),)


def _toggles(scope: Read, codes: ReplayCodes) -> Iterator[Toggle]:
    """The forms with their varying fields, and the fields of no form; a field may be in several forms."""
    safety = scope.field_safety
    savings = savings_of(scope, scope.sensitivity_rows(), codes.fields)

    def toggle(place: int, name: str, note: str, fields: tuple[Toggle, ...] = ()) -> Toggle:
        return Toggle(place, name, note, fields, savings.get(name, ""), *told_alone(scope, name))

    leaves = [toggle(place, name, safety.on([name]).advice) for place, name in enumerate(codes.fields)]
    for place, form in enumerate(codes.forms):
        note = f"a part of {VERSION_FIELD}" if form.part else ""
        yield toggle(place, form.name, note, tuple(leaves[field] for field in form.fields))
    taken = {field for form in codes.forms for field in form.fields}
    if rest := tuple(leaf for field, leaf in enumerate(leaves) if field not in taken):
        yield Toggle(None, _REST, "", rest)


def codes_object(codes: ReplayCodes, before: RateRow) -> JsonObject:
    """The codes as `replay.js` reads them, and the rates as they were recorded."""
    parted = codes.parted
    apart = parted and {bits: packed(values) for bits, values in parted.values.items()}
    return {
        "before": asdict(before),
        "misses": _misses(codes.misses),
        "cells": {name: packed(column) for name, column in asdict(codes.cells).items()},
        "entries": {name: packed(column) for name, column in asdict(codes.entries).items()},
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
        "wait": packed(
            since - at if since < NEVER else 0 for at, since in zip(misses.at, misses.since, strict=True)
        ),
        "taken": packed(misses.taken),
    }


def _growth(numbers: list[int]) -> list[int]:
    return [number - before for before, number in pairwise([0, *numbers])]


def replay_html(part: Replayable) -> str:
    """The toggles, a place for the numbers, and the codes."""
    codes = json.dumps(part.codes, separators=(",", ":"))
    count = len({field.place for form in part.forms for field in form.fields})
    search = (
        f"<label class='search'>Search {count} fields<input type='search'></label>" if count > _MANY else ""
    )
    return (
        "<noscript><p class='cs-faint'>This needs JavaScript.</p></noscript>"
        f"<div class='replay' hidden><p>{_WHAT}</p><div role='status'><dl class='cs-numbers'></dl><p class='cs-faint'></p></div>"
        "<p class='buttons'><button type='button'>Undo</button> <button type='button'>Reset</button></p>"
        f"{search}<ul aria-label='What counts in a key'>{''.join(map(_form, part.forms))}</ul>"
        f"<script type='application/json'>{codes}</script></div>"
    )


def _form(form: Toggle) -> str:
    head = f"<span>{safe(form.name)}</span>"
    if form.place is not None:
        head = _line(form, f"data-form='{form.place}'")
    places = (f"data-field='{field.place}' data-of='{form.place}'" for field in form.fields)
    fields = "".join(f"<li>{_line(*one)}</li>" for one in zip(form.fields, places, strict=True))
    return f"<li>{head}{f'<ul>{fields}</ul>' if fields else ''}</li>"


def _line(toggle: Toggle, data: str) -> str:
    beside = "; ".join(text for text in (toggle.saves, toggle.note) if text)
    note = f" <span class='cs-faint'>{safe(shortened(beside, _TEXT))}</span>" if beside else ""
    name = safe(shortened(toggle.name, _TEXT))
    told = _told("off", "warn", toggle.warnings) + _told("alone", "cs-faint", toggle.causes)
    return f"<label><input type='checkbox' checked {data}> <code>{name}</code></label>{note}{told}"


def _told(when: str, kind: str, texts: Iterable[str]) -> str:
    """The text while a toggle is off, or is the only one that is off."""
    lines = "<br>".join(safe(shortened(text, _TEXT)) for text in texts)
    return f"<p class='{kind}' data-when='{when}' hidden>{lines}</p>" if lines else ""
