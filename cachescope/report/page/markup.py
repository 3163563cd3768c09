"""Parts of a page as HTML. Every text is escaped here and nowhere else, and shortened to what a person reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from cachescope.report.cards import CardText
from cachescope.report.html import diff_html, lines_html, safe, value_html
from cachescope.report.layout import Line
from cachescope.report.page.lookups import lookups_html
from cachescope.report.page.parts import (
    Diff,
    Drawing,
    Fold,
    Group,
    Head,
    Items,
    Lines,
    LookupTable,
    Numbers,
    Part,
    Replayable,
    Section,
    Table,
    Text,
    WorkItems,
    shortened,
)
from cachescope.report.page.replay import replay_html
from cachescope.report.tables import Cell, Sorted

_SENTENCE: Final = 1200
_CELL: Final = 300
_LONG_CELL: Final = 120
# Places where a long name or path may wrap; no character of an escape.
_BREAKABLE: Final = re.compile(r"[\[/_](?=\w)|\.(?=[a-zA-Z_])")
# Neither sign of an arrow begins a line.
_ARROW: Final = ("-&gt;", "<span class='arrow'>-&gt;</span>")


def section_html(section: Section, *, is_folded: bool) -> str:
    """A section with its heading, which can be linked to."""
    heading = _heading(2, section.anchor, section.title)
    about = f"<p class='about'>{safe(section.sentence)}</p>" if section.sentence else ""
    content = about + parts_html(section.parts)
    folded = f"<details><summary>{heading}</summary>{content}</details>"
    return f"<section aria-labelledby='{safe(section.anchor)}'>{folded if is_folded else heading + content}</section>"


def contents_html(sections: Iterable[Section]) -> str:
    """The table of contents."""
    names = ((safe(section.anchor), safe(section.title)) for section in sections)
    links = "".join(f"<li><a href='#{anchor}'>{title}</a></li>" for anchor, title in names)
    return f"<nav aria-label='Contents'><ol>{links}</ol></nav>"


def drawings_of(parts: Iterable[Part]) -> list[Drawing]:
    """The figures in the order of the page."""
    found = []
    for part in parts:
        if isinstance(part, Drawing):
            found.append(part)
        elif isinstance(part, Group | Fold):
            found += drawings_of(part.parts)
    return found


def _heading(level: int, anchor: str, title: str) -> str:
    text = _prose(title, _CELL)
    link = f"<a class='anchor' href='#{safe(anchor)}' aria-label='Link to this place'>#</a>"
    return f"<h{level} id='{safe(anchor)}'>{text} {link}</h{level}>"


def _prose(text: str, limit: int) -> str:
    return safe(shortened(text, limit)).replace(*_ARROW)


def parts_html(parts: Iterable[Part]) -> str:
    """Parts below each other."""
    return "".join(_part(part) for part in parts)


def _part(part: Part) -> str:
    match part:
        case Group():
            return f"<div class='group'>{_heading(3, part.anchor, part.title)}{parts_html(part.parts)}</div>"
        case Fold():
            return f"<details class='fold'><summary>{_prose(part.title, _CELL)}</summary>{parts_html(part.parts)}</details>"
        case Text():
            return f"<p class='{part.kind}'>{_prose(part.text, _SENTENCE)}</p>"
        case Items():
            return "<ul>" + "".join(f"<li>{_prose(text, _SENTENCE)}</li>" for text in part.texts) + "</ul>"
        case Numbers():
            return _numbers(part)
        case Lines():
            return f"<div class='lines'>{lines_html(map(_shortened, part.lines))}</div>"
        case Diff():
            return _diff(part)
        case Table():
            return _table(part)
        case WorkItems():
            items = "".join(_card(card, part.anchors.get(card.cause)) for card in part.cards)
            return f"<ol class='worklist' aria-label='{safe(part.name)}'>{items}</ol>"
        case Replayable():
            return replay_html(part)
        case LookupTable():
            return lookups_html(part)
        case Drawing():
            # Figures are written together with the others, in order.
            name = safe(part.name)
            return f"<figure class='plot' aria-label='{name}'><div></div><figcaption>{name}</figcaption></figure>"


def _card(card: CardText, anchor: str | None) -> str:
    title = _prose(card.title, _CELL)
    if anchor is not None:
        title = f"<a href='#{safe(anchor)}'>{title}</a>"
    changes = "".join(map(_change, card.changes))
    parts = [f"<div class='title'><b>{title}</b> <span class='faint'>{_prose(card.cost, _CELL)}</span></div>"]
    if changes:
        parts.append(f"<ul>{changes}</ul>")
    parts.append(f"<div class='faint'>{_prose(card.where, _CELL)}</div>")
    # What to do is never cut.
    parts += [f"<div class='do'>{safe(line)}</div>" for line in card.lines]
    if card.advice:
        parts.append(f"<div>{safe(card.advice)}</div>")
    return f"<li>{''.join(parts)}</li>"


def _change(change: tuple[str, str]) -> str:
    name, text = change
    named = f"<code>{safe(shortened(name, _CELL))}</code> " if name else ""
    return f"<li>{named}{_prose(text, _SENTENCE)}</li>"


def _numbers(part: Numbers) -> str:
    cells = "".join(
        f"<div><dt>{safe(label)}</dt><dd><b>{safe(value)}</b> <span>{safe(note)}</span></dd></div>"
        for label, value, note in part.cells
    )
    return f"<dl class='numbers'>{cells}</dl>"


def _shortened(line: Line) -> Line:
    # Two spaces separate a number from its title.
    text = "\u2002".join(shortened(part, _SENTENCE) for part in line.text.split("  "))
    return line.with_texts(text, shortened(line.right, _CELL))


def _diff(part: Diff) -> str:
    note = f"<p class='faint'>{safe(part.note)}</p>" if part.note else ""
    name = shortened(part.name, _CELL)
    return f"<p>{safe(name)}</p>{diff_html(part.lines, name)}{note}"


def _table(part: Table) -> str:
    heads = "".join(f"<th scope='col' class='{head.kind}'>{safe(head.title)}</th>" for head in part.heads)
    rows = "".join("<tr>" + "".join(map(_cell, part.heads, row)) + "</tr>" for row in part.rows)
    note = f"<p class='faint'>{safe(part.note)}</p>" if part.note else ""
    name = safe(part.name)
    return (
        f"<div class='table'><div class='bar'><p class='caption'>{name}</p></div><div class='scroll' tabindex='0'"
        f" role='region' aria-label='{name}'><table aria-label='{name}'><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{note}</div>"
    )


def _cell(head: Head, cell: Cell) -> str:
    order = ""
    if isinstance(cell, Sorted):
        order, cell = f" data-order='{cell.value}'", cell.text
    if cell is None:
        return f"<td class='{head.kind} none'>–</td>"
    text = f"{cell:,}" if isinstance(cell, int) and head.kind == "number" else str(cell)
    if isinstance(cell, int | float):
        order = f" data-order='{cell}'"
    if head.kind == "long":
        return f"<td class='long'>{value_html(text, _LONG_CELL, 2000)}</td>"
    shown = safe(shortened(text, _CELL))
    if head.kind in ("text", "code"):
        shown = _BREAKABLE.sub(r"\g<0><wbr>", shown)
    shown = shown.replace(*_ARROW)
    if head.kind == "code":
        shown = f"<code>{shown}</code>"
    return f"<td class='{head.kind}'{order}>{shown}</td>"
