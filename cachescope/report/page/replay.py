"""The lookups as codes that the page replays in the browser, and check boxes for what can be left out of the keys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Final

import numpy as np
import numpy.typing as npt

from cachescope.analysis.what_if.codes import MissCodes, ReplayCodes
from cachescope.analysis.what_if.evidence import SafetyOfFields
from cachescope.analysis.what_if.recorded import NEVER
from cachescope.answers.read import Read
from cachescope.columns import rows_of
from cachescope.frames.answer_rows import RateRow
from cachescope.frames.replay_rows import SensitivityRow
from cachescope.json_types import JsonObject
from cachescope.keys.key_fields import VERSION_FIELD
from cachescope.report.html import safe
from cachescope.report.page.parts import Group, Part, Replayable, Text, Toggle
from cachescope.report.page.toggle_texts import Alone, savings_of
from cachescope.report.page.truncation import shortened
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


def replay_parts(scope: Read, most: int = MOST_BYTES) -> tuple[Part, ...]:
    """Check boxes for the fields that vary; nothing if none does."""
    if not scope.facts.misses:
        return ()
    codes = ReplayCodes.of(scope.replayed)
    if not codes.fields:
        return ()
    numbers = codes_object(codes, scope.replayed.before)
    size = len(json.dumps(numbers, separators=(",", ":")))
    if size > most:
        part: Part = Text(
            f"No field can be left out in this page: to replay these {plural(len(scope.facts.lookups), 'lookup')}, it would"
            f" need {file_size(size)} more. In Python: scope.what_if(without=…), and the pane What-if of scope.explore().",
            "faint",
        )
    else:
        part = Replayable(tuple(_toggles(scope, codes)), numbers)
    return (Group("replay", "Leave fields out, and see", (part,)),)


def _toggles(scope: Read, codes: ReplayCodes) -> Iterator[Toggle]:
    """The forms with their varying fields, and the fields of no form; a field may be in several forms."""
    safety = SafetyOfFields(scope.evidence)
    savings = savings_of(scope, rows_of(scope.sensitivity(), SensitivityRow), codes.fields)

    def toggle(place: int, name: str, note: str, fields: tuple[Toggle, ...] = ()) -> Toggle:
        return Toggle(place, name, note, fields, savings.get(name, ""), Alone.of(scope, name))

    leaves = [toggle(place, name, safety.on([name]).advice) for place, name in enumerate(codes.fields)]
    for place, form in enumerate(codes.forms):
        note = f"a part of {VERSION_FIELD}" if form.part else ""
        yield toggle(place, form.name, note, tuple(leaves[field] for field in form.fields))
    taken = {field for form in codes.forms for field in form.fields}
    if rest := tuple(leaf for field, leaf in enumerate(leaves) if field not in taken):
        yield Toggle(None, _REST, "", rest)


def codes_object(codes: ReplayCodes, before: RateRow) -> JsonObject:
    """The codes as `replay.js` reads them, and the rates as they were recorded."""
    entries = codes.entries._asdict()
    parted = codes.parted
    return {
        "before": asdict(before),
        "misses": _misses(codes.misses),
        "cells": {
            name: packed(getattr(codes.cells, name)) for name in ("home", "is_aot", "is_plain", "early")
        },
        "entries": {name: packed(column) for name, column in entries.items()},
        "values": [packed(values) for values in codes.values],
        "forms": [{"fields": form.fields, "part": form.part} for form in codes.forms],
        "parted": None
        if parted is None
        else {
            "field": parted.field,
            "values": {bits: packed(values) for bits, values in parted.values.items()},
        },
    }


def packed(numbers: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> Packed:
    """Each number; of two or more equal ones in a row, the number and how many there are.

    Examples
    --------
    >>> packed(np.array([7, 0, 0, 0, 1]))
    [7, [0, 3], 1]
    """
    starts = np.flatnonzero(np.diff(numbers.astype(np.int64), prepend=-(2**62)))
    counts = np.diff(starts, append=len(numbers))
    values = numbers[starts].astype(np.int64)
    return [
        value if count == 1 else [value, count]
        for value, count in zip(values.tolist(), counts.tolist(), strict=True)
    ]


def _misses(misses: MissCodes) -> JsonObject:
    """Positions and places mostly follow one another: what is written is by how much they grow."""
    number = np.arange(len(misses.at))
    return {
        "at": packed(np.diff(misses.at, prepend=0)),
        "cell": packed(np.diff(misses.cell, prepend=0)),
        "aot": packed(np.where(misses.aot >= 0, number - misses.aot, 0)),
        "is_open": packed(misses.is_open),
        "wait": packed(np.where(misses.since < NEVER, misses.since - misses.at, 0)),
        "taken": packed(misses.taken),
    }


def replay_html(part: Replayable) -> str:
    """The toggles, a place for the numbers, and the codes."""
    codes = json.dumps(part.codes, separators=(",", ":"))
    return (
        "<noscript><p class='faint'>This needs JavaScript.</p></noscript>"
        f"<div class='replay' hidden><p>{_WHAT}</p><div role='status'><dl class='numbers'></dl><p class='faint'></p></div>"
        "<p class='buttons'><button type='button'>Undo</button> <button type='button'>Reset</button></p>"
        f"{_search(part)}<ul aria-label='What counts in a key'>{''.join(map(_form, part.forms))}</ul>"
        f"<script type='application/json'>{codes}</script></div>"
    )


def _search(part: Replayable) -> str:
    count = len({field.place for form in part.forms for field in form.fields})
    if count <= _MANY:
        return ""
    return f"<label class='search'>Search {count} fields<input type='search'></label>"


def _form(form: Toggle) -> str:
    head = f"<span>{safe(form.name)}</span>"
    if form.place is not None:
        head = _line(form, f"data-form='{form.place}'")
    fields = "".join(f"<li>{_line(field, _data(field, form))}</li>" for field in form.fields)
    return f"<li>{head}{f'<ul>{fields}</ul>' if fields else ''}</li>"


def _data(field: Toggle, form: Toggle) -> str:
    return f"data-field='{field.place}' data-of='{form.place}'"


def _line(toggle: Toggle, data: str) -> str:
    beside = "; ".join(text for text in (toggle.saves, toggle.note) if text)
    note = f" <span class='faint'>{safe(shortened(beside, _TEXT))}</span>" if beside else ""
    name = safe(shortened(toggle.name, _TEXT))
    told = _told("off", "warn", toggle.told.warnings) + _told("alone", "faint", toggle.told.causes)
    return f"<label><input type='checkbox' checked {data}> <code>{name}</code></label>{note}{told}"


def _told(when: str, kind: str, texts: Iterable[str]) -> str:
    """The text while a toggle is off, or is the only one that is off."""
    lines = "<br>".join(safe(shortened(text, _TEXT)) for text in texts)
    return f"<p class='{kind}' data-when='{when}' hidden>{lines}</p>" if lines else ""
