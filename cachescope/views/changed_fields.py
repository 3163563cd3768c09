"""The fields in which two keys differ, as a table, and the difference of changed code below it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from cachescope.analysis.differences import FieldChange
from cachescope.report.html import safe
from cachescope.views import html
from cachescope.wording import and_more, plural

_FIELDS: Final = 40
_DIFFS: Final = 3
_NAMED: Final = 3
# A longer name may be broken.
_KEPT: Final = 40
HEADS: Final = ("Field", "Before", "After")


def changed_fields(changes: Sequence[FieldChange], heads: Sequence[str] = HEADS, caption: str = "") -> str:
    """The fields, then the difference of changed code; nothing where no field differs."""
    alike = _alike(changes)
    rows = [
        ["<br>".join([*map(_field, of[:_NAMED]), *_others(of)]), *_values(of[0])] for of in alike[:_FIELDS]
    ]
    more = sum(map(len, alike[_FIELDS:]))
    rest = html.paragraph(and_more(more, "field", "explorer.frame() has all"), "faint") if more > 0 else ""
    diffs = "".join(
        html.title(f"Changed code of {c.field}") + html.diff(c.diff) for c in changes[:_DIFFS] if c.diff
    )
    return html.table(heads, rows, caption) + rest + diffs


def _alike(changes: Sequence[FieldChange]) -> list[list[FieldChange]]:
    """Changes that look the same, as the type of all inputs, in one row; those with code or a value of a process each in its own."""
    groups: dict[Hashable, list[FieldChange]] = {}
    for at, one in enumerate(changes):
        is_alone = one.kind == "opaque" or one.diff or one.process_values is not None
        groups.setdefault(at if is_alone else (one.before, one.after, one.parts), []).append(one)
    return list(groups.values())


def _others(of: Sequence[FieldChange]) -> list[str]:
    return [f"and {plural(len(of) - _NAMED, 'more field')}"] if len(of) > _NAMED else []


def _field(change: FieldChange) -> str:
    """The field, and what of a process it differs by."""
    keep = " class='cs-keep'" if len(change.field) <= _KEPT else ""
    named = f"<code{keep}>{safe(change.field)}</code>"
    if change.process_values is None:
        return named
    return f"{named}<br><span class='cs-keep'>{safe(change.process_values.words)}</span>"


def _values(change: FieldChange) -> list[str]:
    """Before and after: the parts that differ, or the whole."""
    if change.kind == "opaque":
        return [safe(change.summary), html.cut(change.after, 60)]
    if change.parts:
        sides = zip(*((f"{n} = {a}", f"{n} = {b}") for n, a, b in change.parts), strict=True)
        return ["<br>".join(html.cut(part) for part in side) for side in sides]
    # For a graph the diff is shown below.
    short = 60 if change.diff else 160
    return [html.cut(change.before, short), html.cut(change.after, short)]
