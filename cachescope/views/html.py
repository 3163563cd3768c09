"""Pieces of HTML for the panes. Every text is escaped; a long one is cut, with more of it on demand."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from cachescope.analysis.differences import FieldChange
from cachescope.report.html import diff_html, safe, value_html
from cachescope.report.page.parts import diff_lines
from cachescope.wording import and_more, plural

_SHORT: Final = 160
# More than anyone reads, and little enough for a browser: a value can be a whole graph of a megabyte.
_LONG: Final = 20_000
_DIFF_LINES: Final = 400

_FIELDS: Final = 40
_DIFFS: Final = 3
_NAMED: Final = 3
# A longer name may be broken.
_KEPT: Final = 40
HEADS: Final = ("Field", "Before", "After")


def cut(text: str | None, short: int = _SHORT) -> str:
    """A value; if it is long, its beginning, which opens."""
    if text is None:
        return "<span class='cs-faint'>not there</span>"
    if text == "":
        return "<span class='cs-faint'>(empty)</span>"
    return value_html(text, short, _LONG)


def diff(text: str) -> str:
    """A unified diff without its two lines of names."""
    lines, more = diff_lines(text, _DIFF_LINES)
    return diff_html(lines, "difference of the code") + (faint(more) if more else "")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A small table of cells that are already HTML."""
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    if not body:
        return ""
    head = "".join(f"<th scope='col'>{safe(name)}</th>" for name in heads)
    title = f"<caption>{safe(caption)}</caption>" if caption else ""
    return (
        f"<div class='cs-scroll'><table class='cs-table'>{title}<thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def title(text: str, note: str = "") -> str:
    """The heading of a part of a pane, and a sentence below it."""
    below = f"<p class='cs-faint'>{safe(note)}</p>" if note else ""
    return f"<h3 class='cs-title'>{safe(text)}</h3>{below}"


def numbers(cells: Iterable[tuple[str, str, str]]) -> str:
    """A row of large numbers: label, number, and what it consists of."""
    made = "".join(
        f"<div><span class='cs-faint'>{safe(label)}</span><b>{safe(value)}</b><span class='cs-faint'>{safe(note)}</span></div>"
        for label, value, note in cells
    )
    return f"<div class='cs-numbers'>{made}</div>"


def paragraph(text: str, kind: str = "") -> str:
    """A sentence; `kind` is faint, strong, warn or empty."""
    return f"<p class='cs-{kind or 'text'}'>{safe(text)}</p>"


def faint(text: str) -> str:
    """A sentence in the colour of what is beside the point."""
    return paragraph(text, "faint")


def changed_fields(changes: Sequence[FieldChange], heads: Sequence[str] = HEADS, caption: str = "") -> str:
    """The fields, then the difference of changed code; nothing where no field differs."""
    alike = _alike(changes)
    rows = [[_fields(of), *_values(of[0])] for of in alike[:_FIELDS]]
    more = sum(map(len, alike[_FIELDS:]))
    rest = faint(and_more(more, "field", "explorer.frame() has all")) if more > 0 else ""
    diffs = "".join(title(f"Changed code of {c.field}") + diff(c.diff) for c in changes[:_DIFFS] if c.diff)
    return table(heads, rows, caption) + rest + diffs


def _alike(changes: Sequence[FieldChange]) -> list[list[FieldChange]]:
    """Changes that look the same, as the type of all inputs, in one row; those with code or a value of a process each in its own."""
    groups: dict[Hashable, list[FieldChange]] = {}
    for at, one in enumerate(changes):
        is_alone = one.kind == "opaque" or one.diff or one.process_values is not None
        groups.setdefault(at if is_alone else (one.before, one.after, one.parts), []).append(one)
    return list(groups.values())


def _fields(of: Sequence[FieldChange]) -> str:
    names = list(map(_field, of[:_NAMED]))
    if len(of) > _NAMED:
        names.append(f"and {plural(len(of) - _NAMED, 'more field')}")
    return "<br>".join(names)


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
        return [safe(change.summary), cut(change.after, 60)]
    if change.parts:
        sides = zip(*((f"{n} = {a}", f"{n} = {b}") for n, a, b in change.parts), strict=True)
        return ["<br>".join(cut(part) for part in side) for side in sides]
    # For a graph the diff is shown below.
    short = 60 if change.diff else 160
    return [cut(change.before, short), cut(change.after, short)]
