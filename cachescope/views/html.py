"""Pieces of HTML for the panes. Every text is escaped; a long one is cut, with more of it on demand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from cachescope.report.html import safe
from cachescope.report.layout import Line
from cachescope.report.long_text import diff_html, value_html
from cachescope.report.page.cuts import diff_lines

_SHORT: Final = 160
# More than anyone reads, and little enough for a browser: a value can be a whole graph of a megabyte.
_LONG: Final = 20_000
_DIFF_LINES: Final = 400


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
    return diff_html(lines, "difference of the code") + (paragraph(more, "faint") if more else "")


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


def lines(of: Iterable[Line]) -> str:
    """Lines of a report, with their indentation."""
    return "".join(_line(line) for line in of)


def _line(line: Line) -> str:
    text = f"<b>{safe(line.text)}</b>" if "bold" in line.style else safe(line.text)
    right = f" <span class='cs-faint'>{safe(line.right)}</span>" if line.right else ""
    kind = " class='cs-faint'" if line.style == "dim" else ""
    return f"<div style='margin-left: {line.indent / 2}em'{kind}>{text or '&nbsp;'}{right}</div>"


def title(text: str, note: str = "") -> str:
    """The heading of a part of a pane, and a sentence below it."""
    below = f"<p class='cs-faint'>{safe(note)}</p>" if note else ""
    return f"<h3 class='cs-title'>{safe(text)}</h3>{below}"


def numbers(cells: Iterable[tuple[str, str, str]]) -> str:
    """A row of large numbers: label, number, and what it consists of."""
    return (
        "<div class='cs-numbers'>"
        + "".join(
            f"<div><span class='cs-faint'>{safe(label)}</span><b>{safe(value)}</b><span class='cs-faint'>{safe(note)}</span></div>"
            for label, value, note in cells
        )
        + "</div>"
    )


def advice(of: Iterable[tuple[Sequence[str], str]]) -> str:
    """Sentences on what to do, each with the fields that it is on."""
    items = "".join(f"<li>{_on_fields(fields, sentence)}{safe(sentence)}</li>" for fields, sentence in of)
    return f"<ul class='cs-advice'>{items}</ul>"


def _on_fields(fields: Sequence[str], sentence: str) -> str:
    """What a sentence is on, where it does not begin with it."""
    if not fields or sentence.startswith(tuple(fields)):
        return ""
    return ", ".join(f"<code>{safe(field)}</code>" for field in fields) + ": "


def paragraph(text: str, kind: str = "") -> str:
    """A sentence; `kind` is faint, strong, warn or empty."""
    return f"<p class='cs-{kind or 'text'}'>{safe(text)}</p>"
