"""Blocks as HTML, for notebooks, panes and pages: texts are escaped, long ones cut or opened on demand; nothing is loaded from elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from html import escape
from itertools import groupby, repeat
from operator import attrgetter
from typing import Final

from cachescope.report.blocks import (
    LONGEST,
    Block,
    CardText,
    Cell,
    Diff,
    Group,
    Head,
    Numbers,
    Sorted,
    Table,
    WorkItems,
    shortened,
)
from cachescope.report.layout import Line, wrapped
from cachescope.report.terminal import terminal_lines
from cachescope.wording import file_size, harmless_cut

STYLE = "font-family: var(--jp-ui-font-family, sans-serif); line-height: 1.5; max-width: 60em"
CODE_STYLE = "margin: .3em 0; padding: .4em .6em; overflow-x: auto; white-space: pre; font-size: .9em; background: var(--jp-layout-color2, rgba(128,128,128,.12)); color: inherit"
FAINT_STYLE = "opacity: .75"
_WARNING: Final = "; border-left: 4px solid #d55e00; padding-left: .6em"
_WRAPPED: Final = "white-space: pre-wrap; overflow-wrap: anywhere"
# Text that would end a script, or begin a comment in it.
_ESCAPED: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
# An arrow never begins a line.
_ARROW: Final = ("-&gt;", "<span class='cs-keep'>-&gt;</span>")
# Places where a long name or path may wrap; no character of an escape.
_BREAKABLE: Final = re.compile(r"[\[/_](?=\w)|\.(?=[a-zA-Z_])")
_DIFF_LINE: Final = 240
_SENTENCE: Final = 1200
_CELL: Final = 300
_LONG_CELL: Final = 120


def safe(text: object) -> str:
    """Text from a log as HTML. A line that is too long is cut, with its size."""
    return escape("\n".join(map(harmless_cut, str(text).split("\n"))), quote=True)


def json_html(value: object) -> str:
    """Plain values as JSON within a script element."""
    text = json.dumps(value, separators=(",", ":"))
    for character, escaped in _ESCAPED.items():
        text = text.replace(character, escaped)
    return text


def prose_html(text: str, limit: int = _CELL) -> str:
    """A sentence."""
    return safe(shortened(text, limit)).replace(*_ARROW)


def heading_html(level: int, title: str, anchor: str) -> str:
    """A heading; with an anchor it can be linked to."""
    if not anchor:
        return f"<h{level} class='cs-title'>{prose_html(title)}</h{level}>"
    link = f"<a class='anchor' href='#{safe(anchor)}' aria-label='Link to this place'>#</a>"
    return f"<h{level} id='{safe(anchor)}'>{prose_html(title)} {link}</h{level}>"


def blocks_html(blocks: Iterable[Block], longest: int = LONGEST, other: Callable[[Block], str] = repr) -> str:
    """Blocks below each other, with so many characters of each value. `other` makes what only a page has."""
    made = []
    for kind, group in groupby(blocks, type):
        if kind is Line:
            made.append(f"<div class='lines'>{lines_html(map(_shortened, group))}</div>")  # type: ignore[arg-type]
            continue
        for block in group:
            match block:
                case Group(is_folded=True):
                    made.append(_fold(block.title, blocks_html(block.blocks, longest, other)))
                case Group():
                    head = heading_html(3, block.title, block.anchor)
                    made.append(f"<div class='group'>{head}{blocks_html(block.blocks, longest, other)}</div>")
                case WorkItems(name, cards, start):
                    evidence = (blocks_html(one.evidence or (), longest, other) for one in cards)
                    items = "".join(map(_card, cards, evidence))
                    name = safe(name)
                    made.append(f"<ol class='cs-worklist' start='{start}' aria-label='{name}'>{items}</ol>")
                case Numbers():
                    made.append(_numbers_html(block))
                case Diff():
                    made.append(_diff_html(block))
                case Table():
                    made.append(_table_html(block, longest))
                case _:
                    made.append(other(block))
    return "".join(made)


def _shortened(line: Line) -> Line:
    if line.verbatim:
        return line
    # Two spaces separate a number from its title.
    text = "\u2002".join(shortened(part, _SENTENCE) for part in line.text.split("  "))
    return line._replace(text=text, right=shortened(line.right, _CELL))


def _fold(title: str, inner: str, anchor: str = "") -> str:
    named = f" id='{anchor}'" if anchor else ""
    return f"<details class='fold'{named}><summary>{prose_html(title)}</summary>{inner}</details>"


def _card(card: CardText, evidence: str) -> str:
    """A card with a link to its evidence. The link is named by what the card says, since another recording would change its number."""
    title, below = f"<b>{prose_html(card.title)}</b>", ""
    if card.evidence is None:
        title = opening_html("cs-link", f"Why {card.lookup}", f"Why: {card.title}", card.title)
        below = opening_html("cs-button", f"Lookups {card.cause}", f"Lookups of {card.title}", "Its lookups")
    elif evidence:
        anchor = f"cause-{sha256(card.title.encode('utf-8', 'replace')).hexdigest()[:8]}"
        title, below = f"<a href='#{anchor}'>{title}</a>", _fold("Evidence", evidence, anchor)
    cost = f"<span class='cs-faint'>{prose_html(card.cost)}</span>"
    parts = [f"<div class='cs-work-title'>{title} {cost}</div>"]
    if card.changes:
        parts.append(f"<ul>{''.join(map(_change, card.changes))}</ul>")
    parts.append(f"<div class='cs-faint'>{prose_html(card.where)}</div>")
    # What to do is never cut.
    parts += [f"<div>{safe(do)} <code class='cs-set'>{safe(line)}</code></div>" for do, line in card.lines]
    parts += [f"<div>{safe(card.advice)}</div>"] if card.advice else []
    return f"<li>{''.join(parts)}{below}</li>"


def opening_html(look: str, what: str, label: str, text: str) -> str:
    """A button that opens another pane of the explorer."""
    return f"<button type='button' class='{look}' data-opens='{what}' aria-label='{safe(shortened(label, _CELL))}'>{prose_html(text)}</button>"


def _change(change: tuple[str, str]) -> str:
    name, text = change
    named = f"<code>{prose_html(name)}</code> " if name else ""
    return f"<li>{named}{prose_html(text, _SENTENCE)}</li>"


def _numbers_html(numbers: Numbers) -> str:
    cells = "".join(
        f"<div><dt>{prose_html(label)}</dt><dd><b>{prose_html(value)}</b> <span>{prose_html(note)}</span></dd></div>"
        for label, value, note in numbers.cells
    )
    return f"<dl class='cs-numbers'>{cells}</dl>"


def _diff_html(diff: Diff) -> str:
    """The lines of a unified diff. The signs are in the text, so no colour is needed to read it."""
    name = safe(shortened(diff.name, _CELL))
    body = "".join(map(_diff_line, diff.lines))
    return f"<p>{name}</p><pre class='cs-diff' tabindex='0' role='region' aria-label='{name}'>{body}</pre>{_note(diff.note)}"


def _diff_line(line: str) -> str:
    kind = {"+": "cs-new", "-": "cs-old", "@": "cs-faint"}.get(line[:1], "cs-same")
    cut = line if len(line) <= _DIFF_LINE else f"{line[: _DIFF_LINE - 1]}…"
    return f"<span class='{kind}'>{safe(cut)}\n</span>"


def _note(text: str) -> str:
    return f"<p class='cs-faint'>{prose_html(text)}</p>" if text else ""


def _table_html(table: Table, longest: int) -> str:
    titles = ((head.kind, prose_html(head.title)) for head in table.heads)
    heads = "".join(f"<th scope='col' class='{kind}'>{title}</th>" for kind, title in titles)
    cells = (map(_cell, table.heads, row, repeat(longest)) for row in table.rows)
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    name = safe(shortened(table.name, _CELL))
    return (
        f"<div class='cs-tabled'><div class='cs-bar'><p class='cs-caption'>{name}</p></div><div class='cs-scroll' tabindex='0'"
        f" role='region' aria-label='{name}'><table class='cs-table' aria-label='{name}'><thead><tr>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>{_note(table.note)}</div>"
    )


def _cell(head: Head, cell: Cell, longest: int) -> str:
    order = ""
    if isinstance(cell, Sorted):
        order, cell = f" data-order='{cell.value}'", cell.text
    if cell is None:
        return f"<td class='{head.kind} none'>–</td>"
    text = f"{cell:,}" if isinstance(cell, int) and head.kind == "number" else str(cell)
    if isinstance(cell, int | float):
        order = f" data-order='{cell}'"
    if head.kind in ("long", "whole"):
        return f"<td class='long'>{_value_html(text, longest)}</td>"
    shown = safe(shortened(text, _CELL))
    if head.kind in ("text", "code"):
        shown = _BREAKABLE.sub(r"\g<0><wbr>", shown)
    shown = shown.replace(*_ARROW)
    if head.kind == "code":
        shown = f"<code>{shown}</code>"
    return f"<td class='{head.kind}'{order}>{shown}</td>"


def _value_html(text: str, most: int) -> str:
    """A value. A long one shows its beginning and size, and opens to as much as is kept.

    Examples
    --------
    >>> _value_html("a < b", 100)
    '<code>a &lt; b</code>'
    """
    if len(text) <= _LONG_CELL and "\n" not in text:
        return f"<code>{safe(text)}</code>"
    beginning = " ".join(text[: 4 * _LONG_CELL].split())[:_LONG_CELL]
    beyond = "" if len(text) <= most else f"\n… {len(text) - most:,} more characters"
    size = file_size(len(text.encode("utf-8", "replace"))).replace(" ", "\u00a0")
    return f"<details class='cs-long'><summary><code>{safe(beginning)}…</code> <span class='cs-faint'>({size})</span></summary><pre tabindex='0'>{safe(text[:most])}{beyond}</pre></details>"


class Reprs:
    """The text and the HTML repr of an answer: its blocks, as on a terminal."""

    __slots__ = ()

    def _blocks(self) -> Iterable[Block]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return wrapped(terminal_lines(self._blocks()))

    def _repr_html_(self) -> str:
        return answer_html(self._blocks())


def answer_html(blocks: Iterable[Block], below: str = "") -> str:
    """The lines of an answer for a notebook, with what is folded away below."""
    return f"<div style='{STYLE}'>{lines_html(terminal_lines(blocks))}{below}</div>"


def lines_html(lines: Iterable[Line]) -> str:
    """Lines below each other; lines of code are one block, whose spaces stay where styles are taken out, as on GitHub."""
    groups = groupby(lines, attrgetter("verbatim"))
    return "".join(
        _code_html([*some]) if is_code else "".join(map(_line_html, some)) for is_code, some in groups
    )


def _code_html(lines: list[Line]) -> str:
    texts = ((safe(line.text), line.text.startswith(("+", "-"))) for line in lines)
    body = "\n".join(f"<b>{text}</b>" if is_changed else text for text, is_changed in texts)
    return f"<pre style='{CODE_STYLE}; margin-left: {lines[0].indent / 2}em'>{body}</pre>"


def _line_html(line: Line) -> str:
    """A line of an answer. Weight and shade replace the colours of a terminal."""
    text = safe(line.text) or "&nbsp;"
    if "underline" in line.style and line.text.startswith("https://"):
        text = f"<a href='{text}' target='_blank' rel='noopener noreferrer'>{text}</a>"
    if "bold" in line.style:
        text = f"<b>{text}</b>"
    if line.label:
        label = f"<span style='flex: 0 0 {line.hang / 2}em; {FAINT_STYLE}'>{safe(line.label)}</span>"
        text = f"{label}<span>{text}</span>"
    if line.right:
        text += f"<span style='{FAINT_STYLE}; margin-left: 1em'>{safe(line.right)}</span>"
    shade = f"; {FAINT_STYLE}" if "dim" in line.style else _WARNING if "red" in line.style else ""
    flex = "; display: flex" if line.label else ""
    return f"<div style='margin-left: {line.indent / 2}em; {_WRAPPED}{flex}{shade}'>{text}</div>"
