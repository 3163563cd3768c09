"""Check boxes for the fields of keys as HTML. Hidden until the script of the page has made them work."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from cachescope.report.html import safe
from cachescope.report.page.cuts import shortened
from cachescope.report.page.parts import Replayable, Toggle

_TEXT: Final = 300
_MANY: Final = 10
_WHAT: Final = (
    "Untick what should not count in a key: all lookups are replayed here at once. Each shows what leaving it out saves, and what"
    " is known about leaving it out."
)


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
